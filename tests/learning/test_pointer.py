"""Names that no training pair has: after a few pairs, a model with a pointer copies them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import nmt
from nmt import experiment as experiments
from nmt.workflows.train import train

WORDS = {"met": "traf", "saw": "sah", "old": "alte", "kind": "gute", "today": "heute", "here": "hier", "the": "der"}
CONFIG = """\
run: {folder}/{copying}
data:
  train: {{source: {folder}/train.in, target: {folder}/train.out}}
  valid: {{source: {folder}/valid.in, target: {folder}/valid.out}}
  subwords: {{kind: bpe, size: 120, joint: true}}
model:
  embedding: {{size: 48}}
  encoder: {{kind: rnn, cell: gru, size: 48}}
  decoder: {{kind: rnn, cell: gru, size: 64, query: previous}}
  copying: {copying}
  dropout: {{embedding: 0.0, layers: 0.1}}
training:
  batching: {{batch_tokens: 600}}
  optimizer: {{learning_rate: 5.0e-3}}
  schedule: {{kind: linear, warmup: 30, hold: 0.3, final: 0.02}}
  stopping: {{updates: 300}}
  validation: {{every: 300}}
search: {{beam: 2}}
"""


def pairs(draw: random.Random, count: int) -> list[tuple[str, str, str]]:
    """Sentences about somebody, their translations and the names."""
    made = []
    for _ in range(count):
        name = "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(5, 9)))
        adjective, verb, adverb = (
            draw.choice(["old", "kind"]),
            draw.choice(["met", "saw"]),
            draw.choice(["today", "here"]),
        )
        source = f"the {adjective} {name} {verb} me {adverb}"
        made.append((source, f"{WORDS[adverb]} {WORDS[verb]} mich der {WORDS[adjective]} {name}", name))
    return made


@pytest.mark.slow
def test_made_up_names_are_copied(tmp_path: Path) -> None:
    draw = random.Random(1)
    for name, count in (("train", 65), ("valid", 20)):
        made = pairs(draw, count)
        for side, end in enumerate(("in", "out")):
            (tmp_path / f"{name}.{end}").write_text("".join(f"{each[side]}\n" for each in made))
    tested, copied = pairs(draw, 200), {}
    for copying in ("null", "pointer"):
        (tmp_path / "config.yaml").write_text(CONFIG.format(folder=tmp_path, copying=copying))
        run = train(experiments.load(tmp_path / "config.yaml"), precision="float32")
        translations = nmt.load(run, precision="float32").translate([source for source, _, _ in tested])
        copied[copying] = sum(
            name in each.text.split() for each, (_, _, name) in zip(translations, tested, strict=True)
        )
    assert copied["pointer"] >= 180
    assert copied["null"] < 40
