"""Scores by the length of the source, which show if a model is worse on long sentences than on short ones.

The sentences of a corpus are cut into buckets by the number of white-space words of their source (Bahdanau et al.
2015, figure 2), and each bucket is scored as a corpus of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nmt.core.errors import InputError
from nmt.data.words import is_punctuation, text_words
from nmt.evaluation.bootstrap import RESAMPLES, SEED, Estimate, interval, sentence_counts

EDGES = (5, 10, 15, 20, 25, 30)
"""The last length of each bucket except the last bucket, which has no end."""

FEW = 50
"""Number of sentences below which a bucket is marked: its score says little, and its interval is also computed from few
sentences."""


@dataclass(frozen=True)
class LengthScores:
    """The scores of the sentences whose source has from `first` to `last` words; if `last` is None there is no upper
    limit."""

    first: int
    last: int | None
    sentences: int
    bleu: Estimate
    chrf: Estimate

    @property
    def label(self) -> str:
        """Label of the bucket, such as "6-10" or "31+"."""
        return length_label(self.first, self.last)

    @property
    def is_few(self) -> bool:
        """Returns True if there are fewer than `FEW` sentences."""
        return self.sentences < FEW


def length_label(first: int, last: int | None) -> str:
    """Formats the label of a bucket of lengths: "0", "6-10", "31+"."""
    if last is None:
        return f"{first}+"
    return str(first) if first == last else f"{first}-{last}"


def _length(source: str) -> int:
    """Counts the words between white space, or by the rule for all scripts if those are several times as many."""
    spaced, words = len(source.split()), [source[begin:end] for begin, end in text_words(source)]
    ruled = sum(not is_punctuation(word) for word in words)
    return ruled if ruled > 3 * spaced else spaced


def by_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], *, edges: Sequence[int] = EDGES,
    lowercase: bool = False, tokenize: str | None = None, resamples: int = RESAMPLES, seed: int = SEED,
) -> tuple[LengthScores, ...]:  # fmt: skip
    """Computes BLEU and chrF of each bucket that contains a sentence, in order of length, with 95 % bootstrap
    intervals.

    `edges` are the last lengths of all buckets except the last: 5, 10 means 1-5, 6-10 and 11+. Blank sources form a
    bucket of their own, of length 0; in scripts without spaces, words are those of `nmt.data.words`. `lowercase` and
    `tokenize` are those of `translation.scores`. Raises InputError if there are no lines or their numbers differ,
    ValueError if edges are not rising or the first is below 1.
    """
    if not _rise(edges):
        raise ValueError(f"edges {tuple(edges)} do not rise from at least 1")
    if len(sources) != len(hypotheses):
        raise InputError(f"{len(sources)} sources but {len(hypotheses)} hypotheses: give one hypothesis per source")
    bleu, chrf = (
        sentence_counts(hypotheses, references, metric=metric, lowercase=lowercase, tokenize=tokenize)
        for metric in ("bleu", "chrf")
    )
    length_N = np.array([_length(source) for source in sources])
    scores = []
    for first, last in zip((0, 1, *(edge + 1 for edge in edges)), (0, *edges, None), strict=True):
        rows = np.flatnonzero((length_N >= first) & (length_N <= (length_N.max() if last is None else last)))
        if len(rows):
            estimates = [interval(counts.select(rows), resamples=resamples, seed=seed) for counts in (bleu, chrf)]
            scores.append(LengthScores(first, last, len(rows), *estimates))
    return tuple(scores)


def parse_edges(text: str, option: str = "--length-edges") -> tuple[int, ...]:
    """Parses edges from the words of an option. Raises InputError unless they are rising whole numbers from 1."""
    try:
        edges = tuple(int(edge) for edge in text.split(","))
    except ValueError:
        edges = ()
    if not _rise(edges):
        raise InputError(f"{option} {text}: give rising whole numbers of at least 1, such as 5,10,20")
    return edges


def as_tree(scores: Sequence[LengthScores]) -> list[dict[str, Any]]:
    """Returns a tree for JSON: for each bucket `first_words`, `last_words` (null means no limit), `sentences`, and for
    BLEU and chrF2 `value`, `low` and `high`, not rounded."""
    return [
        {
            "first_words": bucket.first,
            "last_words": bucket.last,
            "sentences": bucket.sentences,
            "BLEU": asdict(bucket.bleu),
            "chrF2": asdict(bucket.chrf),
        }
        for bucket in scores
    ]


def table(scores: Sequence[LengthScores]) -> list[str]:
    """Formats the lines of an aligned table."""
    rows = [("source words", "sentences", "", "BLEU", "95% interval", "chrF2", "95% interval")]
    for bucket in scores:
        bleu, chrf = bucket.bleu, bucket.chrf
        figures = [(f"{each.value:.1f}", f"{each.low:.1f} to {each.high:.1f}") for each in (bleu, chrf)]
        rows.append((bucket.label, str(bucket.sentences), "*" * bucket.is_few, *figures[0], *figures[1]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        label, count, mark, *cells = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        lines.append("  ".join([label, count + mark, *cells]).rstrip())
    if any(bucket.is_few for bucket in scores):
        lines.append(f"* fewer than {FEW} sentences: too few to rely on")
    return lines


def _rise(edges: Sequence[int]) -> bool:
    return len(edges) > 0 and edges[0] >= 1 and list(edges) == sorted(set(edges))
