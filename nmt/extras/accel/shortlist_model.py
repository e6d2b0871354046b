"""A model whose output layer computes the logits of some tokens only, chosen for each sentence (Jean et al. 2015, "On
Using Very Large Target Vocabulary for Neural Machine Translation", section 3.2).

Tokens common to all sentences are one matrix product. Those on any list are another, from which each sentence gathers
its own.

Shapes as in ``seq2seq``; X tokens of a sentence, C of them common to all sentences, L entries of its own list, U tokens
on the list of any sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core.record import BatchRecord
from nmt.models.ensemble import Ensemble
from nmt.models.seq2seq import Seq2Seq, Step
from nmt.models.step_model import StepModel
from nmt.nn.output import OutputLayer, top_tokens_in_parts

M = TypeVar("M", bound=BatchRecord)
S = TypeVar("S", bound=BatchRecord)


@dataclass(frozen=True)
class Lists(BatchRecord):
    """The list of each sentence, padded with token 0."""

    token_BL: Tensor
    index_BL: Tensor
    """Index of the token among those on any list."""
    length_B: Tensor


@final
class ListedLogits:
    """An output layer that computes the logits of lists."""

    def __init__(self, output: OutputLayer, token_U: Tensor) -> None:
        """``token_U`` are the tokens on any list."""
        self._output = output
        self._token_U = token_U

    def __call__(self, readout_ND: Tensor, lists: Lists, first: int, beams: int) -> Tensor:
        """Logits (N, L), -inf behind the end of a list. The first row is the ``first`` of a batch with ``beams`` rows
        of each sentence."""
        weight_UD, bias_U = self._joint
        sentence_N = torch.arange(first, first + readout_ND.shape[0], device=readout_ND.device) // beams
        logits_NL = F.linear(readout_ND, weight_UD, bias_U).gather(1, lists.index_BL[sentence_N])
        index_L = torch.arange(logits_NL.shape[1], device=logits_NL.device)
        return logits_NL.masked_fill_(index_L >= lists.length_B[sentence_N, None], -torch.inf)

    @cached_property
    def _joint(self) -> tuple[Tensor, Tensor]:
        return self._output.rows(self._token_U)


@dataclass(frozen=True)
class VocabularySubset:
    """Tokens of the sentences of a batch. A search numbers the tokens of a sentence 0, 1, 2, ..., the common ones
    first."""

    common_C: Tensor
    """Tokens of all sentences, in rising order."""
    own_U: Tensor
    """Tokens of some sentences, in rising order."""
    lists: Lists
    vocabulary: int
    """Number of target tokens."""

    @classmethod
    def of(
        cls, common_C: npt.NDArray[np.int64], is_own_BV: npt.NDArray[np.bool_], device: torch.device
    ) -> VocabularySubset:
        """The subset of common tokens, in rising order, and of further tokens of each sentence."""
        row_E, token_E = np.divmod(np.flatnonzero(is_own_BV), is_own_BV.shape[1])
        length_B = np.bincount(row_E, minlength=len(is_own_BV))
        column_E = np.arange(len(row_E)) - np.repeat(np.cumsum(length_B) - length_B, length_B)
        is_any_V = np.bincount(token_E, minlength=is_own_BV.shape[1]) > 0
        index_V = np.cumsum(is_any_V) - 1
        token_BL = np.zeros((len(is_own_BV), length_B.max(initial=0)), dtype=np.int64)
        index_BL = np.zeros_like(token_BL)
        token_BL[row_E, column_E], index_BL[row_E, column_E] = token_E, index_V[token_E]
        own_U = np.flatnonzero(is_any_V)
        common, own, token, index, length = (
            torch.from_numpy(array).to(device) for array in (common_C, own_U, token_BL, index_BL, length_B)
        )
        return cls(common, own, Lists(token, index, length), is_own_BV.shape[1])

    @cached_property
    def token_BX(self) -> Tensor:
        """The token of each number of a sentence, and 0 behind the end of its list."""
        return torch.cat([self.common_C.expand(len(self.lists), -1), self.lists.token_BL], dim=1)


@dataclass(frozen=True)
class ShortlistMemory(BatchRecord, Generic[M]):
    """The memory of a batch of sentences, and the tokens of each."""

    memory: M
    token_BX: Tensor
    """See ``VocabularySubset``."""
    lists: Lists


@final
class ShortlistModel(Generic[M, S]):
    """A ``StepModel`` whose tokens are numbered as in ``VocabularySubset``."""

    training = False

    def __init__(self, model: Seq2Seq[M, S], subset: VocabularySubset) -> None:
        """``subset`` has the tokens of the sentences that will be encoded, row by row."""
        assert not model.training
        assert subset.vocabulary == model.output.vocabulary  # kernels do not check that
        self.pad = model.pad
        self._model = model
        self._subset = subset
        self._weight_CD, self._bias_C = model.output.rows(subset.common_C)
        self._of_lists = ListedLogits(model.output, subset.own_U)

    def encode(self, source_BS: Tensor) -> ShortlistMemory[M]:
        """See ``StepModel``."""
        return ShortlistMemory(self._model.encode(source_BS), self._subset.token_BX, self._subset.lists)

    def start(self, memory: ShortlistMemory[M]) -> S:
        """See ``StepModel``."""
        return self._model.start(memory.memory)

    def step(self, token_N: Tensor, memory: ShortlistMemory[M], state: S) -> Step[S]:
        """See ``StepModel``; -inf behind the end of a list."""
        token_BX, lists = memory.token_BX, memory.lists
        beams = len(token_N) // len(token_BX)
        token_N = token_BX.gather(1, token_N.view(-1, beams)).flatten()
        step = self._model.decoder.step(token_N, memory.memory, state)

        def logits(rows: slice) -> Tensor:
            readout_ND = step.readout_NR[rows]
            common_NC = F.linear(readout_ND, self._weight_CD, self._bias_C)
            first, _, _ = rows.indices(len(token_N))
            return torch.cat([common_NC, self._of_lists(readout_ND, lists, first, beams)], dim=1)

        vocabulary = token_BX.shape[1]
        find_top = partial(top_tokens_in_parts, logits, token_N, vocabulary)
        return Step(vocabulary, logits, find_top, step.weights, step.state)

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """See ``StepModel``."""
        first_N = self._model.first_token(rows, device)
        return torch.searchsorted(self._subset.common_C, first_N)


def with_shortlist(model: StepModel[Any, Any], subset: VocabularySubset) -> StepModel[Any, Any]:
    """The model, or ensemble, with the vocabulary of each sentence reduced to its tokens."""
    if isinstance(model, Ensemble):
        return Ensemble([with_shortlist(member, subset) for member in model.members])
    assert isinstance(model, Seq2Seq)
    return ShortlistModel(model, subset)
