"""Models whose every probability is written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded, Encoder, Seq2Seq
from nmt.nn.output import OutputLayer


@dataclass(frozen=True)
class Position(BatchRecord):
    step_B: Tensor


class Script(Decoder[Position, Position]):
    """Step t has the probabilities of row t of a table, whatever came before; the readout is their logarithm."""

    def __init__(self, probabilities_TV: list[list[float]]) -> None:
        super().__init__()
        self.table_TV = torch.tensor(probabilities_TV).log()
        self.readout_size = self.table_TV.shape[1]

    def memory(self, encoded: Encoded) -> Position:
        return Position(torch.zeros(len(encoded.is_pad_BS), dtype=torch.int64))

    def start(self, memory: Position) -> Position:
        return memory

    def step(self, token_N: Tensor, memory: Position, state: Position) -> DecoderStep[Position]:
        row_N = state.step_B.clamp(max=len(self.table_TV) - 1)
        return DecoderStep(self.table_TV[row_N], lambda: torch.ones(len(row_N), 1, 1), Position(state.step_B + 1))

    def teacher_forced(self, input_BT: Tensor, memory: Position) -> Decoded:
        raise NotImplementedError

    def free_running(
        self, first_B: Tensor, memory: Position, steps: int, next_token: Callable[[int, Tensor], Tensor]
    ) -> Decoded:
        raise NotImplementedError


class Nothing(Encoder):
    size = 1

    def embed(self, source_BS: Tensor) -> Tensor:
        return torch.zeros(*source_BS.shape, 1)

    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        return Encoded(embedded_BSE, embedded_BSE[:, 0], is_pad_BS)


def scripted(probabilities_TV: list[list[float]]) -> Seq2Seq[Any, Any]:
    width = len(probabilities_TV[0])
    output = OutputLayer(width, width)
    with torch.no_grad():
        output.weight_VD.copy_(torch.eye(width))
    return Seq2Seq(Nothing(), Script(probabilities_TV), output, pad=0, bos=2).eval()
