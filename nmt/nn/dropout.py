"""Dropout from random bytes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Sets elements to 0 with probability ``rate`` and scales the others by 1 / (1 - rate) (Srivastava et al. 2014).

    Random bytes, of which one draw gives eight, decide which elements are dropped, so the rate is rounded to a multiple
    of 1/256, and the scale accordingly. The mask is not boolean: it holds 0 or the scale in the precision of the
    elements. On a CPU this takes far less time than ``torch.nn.functional.dropout``. With ``variational`` a sequence's
    positions share one draw (Gal & Ghahramani 2016).
    """

    def __init__(self, rate: float, *, variational: bool = False) -> None:
        super().__init__()
        self.variational = variational
        self.threshold = round(rate * 256)

    @property
    def scale(self) -> float:
        """Factor that kept elements are multiplied by."""
        return 256 / (256 - self.threshold)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Returns ``x_BTD`` with elements dropped in training mode, and unchanged otherwise. If draws are shared
        between positions, dimension 1 is the position; else ``x_BTD`` may have any shape."""
        if x_BTD.device.type == "cuda" and self.training and self.threshold and not self.variational:
            return F.dropout(x_BTD, self.threshold / 256)  # one kernel does it there
        mask = self.mask(x_BTD.shape, x_BTD.dtype, x_BTD.device)
        return x_BTD if mask is None else x_BTD * mask

    def mask(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor | None:
        """Draws a mask of 0 or the scale; returns None if nothing is dropped. A loop over positions draws all of them
        before it starts."""
        if not self.training or self.threshold == 0:
            return None
        drawn = (shape[0], 1, *shape[2:]) if self.variational else tuple(shape)
        mask = torch.empty(drawn, dtype=dtype, device=device)
        torch.ge(random_bytes(drawn, device), self.threshold, out=mask)
        return mask.mul_(self.scale).expand(tuple(shape))


def random_bytes(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Draws uniform uint8 of the given shape from torch's own generator of the device."""
    count = int(torch.Size(shape).numel())
    words = torch.empty((count + 7) // 8, dtype=torch.int64, device=device)
    words.random_(-(2**63), None)  # the default range leaves the sign bit 0, so one byte in eight would be too small
    return words.view(torch.uint8)[:count].view(shape)
