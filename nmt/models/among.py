"""A model that chooses among some tokens of its vocabulary: the output layer computes no other (Jean et al. 2015, "On
Using Very Large Target Vocabulary for Neural Machine Translation", section 3.2).

Shapes as in ``seq2seq``; U tokens to choose among.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, final

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Seq2Seq, Step

M = TypeVar("M", bound=BatchRecord)
S = TypeVar("S", bound=BatchRecord)


@dataclass(frozen=True)
class Choices:
    """What the sentences of a batch choose among."""

    token_U: Tensor
    """The tokens of all sentences together, in rising order. To a search they are 0, 1, 2, ..."""
    is_absent_BU: Tensor
    """Those that are not for a sentence: so its result does not depend on those that share its batch."""


@dataclass(frozen=True)
class AmongMemory(BatchRecord, Generic[M]):
    """The memory of a batch of sentences, and what each chooses among."""

    memory: M
    is_absent_BU: Tensor


@final
class Among(Generic[M, S]):
    """A model as a search sees it: see ``Searchable``. Tokens are numbered as in ``Choices``."""

    training = False

    def __init__(self, model: Seq2Seq[M, S], choices: Choices) -> None:
        """``choices`` are those of the sentences that will be encoded, row by row."""
        assert not model.training
        self.pad = model.pad
        self._model = model
        self._choices = choices
        self._weight_UD, self._bias_U = model.output.rows(choices.token_U)

    def encode(self, source_BS: Tensor) -> AmongMemory[M]:
        """See ``Searchable``."""
        return AmongMemory(self._model.encode(source_BS), self._choices.is_absent_BU)

    def start(self, memory: AmongMemory[M]) -> S:
        """See ``Searchable``."""
        return self._model.start(memory.memory)

    def step(self, token_N: Tensor, memory: AmongMemory[M], state: S) -> Step[S]:
        """See ``Searchable``; -inf for what is not among a sentence's tokens."""
        step = self._model.decoder.step(self._choices.token_U[token_N], memory.memory, state)
        is_absent_BU = memory.is_absent_BU
        sentence_N = torch.arange(len(token_N), device=token_N.device) // (len(token_N) // len(is_absent_BU))

        def logits(rows: slice) -> Tensor:
            logits_NU = F.linear(step.readout_NR[rows], self._weight_UD, self._bias_U)
            return logits_NU.masked_fill_(is_absent_BU[sentence_N[rows]], -torch.inf)

        return Step(len(self._choices.token_U), logits, step.weights, step.state)

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """See ``Searchable``."""
        first_N = self._model.first_token(rows, device)
        return torch.searchsorted(self._choices.token_U, first_N)
