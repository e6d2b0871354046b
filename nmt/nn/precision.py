"""The precision of a forward pass."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(like: Tensor) -> torch.dtype:
    """Returns the dtype of matrix products with ``like``: that of autocast if it is on, else that of ``like``."""
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype
