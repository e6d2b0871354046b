"""Measures the confidence of translations on a test set of a run, which it damages itself: German to English.

python scripts/measure_trust.py RUN SOURCE REFERENCE          a table, and a JSON line for each figure
"""

from __future__ import annotations

import json
import re
import sys
from itertools import islice
from pathlib import Path

import numpy as np

import nmt
from nmt.data.corpus import read_blocks, read_lines
from nmt.extras.trust.calibrate import RIGHT, dropped_labels, sentence_chrf, unchanged_words
from nmt.extras.trust.damage import KINDS, Damage, damaged
from nmt.extras.trust.risk_coverage import calibration_error

NEGATION = re.compile(r" not\b|n't\b|\b[Nn]ever |\b[Nn]o ")


def main(run: str, source: str, reference: str) -> None:
    """Prints all figures."""
    translator = nmt.load(run, confidence=True)
    sources, references = list(read_lines(Path(source))), list(read_lines(Path(reference)))
    own = translator.translate(sources)
    p_N = np.array([one.confidence.right for one in own])
    chrf_N = np.array(sentence_chrf([one.text for one in own], references))
    show("Spearman with chrF", float(np.corrcoef(ranks(p_N), ranks(chrf_N))[0, 1]))
    show("expected calibration error", calibration_error(p_N, chrf_N >= RIGHT))
    worst = p_N <= np.quantile(p_N, 0.1)
    show("chrF of the rest minus the worst tenth", chrf_N[~worst].mean() - chrf_N[worst].mean())
    words = [word for one in own for word in one.confidence.words]
    labels = np.concatenate(
        [
            unchanged_words([x.text for x in one.confidence.words], text)
            for one, text in zip(own, references, strict=True)
        ]
    )
    show("AUROC right words", auroc([word.right for word in words], labels))
    of_pairs = translator.estimator.of_pairs
    whole = of_pairs(translator.trained, sources, references)
    corpus = translator.trained.experiment.data.train_corpora[0]
    block = next(read_blocks(corpus, 15000))
    links = [
        x.links for x in islice(nmt.align([*sources, *block.sources], [*references, *block.targets]), len(sources))
    ]
    kinds = {
        **KINDS,
        "negation": lambda text, *_: Damage(NEGATION.sub(" ", text, 1)) if NEGATION.search(text) else None,
    }
    for kind, damage in kinds.items():
        damages = [(row, x) for row, x in enumerate(damaged(damage, references, seed=5)) if x is not None]
        found = of_pairs(translator.trained, [sources[row] for row, _ in damages], [x.text for _, x in damages])
        pairs = [
            (whole[row], x, row, of_x) for (row, x), of_x in zip(damages, found, strict=True) if of_x and whole[row]
        ]
        for name in ("right", "complete", "supported"):
            values = [getattr(x, name) for x, *_ in pairs] + [getattr(x, name) for *_, x in pairs]
            show(f"AUROC {kind} ({len(pairs)}), by {name}", auroc(values, np.arange(len(values)) < len(pairs)))
        if any(x.wrong for _, x, _, _ in pairs) and kind != "another":
            is_right = [index not in x.wrong for _, x, _, of_x in pairs for index in range(len(of_x.words))]
            show(
                f"AUROC {kind} words",
                auroc([w.supported for *_, of_x in pairs for w in of_x.words], np.array(is_right)),
            )
        if any(x.dropped for _, x, _, _ in pairs):
            label = np.concatenate(
                [dropped_labels(links[row], x.dropped, len(of_x.source_words)) for _, x, row, of_x in pairs]
            )
            values = np.array([word.translated for *_, of_x in pairs for word in of_x.source_words])
            show(f"AUROC source words of {kind}", auroc(values[label == label], label[label == label]))


def show(name: str, value: float) -> None:
    """Prints a figure."""
    print(f"{name:<42} {value:7.3f}", file=sys.stderr)
    print(json.dumps({"name": name, "value": round(float(value), 4)}))


def ranks(values: np.ndarray) -> np.ndarray:
    """Computes ranks from 1; equal values share their mean rank."""
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[index]


def auroc(values: list[float] | np.ndarray, is_right: np.ndarray) -> float:
    """Computes the probability that a right example has a higher value than a wrong one."""
    is_right = np.asarray(is_right, dtype=bool)
    right, wrong = is_right.sum(), (~is_right).sum()
    return float((ranks(np.asarray(values))[is_right].sum() - right * (right + 1) / 2) / max(right * wrong, 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
