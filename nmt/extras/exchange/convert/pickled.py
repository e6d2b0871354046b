"""Weights in PyTorch's own format, the only one that older models have.

The restricted reader of PyTorch creates tensors, numbers and texts, and refuses anything else in a file: nothing in it
is executed. It is used only here.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from nmt.core.errors import InputError
from nmt.core.files import refuse_special


def read_pickled(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a file by their names to the CPU. Raises InputError for a damaged file, and for a file that
    holds anything else."""
    refuse_special(path)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged archive fails in many ways
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"{path}: cannot be read, it is damaged or holds more than weights: {reason}") from None
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in loaded.items()
    ):
        raise InputError(f"{path}: holds no tensors by their names")
    return loaded
