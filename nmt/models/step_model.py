"""The interface between searches and models."""

from __future__ import annotations

from typing import Protocol, TypeVar

import torch
from torch import Tensor

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Step

M = TypeVar("M", bound=BatchRecord)
S = TypeVar("S", bound=BatchRecord)


class StepModel(Protocol[M, S]):
    """The methods of ``Seq2Seq`` that searches call; an ensemble has them too."""

    pad: int
    training: bool

    def encode(self, source_BS: Tensor) -> M:
        """See ``Seq2Seq.encode``."""

    def start(self, memory: M) -> S:
        """See ``Seq2Seq.start``."""

    def step(self, token_N: Tensor, memory: M, state: S) -> Step[S]:
        """See ``Seq2Seq.step``."""

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """See ``Seq2Seq.first_token``."""
