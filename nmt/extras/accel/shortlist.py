"""The target tokens that a source sentence is likely to need: a lexical shortlist.

It has the most probable translations of each source token of the sentence, and the most frequent target tokens (Jean
et al. 2015, "On Using Very Large Target Vocabulary for Neural Machine Translation", section 3.3). The output layer then
computes hundreds of logits instead of the whole vocabulary's. Probabilities are those among the tokens of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import torch

from nmt.core.errors import InputError
from nmt.core.files import refuse_special
from nmt.data.vocabulary import EOS
from nmt.extras.accel.shortlist_model import VocabularySubset, with_shortlist
from nmt.models.step_model import StepModel
from nmt.search.hypothesis import WORD_END, Constraint, Hypothesis
from nmt.translator.find_run import SHORTLIST, run_of
from nmt.translator.loading import TrainedModel


@dataclass(frozen=True)
class Shortlist:
    """X source tokens, T target tokens altogether."""

    vocabulary: int
    """The number of target tokens that there are."""
    always_A: npt.NDArray[np.int64]
    """Tokens of every sentence; the special tokens are among them."""
    offsets_X1: npt.NDArray[np.int64]
    """Source token s has ``targets_T[offsets[s] : offsets[s + 1]]``."""
    targets_T: npt.NDArray[np.int64]

    def subset(
        self, sources: Sequence[Sequence[int]], further: Sequence[Sequence[int]], device: torch.device
    ) -> VocabularySubset:
        """The tokens of a batch of sentences, with ``further`` tokens of each."""
        is_own_BV = np.zeros((len(sources), self.vocabulary), dtype=bool)
        for is_own_V, tokens in zip(is_own_BV, further, strict=True):
            is_own_V[list(tokens)] = True
        # the targets of all source tokens, one after the other, and the sentence of each
        source_Y = np.fromiter(chain.from_iterable(sources), dtype=np.int64)
        row_Y = np.repeat(np.arange(len(sources)), [len(source) for source in sources])
        first_Y = self.offsets_X1[source_Y]
        count_Y = self.offsets_X1[source_Y + 1] - first_Y
        index_E = np.arange(count_Y.sum()) + np.repeat(first_Y - (np.cumsum(count_Y) - count_Y), count_Y)
        is_own_BV[np.repeat(row_Y, count_Y), self.targets_T[index_E]] = True
        is_own_BV[:, self.always_A] = False
        return VocabularySubset.of(np.unique(self.always_A), is_own_BV, device)

    def fits(self, source_tokens: int) -> bool:
        """True for a valid shortlist of that many source tokens."""
        offsets_X1 = self.offsets_X1
        if any(array.ndim != 1 or array.dtype != np.int64 for array in (self.always_A, offsets_X1, self.targets_T)):
            return False
        tokens_T = np.concatenate([self.always_A, self.targets_T])
        return (
            len(offsets_X1) == source_tokens + 1
            and offsets_X1[0] == 0
            and offsets_X1[-1] == len(self.targets_T)
            and bool((np.diff(offsets_X1) >= 0).all())
            and bool(((tokens_T >= 0) & (tokens_T < self.vocabulary)).all())
            and set(range(EOS + 1)) <= set(self.always_A.tolist())
        )

    def size(self, source: Sequence[int]) -> int:
        """Number of tokens of a sentence."""
        return self.subset([source], [()], torch.device("cpu")).token_BX.shape[1]

    def reduce(
        self,
        model: StepModel[Any, Any],
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]] | None,
        phrases: tuple[tuple[Constraint, ...], ...] | None,
        device: torch.device,
    ) -> ShortlistBatch:
        """See ``nmt.search.reduction.VocabularyReducer``."""
        further = [list(prefix) for prefix in prefixes or [()] * len(sources)]
        for tokens, of_sentence in zip(further, phrases or (), strict=False):
            tokens += (token for phrase in chain.from_iterable(of_sentence) for token in phrase if token != WORD_END)
        subset = self.subset(sources, further, device)
        token_BX = subset.token_BX.tolist()
        # special tokens are on every list and stand first in the vocabulary, so they keep their numbers
        assert subset.common_C[: EOS + 1].tolist() == list(range(EOS + 1))
        searched = with_shortlist(model, subset)
        if prefixes is None and phrases is None:
            return ShortlistBatch(searched, token_BX, None, None)
        # the first of equal tokens counts: padding repeats token 0
        number_of = [
            {WORD_END: WORD_END} | {row[number]: number for number in reversed(range(len(row)))} for row in token_BX
        ]
        return ShortlistBatch(
            searched,
            token_BX,
            None
            if prefixes is None
            else [[of[token] for token in prefix] for of, prefix in zip(number_of, prefixes, strict=True)],
            None
            if phrases is None
            else tuple(
                tuple(tuple(tuple(map(of.__getitem__, phrase)) for phrase in constraint) for constraint in of_sentence)
                for of, of_sentence in zip(number_of, phrases, strict=True)
            ),
        )


@dataclass(frozen=True)
class ShortlistBatch:
    """A batch whose target tokens are numbered by their position on the list of their sentence."""

    model: StepModel[Any, Any]
    token_BX: list[list[int]]
    """The token of each number; see ``VocabularySubset.token_BX``."""
    prefixes: Sequence[Sequence[int]] | None
    phrases: tuple[tuple[Constraint, ...], ...] | None

    def of_tokens(self, values_V: torch.Tensor) -> torch.Tensor:
        """See ``nmt.search.reduction.ReducedBatch``."""
        return values_V[torch.tensor(self.token_BX, device=values_V.device)]

    def restored(self, row: int, hypothesis: Hypothesis) -> Hypothesis:
        """See ``nmt.search.reduction.ReducedBatch``."""
        return replace(hypothesis, tokens=tuple(self.token_BX[row][number] for number in hypothesis.tokens))


def read_shortlist(trained: TrainedModel) -> Shortlist:
    """The shortlist of a model's run. Raises InputError where there is none, or none for its vocabulary."""
    path = run_of(trained.checkpoint) / SHORTLIST
    remedy = f"make it with: nmt shortlist {run_of(trained.checkpoint)}"
    refuse_special(path)
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            vocabulary = (file.metadata() or {}).get("vocabulary")
            always_A, offsets_X1, targets_T = (file.get_tensor(name) for name in ("always", "offsets", "targets"))
    except FileNotFoundError:
        raise InputError(f"search.shortlist: {path} is not there; {remedy}") from None
    except (safetensors.SafetensorError, OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: is damaged ({' '.join(str(error).split())}); {remedy}") from None
    if vocabulary != trained.tokenizers.fingerprint:
        raise InputError(f"{path}: is for another vocabulary than the model's; {remedy}")
    shortlist = Shortlist(trained.tokenizers.target.size, always_A, offsets_X1, targets_T)
    if not shortlist.fits(trained.tokenizers.source.size):
        raise InputError(f"{path}: is damaged (numbers that are no subwords); {remedy}")
    return shortlist
