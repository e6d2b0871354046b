"""Construction of modules without the cost of their initial values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Construct modules with shapes and types only, on the device "meta".

    They are not initialised either, because PyTorch would import its compiler for that, which takes a second.
    """
    with torch.device("meta"), without_init():
        yield


@contextmanager
def without_init() -> Iterator[None]:
    """Construct modules whose parameters hold arbitrary values, because those of a checkpoint replace them at once.

    Random initial values would take longer than reading the checkpoint.
    """
    with _SkipInit():
        yield


class _SkipInit(TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        if function in (Tensor.normal_, Tensor.uniform_) or getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else keywords["tensor"]
        if function is torch.linalg.qr:  # the second step of orthogonal_, after the draw
            return args[0], args[0]
        return function(*args, **keywords)
