"""Restrictions on the next token of a hypothesis.

Processors set the logits or log-probabilities of tokens that are not allowed to -inf, in place. All others keep their
value: probabilities are not renormalised, so the score of a hypothesis does not depend on the search that found it.

Shapes: N rows of hypotheses, T tokens so far, V vocabulary, B sentences, P tokens of a prefix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, final

import torch
from torch import Tensor

from nmt.core.device import uploaded
from nmt.data.batching import TokenIds, pad
from nmt.search.repetition import Repetitions, phrase_endings


class LogitsProcessor(Protocol):
    """Rules out tokens."""

    before: float
    """Number of tokens of a hypothesis from which on nothing is ruled out."""

    def __call__(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """Sets to -inf the tokens that may not follow ``tokens_NT``."""


@final
class Suppress:
    """Rules a token out as long as a hypothesis has less than ``before`` tokens."""

    def __init__(self, token: int, *, before: float = math.inf) -> None:
        self._token = token
        self.before = before

    def __call__(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """See ``LogitsProcessor``."""
        if tokens_NT.shape[1] < self.before:
            logits_NV[:, self._token] = -torch.inf


@final
class NoRepeat:
    """Prevents n-grams of tokens from occurring twice (Paulus et al. 2018, "A Deep Reinforced Model for Abstractive
    Summarization", section 2.5, for any n)."""

    before = math.inf

    def __init__(self, order: int) -> None:
        assert order > 0
        self._order = order

    def __call__(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """See ``LogitsProcessor``."""
        if tokens_NT.shape[1] < self._order:
            return
        ending_NW = phrase_endings(tokens_NT, self._order)
        # -inf for these and no limit for others; "amin" because several n-grams may end in one token
        limit_NW = logits_NV.new_full(ending_NW.shape, torch.inf).masked_fill(ending_NW >= 0, -torch.inf)
        logits_NV.scatter_reduce_(1, ending_NW.clamp(min=0), limit_NW, "amin")


@final
class LogitsProcessors:
    """All restrictions on a batch of sentences. A limit of length or a prefix forces a token, which other processors
    never rule out."""

    def __init__(
        self, max_length_B: Tensor, processors: Sequence[LogitsProcessor] = (), *, eos: int,
        prefixes: TokenIds | None = None, repetitions: Repetitions | None = None, device: torch.device | None = None,
    ) -> None:  # fmt: skip
        """``max_length_B`` (at least 1, on the CPU) counts end-of-sentence, which is forced as the last token.
        Hypotheses of a sentence begin with its prefix, which may be empty and is shorter than ``max_length_B``.
        Searches make the sentences pay for ``repetitions``. ``device`` is the device of the logits, by default the
        CPU."""
        self.limits: list[int] = max_length_B.tolist()
        self.repetitions = repetitions
        self._max_length_B = max_length_B if device is None else uploaded(max_length_B, device)
        self._eos = eos
        self._processors = processors
        self._prefix_BP: Tensor | None = None
        self._prefix_length_B: Tensor | None = None
        self._longest_prefix = 0
        if prefixes is not None:
            padded, length_B = pad(prefixes)
            self._prefix_BP = torch.from_numpy(padded).to(device)
            self._prefix_length_B = torch.from_numpy(length_B - 1).to(device)
            self._longest_prefix = max(map(len, prefixes))
            assert (length_B - 1 < self.limits).all(), "a prefix is as long as its sentence may get"

    def apply(self, logits_NV: Tensor, tokens_NT: Tensor, sentence_N: Tensor) -> None:
        """Processes the logits of rows whose sentences are ``sentence_N``, 0 <= b < B."""
        forced_N = self._forced_tokens(tokens_NT.shape[1], sentence_N)
        if forced_N is None:
            for processor in self._processors:
                processor(logits_NV, tokens_NT)
            return
        # the forced token keeps its logit as it was, and all others are ruled out
        is_free_N1, token_N1 = (forced_N < 0)[:, None], forced_N.clamp(min=0)[:, None]
        kept_N1 = logits_NV.gather(1, token_N1)
        for processor in self._processors:
            processor(logits_NV, tokens_NT)
        logits_NV.masked_fill_(~is_free_N1, -torch.inf)
        logits_NV.scatter_(1, token_N1, torch.where(is_free_N1, logits_NV.gather(1, token_N1), kept_N1))

    def is_unconstrained(self, time: int, shortest: int) -> bool:
        """Returns True if no token can be ruled out after ``time`` tokens; ``shortest`` is the smallest limit of the
        sentences."""
        least = max((processor.before for processor in self._processors), default=0)
        return max(least, self._longest_prefix) <= time < shortest - 1

    def _forced_tokens(self, time: int, sentence_N: Tensor) -> Tensor | None:
        """Returns the forced token of each row, -1 if it has none; None if no row has one."""
        forced_N: Tensor | None = None
        if self._prefix_BP is not None and self._prefix_length_B is not None and time < self._longest_prefix:
            # a row whose prefix is not complete takes its next token
            has_prefix_N = self._prefix_length_B[sentence_N] > time
            forced_N = self._prefix_BP[sentence_N, time].masked_fill(~has_prefix_N, -1)
        if time + 1 >= min(self.limits):
            # the last token that fits is end-of-sentence
            is_last_N = self._max_length_B[sentence_N] <= time + 1
            forced_N = torch.full_like(sentence_N, -1) if forced_N is None else forced_N
            forced_N = forced_N.masked_fill(is_last_N, self._eos)
        return forced_N
