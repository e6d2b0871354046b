"""The report of prepare: `report.json`, and the same as a table to read."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from nmt.config.structure import Structure

FIRST_LINES = 10


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


def _row(label: str, count: int) -> str:
    return f"  {label:22} {count:>14,}"


def _lines(count: LineCount) -> str:
    shown: Sequence[int] = count.first_lines
    more = ", …" if count.pairs > len(shown) else ""
    return f"line{'s' if count.pairs > 1 else ''} {', '.join(map(str, shown))}{more}"
