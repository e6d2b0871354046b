"""The report of prepare: `report.json`, and its table."""

from __future__ import annotations

from nmt.config.structure import Structure

FIRST_LINES = 10


class LineCount(Structure):
    """A number of pairs, with the lines of the first few."""

    pairs: int = 0
    first_lines: tuple[int, ...] = ()
    """Line numbers of the first 10."""


class CorpusReport(Structure):
    """Counts of a training corpus. `pairs` is `kept` plus all of `dropped`."""

    name: str
    weight: float
    pairs: int
    kept: int
    dropped: dict[str, LineCount]
    near_duplicates: LineCount = LineCount()
    """Pairs that were kept and that filters.near_duplicates would have dropped."""


class ValidReport(Structure):
    """Counts of the validation corpus, of which nothing is dropped."""

    name: str
    pairs: int
    blank: LineCount
    """Pairs with a blank side."""
    too_long: LineCount
    """Pairs that filters.max_length would have dropped from training."""
    unknown: tuple[float, float]
    """Share of unknown tokens, source and target."""


class SideReport(Structure):
    """Counts of one language of the training pairs that were kept."""

    vocabulary: int
    tokens: int
    words: int
    unknown: float
    """Share of tokens that are unknown."""
    tokens_per_word: float
    rare: int = 0
    """Different words that are unknown by subwords.min_frequency."""
    lengths: dict[str, int]
    """Percentiles of tokens per sentence."""


class Report(Structure):
    """All figures that `nmt prepare` reports."""

    corpora: tuple[CorpusReport, ...]
    valid: ValidReport | None
    source: SideReport
    target: SideReport
    several: float | None = None
    """Share of source lines with a sentence end inside, by a sample."""
    letterless: float | None = None
    """Share of source lines without a letter, by the same sample."""

    @property
    def pairs(self) -> int:
        """Number of training pairs that were read."""
        return sum(corpus.pairs for corpus in self.corpora)

    @property
    def kept(self) -> int:
        """Number of training pairs that were kept."""
        return sum(corpus.kept for corpus in self.corpora)


def report_table(report: Report) -> list[str]:
    """Formats the report as lines of text."""
    lines: list[str] = []
    for corpus in report.corpora:
        lines.append(f"train {corpus.name}" + (f", weight {corpus.weight:g}" if corpus.weight != 1 else ""))
        lines.append(_row("pairs read", corpus.pairs))
        for name, dropped in corpus.dropped.items():
            if dropped.pairs:
                lines.append(_row(f"- {name}", dropped.pairs) + f"   {_lines(dropped)}")
        lines.append(_row("= kept", corpus.kept))
        if (near := corpus.near_duplicates).pairs:
            lines.append(_row("  near duplicates", near.pairs) + f"   kept; {_lines(near)}")
    if report.valid is not None:
        lines += [f"valid {report.valid.name}", _row("pairs", report.valid.pairs)]
        for name, count in (("blank side", report.valid.blank), ("longer than train's", report.valid.too_long)):
            if count.pairs:
                lines.append(_row(f"  {name}", count.pairs) + f"   kept; {_lines(count)}")
    lines.append(f"  {'':22} {'source':>14} {'target':>14}")
    sides = (report.source, report.target)
    for label, values in (
        ("vocabulary", [f"{side.vocabulary:,}" for side in sides]),
        ("rarer words", [f"{side.rare:,}" for side in sides] if any(side.rare for side in sides) else []),
        ("tokens", [f"{side.tokens:,}" for side in sides]),
        ("tokens per word", [f"{side.tokens_per_word:.2f}" for side in sides]),
        ("unknown", [f"{side.unknown:.3%}" for side in sides]),
        ("unknown in valid", [f"{share:.3%}" for share in report.valid.unknown] if report.valid else []),
        *((f"length {label}", [str(side.lengths[label]) for side in sides]) for label in report.source.lengths),
    ):
        if values:
            lines.append(f"  {label:22} {values[0]:>14} {values[1]:>14}")
    return lines


def _row(label: str, count: int) -> str:
    return f"  {label:22} {count:>14,}"


def _lines(count: LineCount) -> str:
    shown = count.first_lines
    more = ", …" if count.pairs > len(shown) else ""
    return f"line{'s' if count.pairs > 1 else ''} {', '.join(map(str, shown))}{more}"
