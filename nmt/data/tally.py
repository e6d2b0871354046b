"""Counts of pairs and tokens, for the report of prepare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt.data.filters import DROPPED, Verdict
from nmt.data.report import FIRST_LINES, CorpusReport, LineCount, SideReport
from nmt.data.sentences import sentence_spans
from nmt.data.store import Ragged
from nmt.data.vocabulary import UNK

PERCENTILES = (0, 25, 50, 75, 95, 99, 100)


class LineCounter:
    """Counts lines, and remembers the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[int] = []

    def add(self, lines: npt.NDArray[np.int64]) -> None:
        """Counts lines by their numbers."""
        self.count += len(lines)
        self._first += lines[: FIRST_LINES - len(self._first)].tolist()

    def report(self) -> LineCount:
        """Returns the count so far."""
        return LineCount(pairs=self.count, first_lines=tuple(self._first))


class CorpusTally:
    """Counts the verdicts on one corpus, in the order of its lines."""

    def __init__(self, name: str, weight: float) -> None:
        self._name, self.weight = name, weight
        self._lines = {verdict: LineCounter() for verdict in Verdict}
        self._near = LineCounter()

    def add(self, first_line: int, verdicts: npt.NDArray[np.uint8], near: npt.NDArray[np.bool_]) -> None:
        """Counts the verdicts on consecutive lines. ``near`` marks lines that are near-duplicates and kept."""
        self._near.add(first_line + np.flatnonzero(near))
        for verdict, lines in self._lines.items():
            lines.add(first_line + np.flatnonzero(verdicts == verdict))

    @property
    def kept(self) -> int:
        """Number of pairs kept so far."""
        return self._lines[Verdict.KEPT].count

    def report(self) -> CorpusReport:
        """Returns the counts so far."""
        return CorpusReport(
            name=self._name, weight=self.weight, pairs=sum(lines.count for lines in self._lines.values()),
            kept=self.kept, near_duplicates=self._near.report(),
            dropped={verdict.label: self._lines[verdict].report() for verdict in DROPPED},
        )  # fmt: skip


class SideTally:
    """Counts the tokens of one language."""

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary
        self._tokens = self._unknown = self._words = 0
        self._lengths = np.zeros(0, np.int64)

    def add(self, rows: Ragged, words: int) -> None:
        """Counts the tokens of sentences, and their white-space words."""
        self._tokens += len(rows.values)
        self._unknown += int((rows.values == UNK).sum())
        self._words += words
        counts = np.bincount(rows.lengths, minlength=len(self._lengths))
        counts[: len(self._lengths)] += self._lengths
        self._lengths = counts

    @property
    def unknown(self) -> float:
        """Share of tokens that are unknown."""
        return self._unknown / max(self._tokens, 1)

    def report(self, *, rare: int) -> SideReport:
        """Returns the counts so far; ``rare`` is that of the report."""
        return SideReport(
            vocabulary=self._vocabulary, tokens=self._tokens, words=self._words, unknown=self.unknown,
            tokens_per_word=self._tokens / max(self._words, 1), lengths=_percentiles(self._lengths),
            rare=rare,
        )  # fmt: skip


class LineTally:
    """Counts source lines with several sentences and lines without a letter, in a sample of 1,024 or more lines of a
    block."""

    def __init__(self, language: str | None) -> None:
        """``language`` is that of ``sentence_spans``."""
        self._language = language
        self.lines = self.several = self.letterless = 0

    def add(self, lines: Sequence[str]) -> None:
        """Counts the lines of a block."""
        for line in lines[:: max(1, len(lines) // 1024)]:  # the splitter takes as long as the tokenizer
            self.lines += 1
            self.several += len(sentence_spans(line, self._language)) > 1
            self.letterless += not any(map(str.isalpha, line))


def _percentiles(counts: npt.NDArray[np.int64]) -> dict[str, int]:
    """Computes percentiles of a histogram: the smallest value that a given percentage of all values does not exceed."""
    sums = np.cumsum(counts)
    total = int(sums[-1]) if len(sums) else 0
    names = {0: "least", 50: "median", 100: "most"}
    return {
        names.get(percent, f"{percent}%"): int(np.searchsorted(sums, max(total * percent / 100, min(total, 1))))
        for percent in PERCENTILES
    }
