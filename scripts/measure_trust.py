"""Measures the confidence of translations on a test set of a run, which it damages itself: German to English.

python scripts/measure_trust.py RUN SOURCE REFERENCE          a table, and a JSON line for each figure
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from measuring import plainly

import nmt
from nmt.data.corpus import read_blocks, read_lines
from nmt.extras.trust.calibrate import RIGHT, dropped_labels, sentence_chrf, spaced, unchanged_words
from nmt.extras.trust.damage import KINDS, damaged
from nmt.extras.trust.risk_coverage import calibration_error


def main(run: str, source: str, reference: str) -> None:
    """Prints all figures."""
    translator: Any = nmt.load(run, confidence=True)
    sources, references = list(read_lines(Path(source))), list(read_lines(Path(reference)))
    own = translator.translate(sources)
    p_N = np.array([one.confidence.right for one in own])
    chrf_N = np.array(sentence_chrf([one.text for one in own], references))
    show("Spearman with chrF", np.corrcoef(ranks(p_N), ranks(chrf_N))[0, 1])
    show("expected calibration error", calibration_error(p_N, chrf_N >= RIGHT))
    draws = np.random.default_rng(1).random((100, len(p_N)))  # what such probabilities would give if they were perfect
    show("the same of perfect probabilities", float(np.mean([calibration_error(p_N, x_N < p_N) for x_N in draws])))
    worst = p_N <= np.quantile(p_N, 0.1)
    show("chrF of the rest minus the worst tenth", chrf_N[~worst].mean() - chrf_N[worst].mean())
    words = [one.confidence.words for one in own]
    labels = [unchanged_words([x.text for x in of_one], text) for of_one, text in zip(words, references, strict=True)]
    show("AUROC right words", auroc([x.right for of_one in words for x in of_one], np.concatenate(labels)))
    block = next(read_blocks(translator.trained.experiment.data.train_corpora[0], 15000))  # more to learn links from
    sides = [*sources, *block.sources], [*references, *block.targets]
    links = [each.links for each in nmt.align(*([*map(spaced, side)] for side in sides))]
    whole = translator.estimator.of_pairs(translator.trained, sources, references)
    for kind, damage in KINDS.items():
        known = {row: x for row, x in enumerate(damaged(damage, references, seed=5)) if x}
        rows, damages = list(known), list(known.values())
        texts = [sources[row] for row in rows], [x.text for x in damages]
        found = translator.estimator.of_pairs(translator.trained, *texts)
        for name in ("right", "complete", "supported"):
            values = [getattr(x, name) for x in (*(whole[row] for row in rows), *found)]
            show(f"AUROC {kind} ({len(rows)}), by {name}", auroc(values, np.arange(len(values)) < len(rows)))
        is_right = [i not in x.wrong for x, one in zip(damages, found, strict=True) for i in range(len(one.words))]
        show(f"AUROC {kind} words", auroc([x.supported for one in found for x in one.words], is_right))
        triples = zip(rows, damages, found, strict=True)
        labels = [dropped_labels(links[row], x.dropped, len(one.source_words)) for row, x, one in triples]
        label = np.concatenate([[], *labels])
        p_J = np.array([word.translated for one in found for word in one.source_words])
        show(f"AUROC source words of {kind}", auroc(p_J[label == label], label[label == label]))


def show(name: str, value: float) -> None:
    """Prints a figure; NaN, where there is nothing to rank, is left out."""
    if value == value:
        print(f"{name:<42} {value:7.3f}", file=sys.stderr)
        print(json.dumps({"name": name, "value": round(float(value), 4)}))


def ranks(values: np.ndarray) -> np.ndarray:
    """Computes ranks from 1; equal values share their mean rank."""
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[index]


def auroc(values: list[float] | np.ndarray, is_right: list[bool] | np.ndarray) -> float:
    """Computes the probability that a right example has a higher value than a wrong one."""
    is_right = np.asarray(is_right, dtype=bool)
    right, wrong = is_right.sum(), (~is_right).sum()
    above = ranks(np.asarray(values))[is_right].sum() - right * (right + 1) / 2
    return float(above / (right * wrong)) if right and wrong else float("nan")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    plainly(lambda: main(*sys.argv[1:]))
