"""The precision of a forward pass."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(like: Tensor) -> torch.dtype:
    """The type of matrix products of ``like``: autocast's where it is on, else its own."""
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype
