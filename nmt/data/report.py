"""The report of prepare: `report.json`, and the same as a table to read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from pydantic import Field

from nmt.config.structure import Structure
from nmt.data.filters import DROPPED, Verdict
from nmt.data.store import Ragged
from nmt.data.vocabulary import UNK

FIRST_LINES = 10
PERCENTILES = (0, 25, 50, 75, 95, 99, 100)


class LineCount(Structure):
    """Number of pairs, and the lines of the first few."""

    pairs: int = 0
    first_lines: tuple[int, ...] = Field((), description="line numbers of the first 10")


class CorpusReport(Structure):
    """One training corpus. `pairs` is `kept` plus all of `dropped`."""

    name: str
    weight: float
    pairs: int
    kept: int
    dropped: dict[str, LineCount]


class ValidReport(Structure):
    """The validation corpus. Nothing of it is dropped."""

    name: str
    pairs: int
    blank: LineCount = Field(description="pairs with a blank side")
    too_long: LineCount = Field(description="pairs that filters.max_length would have dropped from training")
    unknown: tuple[float, float] = Field(description="share of unknown tokens, source and target")


class SideReport(Structure):
    """One language of the training pairs that were kept."""

    vocabulary: int
    tokens: int
    words: int
    unknown: float = Field(description="share of tokens that are unknown")
    tokens_per_word: float
    lengths: dict[str, int] = Field(description="percentiles of tokens per sentence")


class Report(Structure):
    """Everything that `nmt prepare` reports."""

    corpora: tuple[CorpusReport, ...]
    valid: ValidReport | None
    source: SideReport
    target: SideReport

    @property
    def pairs(self) -> int:
        """Training pairs read."""
        return sum(corpus.pairs for corpus in self.corpora)

    @property
    def kept(self) -> int:
        """Training pairs kept."""
        return sum(corpus.kept for corpus in self.corpora)

    def table(self) -> str:
        """The report as lines to read."""
        lines: list[str] = []
        for corpus in self.corpora:
            weight = "" if corpus.weight == 1 else f", weight {corpus.weight:g}"
            lines.append(f"train {corpus.name}{weight}")
            lines.append(_row("pairs read", corpus.pairs))
            for name, dropped in corpus.dropped.items():
                if dropped.pairs:
                    lines.append(_row(f"- {name}", dropped.pairs) + f"   {_lines(dropped)}")
            lines.append(_row("= kept", corpus.kept))
        if self.valid is not None:
            lines += [f"valid {self.valid.name}", _row("pairs", self.valid.pairs)]
            for name, count in (("blank side", self.valid.blank), ("longer than train's", self.valid.too_long)):
                if count.pairs:
                    lines.append(_row(f"  {name}", count.pairs) + f"   kept; {_lines(count)}")
        lines.append(f"  {'':22} {'source':>14} {'target':>14}")
        for label, values in (
            ("vocabulary", [f"{side.vocabulary:,}" for side in (self.source, self.target)]),
            ("tokens", [f"{side.tokens:,}" for side in (self.source, self.target)]),
            ("tokens per word", [f"{side.tokens_per_word:.2f}" for side in (self.source, self.target)]),
            ("unknown", [f"{side.unknown:.3%}" for side in (self.source, self.target)]),
            ("unknown in valid", [f"{share:.3%}" for share in self.valid.unknown] if self.valid else []),
            *(
                (f"length {label}", [str(side.lengths[label]) for side in (self.source, self.target)])
                for label in self.source.lengths
            ),
        ):
            if values:
                lines.append(f"  {label:22} {values[0]:>14} {values[1]:>14}")
        return "\n".join(lines)


class CorpusTally:
    """Counts the verdicts on one corpus, in the order of its lines."""

    def __init__(self, name: str, weight: float) -> None:
        self._name, self._weight = name, weight
        self._counts = dict.fromkeys(Verdict, 0)
        self._first: dict[Verdict, list[int]] = {verdict: [] for verdict in DROPPED}

    def add(self, first_line: int, verdicts: npt.NDArray[np.uint8]) -> None:
        """Count the verdicts on consecutive lines."""
        for verdict in Verdict:
            here = np.flatnonzero(verdicts == verdict)
            self._counts[verdict] += len(here)
            if verdict is not Verdict.KEPT:
                room = FIRST_LINES - len(self._first[verdict])
                self._first[verdict] += [first_line + int(row) for row in here[:room]]

    def report(self) -> CorpusReport:
        """The counts so far."""
        return CorpusReport(
            name=self._name, weight=self._weight, pairs=sum(self._counts.values()), kept=self._counts[Verdict.KEPT],
            dropped={
                verdict.label: LineCount(pairs=self._counts[verdict], first_lines=tuple(self._first[verdict]))
                for verdict in DROPPED
            },
        )  # fmt: skip


class SideTally:
    """Counts the tokens of one language."""

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary
        self._tokens = self._unknown = self._words = 0
        self._lengths = np.zeros(0, np.int64)

    def add(self, rows: Ragged, words: int) -> None:
        """Count sentences as tokens, and their white-space words."""
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

    def report(self) -> SideReport:
        """The counts so far."""
        return SideReport(
            vocabulary=self._vocabulary, tokens=self._tokens, words=self._words, unknown=self.unknown,
            tokens_per_word=self._tokens / max(self._words, 1), lengths=_percentiles(self._lengths),
        )  # fmt: skip


def _percentiles(counts: npt.NDArray[np.int64]) -> dict[str, int]:
    """Percentiles of a histogram: the least value that so many percent of all do not exceed."""
    sums = np.cumsum(counts)
    total = int(sums[-1]) if len(sums) else 0
    names = {0: "least", 50: "median", 100: "most"}
    return {
        names.get(percent, f"{percent}%"): int(np.searchsorted(sums, max(total * percent / 100, min(total, 1))))
        for percent in PERCENTILES
    }


def _row(label: str, count: int) -> str:
    return f"  {label:22} {count:>14,}"


def _lines(count: LineCount) -> str:
    shown: Sequence[int] = count.first_lines
    more = ", …" if count.pairs > len(shown) else ""
    return f"line{'s' if count.pairs > 1 else ''} {', '.join(map(str, shown))}{more}"
