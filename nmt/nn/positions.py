"""Encodings of positions: vectors that are added to the embeddings, or rotations of the queries and keys of a
Transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn


def sinusoids(position_BT: Tensor, size: int) -> Tensor:
    """Computes sin(t / 10000^(2i / size)) at entry 2i and the cosine at entry 2i + 1 (Vaswani et al. 2017, section
    3.5), (B, T, size) in float32, for any position."""
    even_I = torch.arange(0, size, 2, device=position_BT.device, dtype=torch.float32)
    angle_BTI = position_BT[:, :, None].float() * torch.pow(10_000.0, -even_I / size)
    # entries 2i and 2i + 1 have the sine and the cosine of one angle; an odd size drops the last cosine
    return torch.stack([angle_BTI.sin(), angle_BTI.cos()], dim=-1).flatten(2)[:, :, :size]


def sinusoid_halves(position_BT: Tensor, size: int) -> Tensor:
    """Computes the entries of ``sinusoids`` with all sines first, then the cosines, as Marian orders them
    (Junczys-Dowmunt et al. 2018, "Marian"), (B, T, size). Angles are computed in float64, so that late positions are
    exact, too."""
    even_I = torch.arange(0, size, 2, device=position_BT.device, dtype=torch.float64)
    angle_BTI = position_BT[:, :, None].double() * torch.pow(10_000.0, -even_I / size)
    return torch.cat([angle_BTI.sin(), angle_BTI.cos()], dim=-1)[:, :, :size].float()


class Sinusoidal(nn.Module):
    """Adds the vectors of ``sinusoids``, or of a similar function."""

    def __init__(self, vectors: Callable[[Tensor, int], Tensor] = sinusoids) -> None:
        super().__init__()
        self.vectors = vectors

    def forward(self, x_BTD: Tensor, position_BT: Tensor) -> Tensor:
        """Returns ``x_BTD`` with each position's vector added; ``position_BT`` may have one row for all sentences."""
        return x_BTD + self.vectors(position_BT, x_BTD.shape[-1]).to(x_BTD.dtype)


class Learned(nn.Module):
    """Adds a learnt vector for each position (Gehring et al. 2017, section 3.1); all positions from the last one on
    share its vector."""

    def __init__(self, positions: int, size: int) -> None:
        super().__init__()
        self.table_PD = nn.Parameter(torch.empty(positions, size))
        nn.init.normal_(self.table_PD, std=size**-0.5)

    def forward(self, x_BTD: Tensor, position_BT: Tensor) -> Tensor:
        """Returns ``x_BTD`` with each position's vector added; ``position_BT`` may have one row for all sentences."""
        return x_BTD + self.table_PD[position_BT.clamp(max=len(self.table_PD) - 1)].to(x_BTD.dtype)


class NoPosition(nn.Module):
    """Adds nothing: positions come in elsewhere."""

    def forward(self, x_BTD: Tensor, position_BT: Tensor) -> Tensor:
        """Returns ``x_BTD`` itself."""
        return x_BTD


def absolute_positions(kind: str, count: int, size: int) -> nn.Module:
    """Creates the module that adds ``sinusoidal``, ``sinusoidal_halves`` or ``learned`` positions; for any other kind
    it adds nothing."""
    if kind == "learned":
        return Learned(count, size)
    if kind == "sinusoidal_halves":
        return Sinusoidal(sinusoid_halves)
    return Sinusoidal() if kind == "sinusoidal" else NoPosition()


class RotaryAngles(NamedTuple):
    """Cosines and sines of the angles by which rotary positions rotate pairs of entries, (B, 1, T, I)."""

    cos_B1TI: Tensor
    sin_B1TI: Tensor

    @staticmethod
    def of(position_BT: Tensor, like: Tensor) -> RotaryAngles:
        """t / 10000^(2i / A) at position t, for vectors of the width A and type of ``like``; ``position_BT`` may have
        one row for all."""
        # 2i of the exponent
        even_I = torch.arange(0, like.shape[-1], 2, device=like.device, dtype=torch.float32)
        angle_B1TI = position_BT[:, None, :, None].float() * torch.pow(10_000.0, -even_I / like.shape[-1])
        return RotaryAngles(angle_B1TI.cos().to(like.dtype), angle_B1TI.sin().to(like.dtype))


def apply_rotary(x_BHTA: Tensor, angles: RotaryAngles) -> Tensor:
    """Each pair of entries (2i, 2i + 1) turned by the angle t / 10000^(2i / A) (Su et al. 2021, "RoFormer", equation
    15): the inner product of two such vectors depends on the distance of their positions and not on where they are.
    A must be even."""
    # a pair of entries is a vector in a plane
    first_BHTI, second_BHTI = x_BHTA.view(*x_BHTA.shape[:-1], -1, 2).unbind(-1)
    # its rotation by an angle: (x cos - y sin, x sin + y cos)
    pair = (
        first_BHTI * angles.cos_B1TI - second_BHTI * angles.sin_B1TI,
        first_BHTI * angles.sin_B1TI + second_BHTI * angles.cos_B1TI,
    )
    return torch.stack(pair, dim=-1).flatten(-2)
