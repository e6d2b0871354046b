"""A model's ways of aligning set beside each other: how far they agree, and the error rates of their links.

Jain & Wallace 2019, "Attention is not Explanation", ask the same of classifiers.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from nmt.alignment import Method
from nmt.alignment.agreement import Agreement, agreement
from nmt.alignment.error_rate import AlignmentScore, score_pair
from nmt.workflows.align import Given, gold_of, meet_files, windows
from nmt.workflows.align_models import Models

if TYPE_CHECKING:
    from nmt.translator.translator import Loader


@dataclass(frozen=True)
class Comparison:
    """What several methods make of the same sentence pairs."""

    sentences: int
    methods: tuple[Method, ...]
    scores: Mapping[Method, AlignmentScore] | None
    """Of each method's links, where there are gold links."""
    agreements: Mapping[tuple[Method, Method], Agreement]
    """Of each two methods' soft alignments between words."""

    def lines(self) -> list[str]:
        """One table or two for people; error rates in per cent."""
        width = max(len(f"{one} - {other}") for one, other in self.agreements)
        lines = []
        if self.scores is not None:
            lines.append(f"{'links':{width}}    AER  precision  recall  F1 (sure)  number")
            for method, score in self.scores.items():
                rates = f"{100 * score.aer:5.1f}  {100 * score.precision:9.1f}  {100 * score.recall:6.1f}"
                lines.append(f"{method:{width}}  {rates}  {100 * score.f1:9.1f}  {score.predicted:6}")
            lines.append("")
        lines.append(f"{'rank correlation':{width}}  Spearman  Kendall  target words")
        for (one, other), each in self.agreements.items():
            figures = f"{_figure(each.spearman):>8}  {_figure(each.kendall):>7}  {each.rows:12}"
            lines.append(f"{f'{one} - {other}':{width}}  {figures}")
        return lines

    def tree(self) -> dict[str, Any]:
        """For JSON, not rounded, with stable keys; null for what is not known."""
        return {
            "sentences": self.sentences,
            "methods": {method: self.scores and self.scores[method].as_dict() for method in self.methods},
            "agreement": [
                {"methods": list(pair), "spearman": each.spearman, "kendall": each.kendall, "target_words": each.rows}
                for pair, each in self.agreements.items()
            ],
        }


def compare(models: Models, given: Given, *, json: bool, load: Loader) -> Comparison:
    """Aligns the pairs of lines, or the source lines and their translations by the model, by every method that the
    one model admits. Prints how far the methods' soft alignments agree and, with gold links, the error rates of theirs.

    Raises InputError for files that cannot be read, do not have the same lines, or hold links outside their sentences.
    """
    meet_files(given.source, given.target, given.gold)
    translator = load(models.model, device=models.device, precision=models.precision, overrides=models.overrides)
    wanted = gold_of(given)
    methods = translator.aligner.methods
    scores = dict.fromkeys(methods, AlignmentScore())
    agreements = dict.fromkeys(combinations(methods, 2), Agreement())
    sentences = 0
    with closing(windows(translator, given.source, given.target)) as all_pairs:
        for window in all_pairs:
            found = translator.aligner.align(
                methods, window.sources, window.targets, first_line=window.first + 1, text=given.text
            )
            sentences += len(window.sources)
            if wanted is not None:
                for method in methods:
                    for number, alignment in enumerate(found[method], window.first):
                        scores[method] += score_pair(alignment.links, wanted[number])
            for one, other in agreements:
                for alignment, another in zip(found[one], found[other], strict=True):
                    agreements[one, other] += agreement(alignment.weights_TS, another.weights_TS)
    comparison = Comparison(sentences, methods, None if wanted is None else scores, agreements)
    print(json_format.dumps(comparison.tree(), indent=1) if json else "\n".join(comparison.lines()))
    return comparison


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
