"""Logits of the tokens that each sentence of a batch has a list of.

Kernels look up the rows of the weight that each sentence needs. Without them all that stands on any list is a matrix
product, from which each sentence picks its own; the lists of a batch together are many times as long as one.

Shapes: B sentences, N rows, of which each sentence has as many, side by side, L places of a list, U tokens on any list,
V vocabulary, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core.record import BatchRecord
from nmt.nn import native
from nmt.nn.output import OutputLayer
from nmt.nn.quantized import Int8Weight, listed


@dataclass(frozen=True)
class Lists(BatchRecord):
    """What stands on the list of each sentence, filled up with token 0."""

    token_BL: Tensor
    place_BL: Tensor
    """Its place among the tokens that are on any list."""
    length_B: Tensor


@final
class ListedLogits:
    """An output layer, for lists."""

    def __init__(self, output: OutputLayer, token_U: Tensor) -> None:
        """``token_U`` are the tokens on any list."""
        self._output = output
        self._token_U = token_U

    def __call__(self, readout_ND: Tensor, lists: Lists, first: int, beams: int) -> Tensor:
        """(N, L), -inf behind a list's end; for rows from the ``first`` on of those of all sentences, ``beams`` of
        each."""
        looked_up = self._looked_up(readout_ND, lists, first, beams)
        if looked_up is not None:
            return looked_up
        weight_UD, bias_U = self._joint
        sentence_N = torch.arange(first, first + readout_ND.shape[0], device=readout_ND.device) // beams
        logits_NL = F.linear(readout_ND, weight_UD, bias_U).gather(1, lists.place_BL[sentence_N])
        place_L = torch.arange(logits_NL.shape[1], device=logits_NL.device)
        return logits_NL.masked_fill_(place_L >= lists.length_B[sentence_N, None], -torch.inf)

    def _looked_up(self, readout_ND: Tensor, lists: Lists, first: int, beams: int) -> Tensor | None:
        """None where there is no kernel for it."""
        kernels = native.kernels(readout_ND)
        if kernels is None:
            return None
        readout_ND, weight_VD = readout_ND.contiguous(), self._output.weight_VD
        bias_V = self._output.bias_V.to(readout_ND.dtype)
        wanted = native.Wanted(lists.token_BL, lists.length_B, first, beams)
        if isinstance(weight_VD, Int8Weight):
            return listed(kernels, readout_ND, weight_VD, bias_V, wanted) if kernels.has_product() else None
        if weight_VD.dtype != readout_ND.dtype or not weight_VD.is_contiguous():
            return None
        return kernels.listed(readout_ND, weight_VD, bias_V, wanted)

    @cached_property
    def _joint(self) -> tuple[Tensor, Tensor]:
        return self._output.rows(self._token_U)
