"""Inner results computed anew in the backward pass instead of kept for it (Chen et al. 2016, "Training Deep Nets with
Sublinear Memory Cost")."""

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
    """A forward pass in which ``recomputed`` keeps only arguments and results, where ``on``."""
    before = _is_on.set(on)
    try:
        yield
    finally:
        _is_on.reset(before)


def is_recomputing() -> bool:
    """True in a forward pass that is ``recomputing``."""
    return _is_on.get()


def recomputed(function: Callable[..., R]) -> Callable[..., R]:
    """The function itself; in a forward pass that is ``recomputing``, one whose inner results are made again in the
    backward pass, with the same draws of dropout. The gradients are the same to the bit."""
    if not (_is_on.get() and torch.is_grad_enabled()):
        return function

    def run(*arguments: Any) -> R:
        with recomputing(False):  # only the outermost function: its parts are made again with it
            result: R = checkpoint(function, *arguments, use_reentrant=False)
        return result

    return run
