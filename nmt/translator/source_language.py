"""A warning for text that is not in the model's source language.

The measure is the cost of a text, in bits per character, under the frequencies of single source subwords in the
training corpus, relative to that of the corpus itself; `scripts/source_language.py` prints it. For other text of the
language and domain it is 1.0, on Multi30k and the shipped corpus; for the target language 1.8 to 1.9 with joint
subwords and 3.3 with separate ones, for a third language 3 and more, and for the same language in another domain 1.8.
If a model reads several languages, a text has the cost by the language that suits it best, except the target language.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmt.core.errors import InputError
from nmt.core.files import read_json, replace_file
from nmt.data.config import DataConfig
from nmt.data.store import Store
from nmt.data.tokenizer import Tokenizer

if TYPE_CHECKING:
    from nmt.translator.loading import TrainedModel

COUNTS = "source-counts.json"
"""File of a run with the counts of ``count_sources``."""

LEAST, ENOUGH, MOST = 12, 60, 600
"""Numbers of subwords of a text from which on it is checked, from which on a lower cost is enough for a warning, and
after which no more are read."""

MOST_PAIRS = 200_000
"""Number of pairs of a corpus that are counted, so that a large corpus does not delay a training or a translation."""

SUSPICIOUS, CERTAIN = 1.5, 1.8
"""Relative costs from which on a text causes a warning: a text of ``ENOUGH`` subwords, and a shorter one. One in a
hundred single sentences of the source language costs more than 1.6 to 1.8, but more than half of those of the target
language."""


def count_sources(store: Store, data: DataConfig, tokens: int) -> dict[str, list[int]]:
    """Counts how often each of ``tokens`` tokens occurs in the training sources of each language, in the first
    ``MOST_PAIRS`` pairs of each corpus. Keys are the names of the languages, or "" in a configuration without
    languages."""
    counts: dict[str, list[int]] = {}
    ends = np.searchsorted(store.corpus, range(len(store.corpora)), side="right").tolist()  # corpora are contiguous
    for corpus, begin, end in zip(data.train_corpora, [0, *ends[:-1]], ends, strict=True):
        name = corpus.languages[0] if corpus.languages else ""
        count_V = store.token_counts("source", tokens, begin, min(end, begin + MOST_PAIRS))
        counts[name] = (count_V + np.array(counts.get(name, 0))).tolist()
    return counts


def write_counts(run: Path, counts: Mapping[str, Sequence[int]]) -> None:
    """Writes the counts into a run, which may be copied without its prepared corpus."""
    replace_file(run / COUNTS, json.dumps(counts, separators=(",", ":")) + "\n")


class SourceLanguageCheck:
    """Checks the language of the first texts that a model is given."""

    @classmethod
    def of(cls, trained: TrainedModel) -> SourceLanguageCheck:
        """Creates the check for a model, by the counts in its run or, in an older run, by its prepared corpus. If it
        has neither, or the counts are of other subwords, nothing is checked."""
        run, data, tokenizer = trained.run, trained.experiment.data, trained.tokenizers.source
        targets = data.target_languages
        to = trained.experiment.search.to or (targets[0] if len(targets) == 1 else None)
        try:
            if (run / COUNTS).exists():
                return cls(tokenizer, read_json(run / COUNTS), to)
            store = Store.open((data.prepared or run / "prepared") / "train")
            return cls(tokenizer, count_sources(store, data, tokenizer.size), to)
        except (InputError, OSError, ValueError, TypeError, AttributeError, OverflowError):
            return cls(tokenizer, {})

    def __init__(self, tokenizer: Tokenizer, counts: Mapping[str, Sequence[int]], to: str | None = None) -> None:
        """``counts`` are those of ``count_sources``; texts should not be in the language ``to``."""
        self._tokenizer = tokenizer
        self._cost, self._characters, self._subwords = 0.0, 0, 0
        self.counts = list(counts.values())
        """The counts of each language."""
        self._relative_bits: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
        """Bits of each token, divided by the bits per character of the training text, for each language."""
        characters_V = np.array([len(piece) for piece in tokenizer.pieces(range(tokenizer.size))])
        for language, each in counts.items():
            count_V = np.array(each, np.float64)
            if count_V.shape != characters_V.shape or not 0 <= count_V.min() <= count_V.sum() < np.inf:
                raise ValueError("counts of other subwords")
            bits_V = np.log2((count_V + 0.5).sum() / (count_V + 0.5))
            if language != to and count_V.any():
                self._relative_bits.append(bits_V * (count_V @ characters_V) / (count_V @ bits_V))
        self.is_over = not self._relative_bits
        """True if no more texts need to be checked."""

    @property
    def relative_cost(self) -> float:
        """Cost of all texts so far, relative to the cost of the training corpus; 0 if there are no texts."""
        return self._cost / self._characters if self._characters else 0.0

    def relative_cost_of(self, text: str) -> float:
        """Computes the cost of one text, relative to the cost of the training corpus; 0 if there are no counts."""
        cost, characters, _ = self._measured(text)
        return cost / max(1, characters)

    def _measured(self, text: str) -> tuple[float, int, int]:
        """Returns the cost of a text, and its numbers of characters and subwords."""
        tokens = self._tokenizer.encode(text)
        cost = min((float(bits_V[tokens].sum()) for bits_V in self._relative_bits), default=0.0)
        return cost, sum(map(len, self._tokenizer.pieces(tokens))), len(tokens)

    def warning(self, texts: Iterable[str]) -> str | None:
        """Returns a warning about all texts so far, once, or None."""
        if self.is_over:
            return None
        for text in texts:
            if self._subwords < MOST and any(map(str.isalpha, text)):  # numbers and signs belong to every language
                cost, characters, subwords = self._measured(text)
                self._cost, self._characters = self._cost + cost, self._characters + characters
                self._subwords += subwords
        least = SUSPICIOUS if self._subwords >= ENOUGH else CERTAIN
        is_unlike = self._subwords >= LEAST and self.relative_cost >= least
        self.is_over = is_unlike or self._subwords >= MOST
        if not is_unlike:
            return None
        return (
            f"this text is unlike the source side of the training corpus (its subwords take {self.relative_cost:.1f} "
            "times as many bits per character): is it in another language, or of another kind?"
        )
