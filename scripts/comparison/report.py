"""The report: comparison.md and comparison.json, with pictures beside them, and the section of a documentation page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from comparison.budget import write_whole
from comparison.findings import answers, number, signed
from comparison.measure import BEAM
from comparison.results import Corpus, Missing, Result
from nmt.core.errors import InputError
from nmt.evaluation.bootstrap import RESAMPLES

MARKER = "<!-- comparison -->"

_RATES = {"AER": ("attention", "grow"), "AER argmax": ("attention", "argmax"), "AER gradient": ("gradient", "grow")}
"""The table's columns of error rates: method and rule."""


@dataclass(frozen=True)
class Picture:
    """A picture beside the report."""

    file: str
    title: str
    caption: str


@dataclass(frozen=True)
class Conditions:
    """Under which all was trained and measured, for the text above the table."""

    config: str
    budget: str
    seeds: tuple[int, ...]
    split: str
    sentences: int
    gold: int | None
    """Pairs with gold links; None: none were given."""

    def text(self, results: Sequence[Result]) -> str:
        """A paragraph."""
        seeds = (
            "seed " + str(self.seeds[0]) if len(self.seeds) == 1 else f"seeds {', '.join(map(str, self.seeds))} pooled"
        )
        precision = ", ".join(dict.fromkeys(each.precision for each in results))
        text = (
            f"Every system is `{self.config}` with one part exchanged, trained for {self.budget} on one thread "
            f"({seeds}, {precision}), and measured after its last update on {self.sentences:,} sentences "
            f"({self.split}). BLEU and chrF2 are sacreBLEU's, with beam {BEAM}; in brackets are 95 % intervals of "
            f"{RESAMPLES:,} bootstrap resamples of the sentences, paired ones for the difference to the baseline; ≈ "
            "marks what is within noise. Perplexity is that of the references while the model reads them, and while "
            "it reads its own words. Entropy is that of a target word's weights over the source words, in bits, on "
            "the mean. Speed is in target tokens for each CPU second of training."
        )
        spent = sorted(each.speed.cpu_minutes for each in results)
        if spent[-1] > 1.1 * spent[0]:
            text += (
                f" The machine's speed changes with what else runs on it, so training really took {spent[0]:.1f} to "
                f"{spent[-1]:.1f} CPU minutes, as the last column says: the budget is the same within that."
            )
        signatures = dict.fromkeys(f"`{signature}`" for each in results for signature in each.signatures)
        text += f" Signatures: {', '.join(signatures)}."
        if self.gold is not None:
            text += (
                f" AER is the alignment error rate on {self.gold:,} pairs with gold links: of attention, with links by "
                "`grow` and by `argmax`, and of gradients, with links by `grow`."
            )
        return text


def table(results: Sequence[Result]) -> list[str]:
    """One row for each system, in Markdown."""
    rates = [(title, of) for title, of in _RATES.items() if any(_rate(each, *of) for each in results)]
    head = ["", "system", "BLEU", "to the baseline", "chrF2", "perplexity", "own words", "entropy"]
    head += [*(title for title, _ in rates), "tokens/s", "updates", "CPU min"]
    rows, group = [], ""
    for each in results:
        rows.append(["" if each.system.group == group else each.system.group, _name(each), *_figures(each)])
        rows[-1] += [f"{rate:.1f}" if (rate := _rate(each, *of)) is not None else "–" for _, of in rates]
        speed = each.speed
        minutes = f"{'' if speed.is_whole else '≥ '}{speed.cpu_minutes:.1f}"
        rows[-1] += [f"{speed.tokens_per_second:,.0f}", f"{speed.updates:,.0f}", minutes]
        group = each.system.group
    return _markdown(head, rows, text_columns=2)


def length_table(results: Sequence[Result]) -> list[str]:
    """BLEU by the number of source words."""
    labels = list(dict.fromkeys(bucket.label for each in results for bucket in each.lengths))
    sentences = {bucket.label: bucket.sentences for each in results for bucket in each.lengths}
    rows = []
    for each in results:
        scores = {bucket.label: bucket.bleu for bucket in each.lengths}
        rows.append(
            [
                _name(each, full=True),
                *(
                    f"{scores[label].value:.1f} ({scores[label].low:.1f} to {scores[label].high:.1f})"
                    for label in labels
                ),
            ]
        )
    return _markdown(["system", *(f"{label} words ({sentences[label]:,})" for label in labels)], rows, text_columns=1)


def markdown(
    conditions: Conditions,
    results: Sequence[Result],
    missing: Sequence[Missing],
    corpus: Corpus,
    pictures: Sequence[Picture],
    folder: str,
) -> str:
    """The whole report; ``folder`` is where the pictures stand, seen from the page."""
    shown = [f"![{each.title}]({folder}{each.file})\n\n{each.caption}\n" for each in pictures]
    parts = [conditions.text(results), "", *table(results), ""]
    if missing:
        parts += ["Not in the table:", "", *(f"- `{each.system.key}`: {each.reason}" for each in missing), ""]
    parts += [*answers(results, corpus), "", "### By length", ""]
    parts += [
        "BLEU by the number of words of the source, with the number of sentences.",
        "",
        *length_table(results),
        "",
    ]
    return "\n".join([*parts, *shown])


def write(
    output: Path,
    conditions: Conditions,
    results: Sequence[Result],
    missing: Sequence[Missing],
    corpus: Corpus,
    pictures: Sequence[Picture],
) -> Path:
    """Writes the report; returns the Markdown's path."""
    tree = {
        "conditions": asdict(conditions),
        "systems": [each.tree() for each in results],
        "missing": {each.system.key: each.reason for each in missing},
    }
    write_whole(output / "comparison.json", json.dumps(tree, indent=1, ensure_ascii=False) + "\n")
    text = markdown(conditions, results, missing, corpus, pictures, "")
    write_whole(output / "comparison.md", f"# Attention mechanisms compared\n\n{text}")
    return output / "comparison.md"


def check_page(page: Path) -> None:
    """Raises InputError unless the page has the two markers between which the report goes."""
    try:
        found = page.read_text(encoding="utf-8").count(MARKER)
    except OSError as error:
        raise InputError(f"--docs {page}: cannot be read: {error.strerror}") from None
    if found != 2:
        raise InputError(f"--docs {page}: has {found} lines {MARKER}; the report goes between two of them")


def paste(page: Path, text: str, pictures: Sequence[Path]) -> None:
    """Puts the report between the page's markers, and the pictures into the folder pictures beside the page."""
    check_page(page)
    folder = page.parent / "pictures"
    folder.mkdir(exist_ok=True)
    for picture in pictures:
        shutil.copyfile(picture, folder / picture.name)
    before, _, after = page.read_text(encoding="utf-8").split(MARKER)
    write_whole(page, f"{before}{MARKER}\n{text.strip()}\n{MARKER}{after}")


def _name(result: Result, *, full: bool = False) -> str:
    if result.is_baseline:
        return f"**{', '.join(result.names.values())}**" if result.names else "**baseline**"
    return f"`{result.system.key}`" if full else f"`{result.system.name}`"


def _figures(result: Result) -> list[str]:
    bleu = result.bleu_estimate
    difference = ""
    if (paired := result.to_baseline) is not None:
        noise = "" if paired.significant else "≈ "
        difference = f"{noise}{signed(paired.difference)} ({number(paired.low)} to {number(paired.high)})"
    return [
        f"{bleu.value:.1f} ({bleu.low:.1f} to {bleu.high:.1f})",
        difference,
        f"{result.chrf_estimate.value:.1f}",
        f"{result.perplexity.forced:,.1f}",
        f"{result.perplexity.free:,.1f}",
        "–" if result.entropy is None else f"{abs(result.entropy):.2f}",
    ]


def _rate(result: Result, method: str, rule: str) -> float | None:
    return result.error_rates.get(method, {}).get(rule)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int) -> list[str]:
    rule = ["---"] * text_columns + ["---:"] * (len(head) - text_columns)
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
