"""Scores of a file of word alignments against gold links, with bootstrap intervals; no model is needed."""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.alignment.error_rate import RATES, AlignmentScore, score_pair
from nmt.alignment.formats import read_gold
from nmt.alignment.link_files import read_links
from nmt.core import log
from nmt.core.errors import InputError
from nmt.evaluation.bootstrap import RESAMPLES, SEED, Estimate, percentile_interval, resampled_sums


@dataclass(frozen=True)
class AlignmentEvaluation:
    """The scores of a file of alignments."""

    score: AlignmentScore
    estimates: Mapping[str, Estimate]
    """Estimates by `aer`, `precision`, `recall` and `f1`, as fractions with 95 % intervals."""

    def lines(self) -> list[str]:
        """Formats a table in per cent."""
        lines = [f"{'':9}   rate    95% interval"]
        for key, each in self.estimates.items():
            interval = f"{100 * each.low:.1f} to {100 * each.high:.1f}"
            lines.append(f"{RATES[key]:9}  {100 * each.value:5.1f}  {interval:>14}")
        return [*lines, f"{self.score.sentences} sentences, {self.score.predicted} links, {self.score.sure} sure"]

    def tree(self) -> dict[str, Any]:
        """Returns a tree for JSON, not rounded, with stable keys: the counts, and each rate's `value`, `low` and
        `high`."""
        return self.score.as_dict() | {key: asdict(each) for key, each in self.estimates.items()}


def evaluate_alignment(
    hypothesis: Path, gold: Path, *, gold_base: int, json: bool, base: int | None = None
) -> AlignmentEvaluation:
    """Prints the scores of the links of a file in any format; ``base`` is that of ``read_links``. Possible links of the
    file count like sure ones.

    Raises InputError for files that cannot be read, hold invalid links, are empty or differ in their number of
    lines."""
    predicted = [record.links for record in read_links(hypothesis, base=base)]
    golds = read_gold(gold, base=gold_base)
    if not predicted:
        raise InputError(f"{hypothesis}: holds no line to score")
    if len(predicted) < len(golds):
        raise InputError(
            f"{hypothesis} has {len(predicted)} lines, but {gold} has {len(golds)}: they must agree line by line"
        )
    if len(predicted) > len(golds):
        log.warning(f"{gold}: judges the first {len(golds):,} of {len(predicted):,} lines of {hypothesis}")
    pairs = [score_pair(*pair) for pair in zip(predicted, golds, strict=False)]
    sums_RK = resampled_sums(np.array([astuple(each) for each in pairs], np.float64), resamples=RESAMPLES, seed=SEED)
    scores = [AlignmentScore(*map(int, sum_K)) for sum_K in sums_RK.tolist()]
    total = sum(pairs, AlignmentScore())
    estimates = {
        rate: Estimate(getattr(total, rate), *percentile_interval(np.array([getattr(each, rate) for each in scores])))
        for rate in RATES
    }
    result = AlignmentEvaluation(total, estimates)
    print(json_format.dumps(result.tree(), indent=1) if json else "\n".join(result.lines()))
    return result
