"""A model that chooses among some tokens of its vocabulary: the output layer computes no other (Jean et al. 2015, "On
Using Very Large Target Vocabulary for Neural Machine Translation", section 3.2).

What all sentences have is one matrix product; for what each has of its own see ``nmt.nn.listed``.

Shapes as in ``seq2seq``; X tokens that a sentence chooses among, C of them common to all sentences, L its own, U those
of all sentences together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Seq2Seq, Step
from nmt.nn.listed import ListedLogits, Lists

M = TypeVar("M", bound=BatchRecord)
S = TypeVar("S", bound=BatchRecord)


@dataclass(frozen=True)
class Choices:
    """What the sentences of a batch choose among: to a search a sentence's tokens are 0, 1, 2, ..., the common ones
    first."""

    common_C: Tensor
    """The tokens that all sentences have, in rising order."""
    own_U: Tensor
    """Those that some have, in rising order."""
    lists: Lists
    """Those of each."""
    vocabulary: int
    """The number of tokens that there are."""

    @classmethod
    def of(cls, common_C: npt.NDArray[np.int64], is_own_BV: npt.NDArray[np.bool_], device: torch.device) -> Choices:
        """From the common tokens, in rising order, and which others each sentence has."""
        row_E, token_E = np.divmod(np.flatnonzero(is_own_BV), is_own_BV.shape[1])
        length_B = np.bincount(row_E, minlength=len(is_own_BV))
        column_E = np.arange(len(row_E)) - np.repeat(np.cumsum(length_B) - length_B, length_B)
        is_any_V = np.bincount(token_E, minlength=is_own_BV.shape[1]) > 0
        place_V = np.cumsum(is_any_V) - 1
        token_BL = np.zeros((len(is_own_BV), length_B.max(initial=0)), dtype=np.int64)
        place_BL = np.zeros_like(token_BL)
        token_BL[row_E, column_E], place_BL[row_E, column_E] = token_E, place_V[token_E]
        own_U = np.flatnonzero(is_any_V)
        common, own, token, place, length = (
            torch.from_numpy(each).to(device) for each in (common_C, own_U, token_BL, place_BL, length_B)
        )
        return cls(common, own, Lists(token, place, length), is_own_BV.shape[1])

    @cached_property
    def token_BX(self) -> Tensor:
        """The token that each number of a sentence means, and 0 behind the end of its list."""
        return torch.cat([self.common_C.expand(len(self.lists), -1), self.lists.token_BL], dim=1)


@dataclass(frozen=True)
class AmongMemory(BatchRecord, Generic[M]):
    """The memory of a batch of sentences, and what each chooses among."""

    memory: M
    token_BX: Tensor
    """See ``Choices``."""
    lists: Lists


@final
class Among(Generic[M, S]):
    """A model as a search sees it: see ``Searchable``. Tokens are numbered as in ``Choices``."""

    training = False

    def __init__(self, model: Seq2Seq[M, S], choices: Choices) -> None:
        """``choices`` are those of the sentences that will be encoded, row by row."""
        assert not model.training
        assert choices.vocabulary == model.output.vocabulary  # which kernels do not look after
        self.pad = model.pad
        self._model = model
        self._choices = choices
        self._weight_CD, self._bias_C = model.output.rows(choices.common_C)
        self._of_lists = ListedLogits(model.output, choices.own_U)

    def encode(self, source_BS: Tensor) -> AmongMemory[M]:
        """See ``Searchable``."""
        choices = self._choices
        return AmongMemory(self._model.encode(source_BS), choices.token_BX, choices.lists)

    def start(self, memory: AmongMemory[M]) -> S:
        """See ``Searchable``."""
        return self._model.start(memory.memory)

    def step(self, token_N: Tensor, memory: AmongMemory[M], state: S) -> Step[S]:
        """See ``Searchable``; -inf for what is not among a sentence's tokens."""
        token_BX, lists = memory.token_BX, memory.lists
        beams = len(token_N) // len(token_BX)
        token_N = token_BX.gather(1, token_N.view(-1, beams)).flatten()
        step = self._model.decoder.step(token_N, memory.memory, state)

        def logits(rows: slice) -> Tensor:
            readout_ND = step.readout_NR[rows]
            common_NC = F.linear(readout_ND, self._weight_CD, self._bias_C)
            first, _, _ = rows.indices(len(token_N))
            return torch.cat([common_NC, self._of_lists(readout_ND, lists, first, beams)], dim=1)

        return Step(token_BX.shape[1], logits, step.weights, step.state)

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """See ``Searchable``."""
        first_N = self._model.first_token(rows, device)
        return torch.searchsorted(self._choices.common_C, first_N)
