"""Modules made without what they begin with: no more than their shapes, or about to be filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


@contextmanager
def only_shapes() -> Iterator[None]:
    """Inside it modules are made on the device "meta", which takes no memory, and are not initialised: to do that there
    PyTorch would import its compiler, for a second."""
    with torch.device("meta"), to_be_filled():
        yield


@contextmanager
def to_be_filled() -> Iterator[None]:
    """Inside it the parameters of modules are not initialised, but hold what the memory held: to draw them takes longer
    than to read those that take their place."""
    with _NothingDrawn():
        yield


class _NothingDrawn(TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if function in (Tensor.normal_, Tensor.uniform_) or getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else named["tensor"]
        if function is torch.linalg.qr:  # how orthogonal_ goes on with what it believes to have drawn
            return args[0], args[0]
        return function(*args, **named)
