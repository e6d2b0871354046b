"""Copying and reversing digits, which a model with attention must learn, alignments included."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import nmt
from nmt.alignment.error_rate import Gold, score
from nmt.core.structure import parse_document, validate
from nmt.evaluation.translation import scores
from nmt.experiment import Experiment
from nmt.workflows.train import train

CONFIG = """\
run: {folder}/run
data:
  train: {{source: {folder}/train.source, target: {folder}/train.target}}
  valid: {{source: {folder}/valid.source, target: {folder}/valid.target}}
  subwords: {{kind: word, size: 100}}
  filters: {{identical: false, duplicates: false}}
model:
  embedding: {{size: 32}}
  encoder: {{kind: rnn, cell: {cell}, size: 48}}
  decoder: {{kind: rnn, cell: {cell}, size: 64, query: {query}, input_feeding: {feeding}}}
  attention: {{score: {score}}}
  dropout: {{embedding: 0.0, layers: 0.1}}
training:
  batching: {{batch_tokens: 800}}
  optimizer: {{learning_rate: 5e-3}}
  schedule: {{kind: linear, warmup: 30, hold: 0.3, final: 0.02}}
  stopping: {{updates: 700}}
  validation: {{every: 350, metric: loss}}
search: {{beam: 3}}
alignment: argmax
"""


def write(folder: Path, *, reverse: bool) -> None:
    draw = random.Random(5)
    for name, count in (("train", 4000), ("valid", 50), ("test", 100)):
        sources = [[str(draw.randrange(10)) for _ in range(draw.randint(3, 9))] for _ in range(count)]
        targets = [list(reversed(source)) if reverse else source for source in sources]
        for side, lines in (("source", sources), ("target", targets)):
            (folder / f"{name}.{side}").write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize(
    ("cell", "query", "feeding", "score_name"),
    [
        ("lstm", "current", "true", "additive"),
        ("gru", "previous", "false", "additive"),
        ("lstm", "current", "false", "general"),
        ("lstm", "current", "false", "additive"),
    ],
)
def test_digits(tmp_path: Path, task: str, cell: str, query: str, feeding: str, score_name: str) -> None:
    write(tmp_path, reverse=task == "reverse")
    text = CONFIG.format(folder=tmp_path, cell=cell, query=query, feeding=feeding, score=score_name)
    run = train(validate(Experiment, parse_document(text, "config.yaml")), precision="float32")
    translator = nmt.load(run, precision="float32")
    sources, targets = (
        (tmp_path / f"test.{side}").read_text(encoding="utf-8").splitlines() for side in ("source", "target")
    )
    (bleu,) = scores([each.text for each in translator.translate(sources)], targets, metrics=("bleu",))
    assert bleu.value > 97
    alignments = translator.align(sources, targets)
    gold = []
    for source in sources:
        length = len(source.split())
        links = {(length - 1 - t if task == "reverse" else t, t) for t in range(length)}
        gold.append(Gold(frozenset(links)))
    assert score([each.links for each in alignments], gold).aer < 0.1
    if task == "reverse":  # the weight itself lies on the anti-diagonal
        on_it = [np.mean(np.diag(np.fliplr(each.weights_TS))) for each in alignments]
        assert np.mean(on_it) > 0.8
