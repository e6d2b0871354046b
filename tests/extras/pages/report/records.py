"""Runs with figures that are known, and with text that a page must not take for its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nmt.alignment.formats import Alignment
from nmt.data.report import CorpusReport, LineCount, Report, SideReport
from nmt.evaluation.bootstrap import Estimate
from nmt.evaluation.by_length import LengthScores
from nmt.evaluation.translation import scores
from nmt.extras.pages.report import record
from nmt.extras.pages.report.record import looks

NASTY = "<script>document.title='taken'</script> </script> <!-- <b>& \" ' \x07 $1 \\1"
"""A name, a word or a path."""


def run(name: str = "one", *, seed: int = 0, updates: int = 40) -> record.Run:
    draw = np.random.default_rng(seed)
    figures = ("loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second")
    lines: list[dict[str, Any]] = []
    for n in range(1, updates + 1):
        values = 9 / n + seed, float(np.exp(9 / n)), 1e-3 / n, float(draw.random()), 5000.0 + n
        lines.append({"kind": "train", "update": n, **dict(zip(figures, values, strict=True))})
    valid = {"loss": 1.0, "perplexity": 2.7, "accuracy": 60.0, "bleu": 30.0, "chrf": 50.0}
    lines += [{"kind": "valid", "update": update, **valid} for update in (updates // 2, updates)]
    side = SideReport(vocabulary=10, tokens=9, words=8, unknown=0.0, tokens_per_word=1.125, lengths={"median": 3})
    dropped = {"empty": LineCount(pairs=2, first_lines=(1, 2)), "too long": LineCount()}
    corpus = CorpusReport(name=NASTY, weight=1.0, pairs=7, kept=5, dropped=dropped)
    report = Report(corpora=(corpus,), valid=None, source=side, target=side)
    details = {"seed": "1", "command": NASTY}
    parts = ("source embedding", "encoder", "attention", "target embedding", "decoder", "output")
    return record.Run(
        name=name,
        facts={"corpus": NASTY, "model": "GRU encoder", "updates": f"{updates} updates"},
        metrics=tuple(lines),
        parts=tuple(record.ModelPart(part, (f"{part} of {seed}",), 10 * place) for place, part in enumerate(parts, 1)),
        corpus=record.TrainingCorpus(report, np.array([0, 1, 3, 1]), np.array([0, 2, 2, 1])),
        translated=translated(seed),
        snapshots=snapshots(seed),
        notes=(),
        origin=record.Origin(details, f"run: {NASTY}\n", "greedy", "Each weight is a link.", 0.0),
    )


def translated(seed: int) -> record.ValidationTranslations:
    draw = np.random.default_rng(seed)
    references = [f"{NASTY} the dog sleeps", "a b c d e", "x y"]
    hypotheses = [f"{NASTY} the cat sleeps", "a b c d e", "x z"]
    samples, matrices = [], []
    for number, (reference, hypothesis) in enumerate(zip(references, hypotheses, strict=True), 1):
        source, target = tuple(f"{NASTY} der Hund".split()), tuple(hypothesis.split())
        steps_TS = draw.integers(0, 256, (len(target), len(source))) / 255
        matrices.append(steps_TS / steps_TS.sum(axis=1, keepdims=True))
        alignment = Alignment(source, target, ((0, 0),), steps_TS)
        samples.append(record.Sample(number, " ".join(source), reference, hypothesis, alignment))
    estimate = Estimate(40.0, 30.0, 50.0)
    return record.ValidationTranslations(
        sources=[f"{NASTY} der Hund"] * 3,
        references=references,
        hypotheses=hypotheses,
        scores=scores(hypotheses, references),
        lengths=(LengthScores(1, 5, 2, estimate, estimate), LengthScores(6, None, 60, estimate, estimate)),
        looks=looks(matrices),
        samples=tuple(samples),
    )


def snapshots(seed: int) -> record.Snapshots:
    """Draws snapshots of two pairs at three validations."""
    draw = np.random.default_rng(seed + 9)
    pairs, target = [], ("▁eins", "▁zwei", "drei", "</s>")
    for source in (("▁" + NASTY, "▁x", "</s>"), ("▁a", "</s>")):
        matrices = [draw.integers(1, 256, (4, len(source))) / 255 for _ in range(3)]
        words = source[:-1], target[:-1]
        pairs.append(tuple(Alignment(*words, (), each, "subword", source, target) for each in matrices))
    by_update = [[pair[place].weights_TS for pair in pairs] for place in range(3)]
    return record.Snapshots((10, 20, 30), tuple(pairs), tuple(looks(each) for each in by_update))


def bare(name: str) -> record.Run:
    """One of which nothing is known but its curves."""
    return replace(run(name), corpus=None, translated=None, snapshots=None, notes=("there is no corpus",))
