"""The beginning of a translation while it is still searched for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from typing import TypeVar

from nmt.data.batching import TokenIds
from nmt.data.vocabulary import EOS
from nmt.data.words import is_unspaced
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.search.hypothesis import Constraint, Hypothesis
from nmt.translator.translator import Translator

T = TypeVar("T")

INTERVAL_S = 0.05
"""Minimum time between two beginnings of a translation, in seconds."""


@dataclass(frozen=True)
class SentenceBySentence:
    """Our own engine, which translates one sentence after the other. ``on_tokens`` is called after each step with the
    tokens of each sentence so far; the last one's are those that all of its hypotheses begin with."""

    engine: TorchEngine
    on_tokens: Callable[[list[Sequence[int]]], object]

    def translate_ids(
        self, sources: TokenIds, config: SearchConfig, *, prefixes: TokenIds | None = None,
        constraints: Sequence[Sequence[Constraint]] | None = None, scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:  # fmt: skip
        """See ``Engine``; there are no prefixes and constraints."""
        assert not prefixes
        assert not constraints
        found: list[tuple[Hypothesis, ...]] = []

        def observe(hypotheses: list[list[int]]) -> None:
            shared = _shared_start(hypotheses)
            end = shared.index(EOS) if EOS in shared else len(shared)
            self.on_tokens([*(ranked[0].tokens for ranked in found), shared[:end]])

        engine = replace(self.engine, observer=observe)
        for source in sources:
            found += engine.translate_ids([source], config, scored=scored)
        return found


@dataclass(frozen=True)
class _Known:
    """An engine that knows the translations of the first sentences, and has none of the others."""

    tokens: TokenIds

    def translate_ids(self, sources: TokenIds, config: SearchConfig, **options: object) -> list[tuple[Hypothesis, ...]]:
        pairs = zip_longest(sources, self.tokens, fillvalue=())
        return [(Hypothesis(tuple(tokens), 0.0, 0.0),) for _, tokens in pairs]


def streaming(translator: Translator, text: str, on_text: Callable[[str], object]) -> Translator:
    """Returns a translator of one text, which calls a function with the whole words of its translation so far, each
    time more of them. Only a search for the one most probable translation has such beginnings; other searches, and
    other engines, never call it."""
    engine = translator.engine
    search = translator.search
    changed_later = search.markup or search.replace_unknown
    if not isinstance(engine, TorchEngine) or search.n_best > 1 or changed_later:
        return translator

    next_s, longest = 0.0, 0

    def on_tokens(tokens: list[Sequence[int]]) -> None:
        nonlocal next_s, longest
        if time.monotonic() < next_s:
            return
        next_s = time.monotonic() + INTERVAL_S
        # the white space and the numbers that follow come without a translation, too
        known = (replace(translator, engine=_Known(part)) for part in (tokens, tokens[:-1]))
        texts = [part.candidates([text])[0][0].text for part in known]
        following = _shared_start([each[::-1] for each in texts])
        beginning = whole_words(texts[0][: len(texts[0]) - len(following)])
        if len(beginning) > longest:
            on_text(beginning)
            longest = len(beginning)

    return replace(translator, engine=SentenceBySentence(engine, on_tokens))


def _shared_start(sequences: Sequence[Sequence[T]]) -> list[T]:
    """Returns the elements that all of the sequences begin with."""
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*sequences, strict=False))
    return [first for first, *_ in columns]


def whole_words(text: str) -> str:
    """Returns a text without its last word, to which further subwords may belong; a character of a script without
    spaces is a word."""
    ends = (end for end in range(len(text), 0, -1) if text[end - 1].isspace() or is_unspaced(text[end - 1]))
    return text[: next(ends, 0)].rstrip()
