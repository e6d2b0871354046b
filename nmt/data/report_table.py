"""The report of prepare as a table."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.data.report import LineCount, Report


def report_table(report: Report) -> list[str]:
    """Formats the report as lines of text."""
    lines: list[str] = []
    for corpus in report.corpora:
        weight = "" if corpus.weight == 1 else f", weight {corpus.weight:g}"
        lines.append(f"train {corpus.name}{weight}")
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
    shown: Sequence[int] = count.first_lines
    more = ", …" if count.pairs > len(shown) else ""
    return f"line{'s' if count.pairs > 1 else ''} {', '.join(map(str, shown))}{more}"
