"""What a hypothesis may do next.

Rules see the logits or log-probabilities of the next token and set to -inf, in place, those of tokens that are not
allowed. What is left keeps its value: probabilities are those of the model, not renormalised, so that a score is the
same however the hypothesis was found.

Shapes: N rows of hypotheses, T tokens so far, V vocabulary, B sentences, P tokens of a prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

import torch
from torch import Tensor

from nmt.data.batching import pad


class Ban(Protocol):
    """Rules out tokens."""

    def __call__(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """Sets to -inf what may not follow on ``tokens_NT``."""


@final
class Shortest:
    """Before ``length`` tokens a hypothesis does not end."""

    def __init__(self, length: int, *, eos: int) -> None:
        self._length = length
        self._eos = eos

    def __call__(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """See ``Ban``."""
        if tokens_NT.shape[1] < self._length:
            logits_NV[:, self._eos] = -torch.inf


@final
class NoRepeat:
    """No n-gram of tokens comes twice (Paulus et al. 2018, "A Deep Reinforced Model for Abstractive Summarization",
    section 2.5, for any n)."""

    def __init__(self, order: int) -> None:
        assert order > 0
        self._order = order

    def __call__(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """See ``Ban``."""
        before = self._order - 1
        if tokens_NT.shape[1] < self._order:
            return
        grams_NWn = tokens_NT.unfold(1, self._order, 1)
        last_N1b = tokens_NT[:, None, tokens_NT.shape[1] - before :]
        row_M, place_M = (grams_NWn[:, :, :before] == last_N1b).all(dim=2).nonzero(as_tuple=True)
        logits_NV[row_M, grams_NWn[row_M, place_M, before]] = -torch.inf


@final
class Rules:
    """All that holds for a batch of sentences. A limit and a prefix leave one token, which no ban rules out."""

    def __init__(
        self,
        max_length_B: Tensor,
        *,
        eos: int,
        prefixes: Sequence[Sequence[int]] | None = None,
        bans: Sequence[Ban] = (),
    ) -> None:
        """``max_length_B`` (at least 1) counts end-of-sentence, which a hypothesis of that length takes as its last
        token. Hypotheses of a sentence begin with its prefix, which may be empty and is shorter than that; None: no
        sentence has one."""
        self.max_length_B = max_length_B
        self._eos = eos
        self._bans = bans
        self._shortest = int(max_length_B.min())
        self._prefix_BP: Tensor | None = None
        self._prefix_length_B: Tensor | None = None
        self._longest_prefix = 0
        if prefixes is not None:
            padded, length_B = pad(prefixes)
            device = max_length_B.device
            self._prefix_BP = torch.from_numpy(padded).to(device)
            self._prefix_length_B = torch.from_numpy(length_B - 1).to(device)
            self._longest_prefix = max(map(len, prefixes))
            assert bool((self._prefix_length_B < max_length_B).all()), "a prefix is as long as its sentence may get"

    def apply(self, logits_NV: Tensor, tokens_NT: Tensor, sentence_N: Tensor) -> None:
        """``sentence_N`` is the number of the sentence, 0 <= b < B, that each row is a hypothesis of."""
        only_N = self._only(tokens_NT.shape[1], sentence_N)
        if only_N is None:
            for ban in self._bans:
                ban(logits_NV, tokens_NT)
            return
        has_choice_N1, token_N1 = (only_N < 0)[:, None], only_N.clamp(min=0)[:, None]
        kept_N1 = logits_NV.gather(1, token_N1)
        for ban in self._bans:
            ban(logits_NV, tokens_NT)
        logits_NV.masked_fill_(~has_choice_N1, -torch.inf)
        logits_NV.scatter_(1, token_N1, torch.where(has_choice_N1, logits_NV.gather(1, token_N1), kept_N1))

    def leaves_all(self, time: int, sentence_N: Tensor) -> bool:
        """Whether all rows have the choice of all tokens after ``time`` others, and that is known without a look."""
        return not self._bans and self._only(time, sentence_N) is None

    def _only(self, time: int, sentence_N: Tensor) -> Tensor | None:
        """The one token that each row may take, -1 where there is a choice; None: all have one. To find out what
        cannot be would cost a pass over the logits at each step."""
        only_N: Tensor | None = None
        if self._prefix_BP is not None and self._prefix_length_B is not None and time < self._longest_prefix:
            is_given_N = self._prefix_length_B[sentence_N] > time
            only_N = self._prefix_BP[sentence_N, time].masked_fill(~is_given_N, -1)
        if time + 1 >= self._shortest:
            is_last_N = self.max_length_B[sentence_N] <= time + 1
            only_N = torch.full_like(sentence_N, -1) if only_N is None else only_N
            only_N = only_N.masked_fill(is_last_N, self._eos)
        return only_N
