"""What a search asks of a model: one that was trained, or several together."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from nmt.core.record import BatchRecord
from nmt.models.among import Choices
from nmt.models.seq2seq import Step

M = TypeVar("M", bound=BatchRecord)
S = TypeVar("S", bound=BatchRecord)


class Searchable(Protocol[M, S]):
    """The part of ``Seq2Seq`` that searches need; see there."""

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


class Narrowable(Searchable[M, S], Protocol[M, S]):
    """One that can be asked for some tokens alone."""

    def among(self, choices: Choices) -> Searchable[Any, Any]:
        """See ``Seq2Seq.among``."""
