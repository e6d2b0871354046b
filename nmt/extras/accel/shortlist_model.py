"""A model whose sentences each choose among some tokens of the vocabulary: the output layer computes no other (Jean et
al. 2015, "On Using Very Large Target Vocabulary for Neural Machine Translation", section 3.2).

Tokens common to all sentences are one matrix product. For the others, kernels look up the rows of the weight that each
sentence needs; without kernels the tokens on any list are a matrix product, from which each sentence picks its own.

Shapes as in ``seq2seq``; X tokens of a sentence, C of them common to all sentences, L places of its own list, U tokens
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
from nmt.extras.accel import native
from nmt.extras.accel.int8 import Int8Weight, listed
from nmt.models.ensemble import Ensemble
from nmt.models.seq2seq import Seq2Seq, Step
from nmt.models.step_model import StepModel
from nmt.nn.output import OutputLayer, top_tokens_in_parts

M = TypeVar("M", bound=BatchRecord)
S = TypeVar("S", bound=BatchRecord)


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
        """None without a kernel for it."""
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


@dataclass(frozen=True)
class VocabularySubset:
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
    def of(
        cls, common_C: npt.NDArray[np.int64], is_own_BV: npt.NDArray[np.bool_], device: torch.device
    ) -> VocabularySubset:
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
class ShortlistMemory(BatchRecord, Generic[M]):
    """The memory of a batch of sentences, and what each chooses among."""

    memory: M
    token_BX: Tensor
    """See ``VocabularySubset``."""
    lists: Lists


@final
class ShortlistModel(Generic[M, S]):
    """A model as a search sees it: see ``StepModel``. Tokens are numbered as in ``VocabularySubset``."""

    training = False

    def __init__(self, model: Seq2Seq[M, S], choices: VocabularySubset) -> None:
        """``choices`` are those of the sentences that will be encoded, row by row."""
        assert not model.training
        assert choices.vocabulary == model.output.vocabulary  # which kernels do not look after
        self.pad = model.pad
        self._model = model
        self._choices = choices
        self._weight_CD, self._bias_C = model.output.rows(choices.common_C)
        self._of_lists = ListedLogits(model.output, choices.own_U)

    def encode(self, source_BS: Tensor) -> ShortlistMemory[M]:
        """See ``StepModel``."""
        choices = self._choices
        return ShortlistMemory(self._model.encode(source_BS), choices.token_BX, choices.lists)

    def start(self, memory: ShortlistMemory[M]) -> S:
        """See ``StepModel``."""
        return self._model.start(memory.memory)

    def step(self, token_N: Tensor, memory: ShortlistMemory[M], state: S) -> Step[S]:
        """See ``StepModel``; -inf for what is not among a sentence's tokens."""
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
        find_top = partial(top_tokens_in_parts, logits, len(token_N), vocabulary)
        return Step(vocabulary, logits, find_top, step.weights, step.state)

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """See ``StepModel``."""
        first_N = self._model.first_token(rows, device)
        return torch.searchsorted(self._choices.common_C, first_N)


def with_shortlist(model: StepModel[Any, Any], choices: VocabularySubset) -> StepModel[Any, Any]:
    """The same model, or ensemble, for a search in which the sentences of a batch choose among some tokens."""
    if isinstance(model, Ensemble):
        return Ensemble([with_shortlist(member, choices) for member in model.members])
    assert isinstance(model, Seq2Seq)
    return ShortlistModel(model, choices)
