"""Recomputation of inner results in the backward pass, which need not be kept for it (Chen et al. 2016, "Training Deep
Nets with Sublinear Memory Cost")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch.utils.checkpoint import checkpoint

R = TypeVar("R")

_is_on: ContextVar[bool] = ContextVar("recompute", default=False)


@contextmanager
def recomputing(on: bool) -> Iterator[None]:
    """Context manager for a forward pass in which ``recomputed`` keeps only arguments and results, if ``on``."""
    before = _is_on.set(on)
    try:
        yield
    finally:
        _is_on.reset(before)


def is_recomputing() -> bool:
    """Returns True in a forward pass that is ``recomputing``."""
    return _is_on.get()


def recomputed(function: Callable[..., R]) -> Callable[..., R]:
    """Returns the function itself or, in a forward pass that is ``recomputing``, a function whose inner results are
    computed again in the backward pass, with the same draws of dropout. The gradients are identical to the bit."""
    if not (_is_on.get() and torch.is_grad_enabled()):
        return function

    def run(*arguments: Any) -> R:
        with recomputing(False):  # only the outermost function: its parts are recomputed with it
            result: R = checkpoint(function, *arguments, use_reentrant=False)
        return result

    return run
