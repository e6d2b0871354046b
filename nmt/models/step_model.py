"""The interface between searches and models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Step
from nmt.nn.output import top_tokens_in_parts
from nmt.ops import TopTokens

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


@dataclass
class WithoutToken:
    """A model in which a token has probability 0."""

    model: StepModel[Any, Any]
    token: int

    def __post_init__(self) -> None:
        self.pad, self.training = self.model.pad, self.model.training
        self.encode, self.start, self.first_token = self.model.encode, self.model.start, self.model.first_token

    def step(self, token_N: Tensor, memory: Any, state: Any) -> Step[Any]:
        """See ``Seq2Seq.step``."""
        step = self.model.step(token_N, memory, state)

        def logits(rows: slice) -> Tensor:
            logits_NV = step.logits(rows)
            logits_NV[:, self.token] = -torch.inf
            return logits_NV

        def top_tokens(count: int, normalized: bool) -> TopTokens:
            return top_tokens_in_parts(logits, token_N, step.vocabulary, count, normalized)

        return replace(step, logits=logits, top_tokens=top_tokens)


class Interruptible:
    """A model that calls a function before each step; an exception that it raises ends the search."""

    def __init__(self, model: StepModel[Any, Any], on_step: Callable[[], object]) -> None:
        self.pad, self.training = model.pad, model.training
        self.encode, self.start, self.first_token = model.encode, model.start, model.first_token
        self._model, self._on_step = model, on_step

    def step(self, token_N: Tensor, memory: Any, state: Any) -> Step[Any]:
        """See ``Seq2Seq.step``."""
        self._on_step()
        return self._model.step(token_N, memory, state)
