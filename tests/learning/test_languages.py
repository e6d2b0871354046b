"""One model copies or reverses digits, as the token for the target language says."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import nmt
from nmt import experiment as experiments
from nmt.training import metrics
from nmt.workflows.train import train

CONFIG = """\
run: {folder}/run
data:
  train:
    - {{source: {folder}/train.in, target: {folder}/train.in, languages: [digits, copied]}}
    - {{source: {folder}/train.in, target: {folder}/train.out, languages: [digits, reversed]}}
  valid:
    - {{source: {folder}/valid.in, target: {folder}/valid.in, languages: [digits, copied]}}
    - {{source: {folder}/valid.in, target: {folder}/valid.out, languages: [digits, reversed]}}
  subwords: {{kind: word, size: 100}}
  filters: {{identical: false, duplicates: false, held_out: none}}
model:
  embedding: {{size: 32}}
  encoder: {{kind: rnn, cell: lstm, size: 48}}
  decoder: {{kind: rnn, cell: lstm, size: 64}}
  dropout: {{embedding: 0.0, layers: 0.1}}
training:
  batching: {{batch_tokens: 800}}
  optimizer: {{learning_rate: 5.0e-3}}
  schedule: {{kind: linear, warmup: 30, hold: 0.3, final: 0.02}}
  stopping: {{updates: 900}}
  validation: {{every: 900}}
search: {{beam: 1}}
alignment: argmax
"""


@pytest.mark.slow
def test_one_model_copies_and_reverses_by_its_token(tmp_path: Path) -> None:
    draw = random.Random(1)
    for name, count in (("train", 3000), ("valid", 100)):
        lines = [draw.choices("0123456789", k=draw.randint(3, 8)) for _ in range(count)]
        (tmp_path / f"{name}.in").write_text("".join(f"{' '.join(line)}\n" for line in lines))
        (tmp_path / f"{name}.out").write_text("".join(f"{' '.join(reversed(line))}\n" for line in lines))
    (tmp_path / "config.yaml").write_text(CONFIG.format(folder=tmp_path))
    run = train(experiments.load(tmp_path / "config.yaml"), precision="float32")
    translator = nmt.load(run, precision="float32")
    sources = (tmp_path / "valid.in").read_text().splitlines()
    for to, name in (("copied", "in"), ("reversed", "out")):
        targets = (tmp_path / f"valid.{name}").read_text().splitlines()
        found = [each.text for each in translator.to(target_language=to).translate(sources)]
        assert np.mean([one == other for one, other in zip(found, targets, strict=True)]) >= 0.95
        alignments = translator.to(target_language=to).align(sources, targets)
        places = [range(len(line.split())) for line in sources]
        expected = [[(place if name == "in" else len(of) - 1 - place, place) for place in of] for of in places]
        right = [link in each.links for each, links in zip(alignments, expected, strict=True) for link in links]
        assert np.mean(right) >= 0.95
    last = [line for line in metrics.read(run) if line["kind"] == "valid"][-1]
    assert min(last["bleu digits-copied"], last["bleu digits-reversed"]) >= 90
