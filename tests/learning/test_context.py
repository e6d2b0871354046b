"""Pronouns whose translation the sentence before decides, as in the German "er", "sie" and "es"."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import nmt
from nmt import experiment as experiments
from nmt.training import metrics
from nmt.workflows.train import train

NOUNS = {
    "er": ["Tisch", "Hut", "Ball", "Stein", "Baum"],
    "sie": ["Lampe", "Tür", "Uhr", "Karte", "Bank"],
    "es": ["Buch", "Bild", "Haus", "Tuch", "Rad"],
}
"""The translation of "it" by the noun that it stands for."""

ADJECTIVES = {"big": "groß", "old": "alt", "new": "neu", "small": "klein", "red": "rot", "here": "da"}

CONFIG = """\
run: {folder}/{context}
data:
  train: {{source: {folder}/train.in, target: {folder}/train.out}}
  valid: {{source: {folder}/valid.in, target: {folder}/valid.out}}
  context: {context}
  subwords: {{kind: word, size: 100}}
  filters: {{duplicates: false, held_out: none}}
model:
  embedding: {{size: 32}}
  encoder: {{kind: rnn, cell: gru, size: 32}}
  decoder: {{kind: rnn, cell: gru, size: 48}}
  dropout: {{embedding: 0.0, layers: 0.1}}
training:
  batching: {{batch_tokens: 800}}
  optimizer: {{learning_rate: 5.0e-3}}
  schedule: {{kind: linear, warmup: 30, hold: 0.3, final: 0.02}}
  stopping: {{updates: {updates}}}
  validation: {{every: {updates}}}
search: {{beam: 1}}
"""


def documents(draw: random.Random, count: int) -> list[tuple[str, str]]:
    """Documents of two sentences with a blank line behind each: one about a noun, and "it is old" about that noun."""
    lines = []
    for _ in range(count):
        pronoun = draw.choice(list(NOUNS))
        noun, (one, other) = draw.choice(NOUNS[pronoun]), draw.sample(list(ADJECTIVES), 2)
        lines += [(f"the {noun} is {one}", f"{noun} ist {ADJECTIVES[one]}")]
        lines += [(f"it is {other}", f"{pronoun} ist {ADJECTIVES[other]}"), ("", "")]
    return lines


@pytest.mark.slow
def test_only_a_model_with_context_knows_what_it_stands_for(tmp_path: Path) -> None:
    draw = random.Random(1)
    for name, count in (("train", 1500), ("valid", 100)):
        pairs = documents(draw, count)
        for side, end in enumerate(("in", "out")):
            (tmp_path / f"{name}.{end}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    sources = (tmp_path / "valid.in").read_text().splitlines()
    targets = (tmp_path / "valid.out").read_text().splitlines()
    places = range(1, len(sources), 3)  # of the sentences with "it"
    right, valid = {}, {}
    for context in (0, 1):
        (tmp_path / "config.yaml").write_text(CONFIG.format(folder=tmp_path, context=context, updates=300))
        run = train(experiments.load(tmp_path / "config.yaml"), precision="float32")
        translator = nmt.load(run, precision="float32")
        lines = translator.document().sentences(sources) if context else sources
        found = [each.text for each in translator.translate(lines)]
        right[context] = np.mean([found[place] == targets[place] for place in places])
        valid[context] = [line for line in metrics.read(run) if line["kind"] == "valid"][-1]
    assert right[1] >= 0.95
    assert right[0] <= 0.5
    assert valid[1]["chrf"] >= 98 > valid[0]["chrf"]
    assert valid[1]["accuracy"] >= 98 > 90 > valid[0]["accuracy"]
    # a line by itself is the first of a document
    alone = [each.text for each in translator.translate([sources[place] for place in places])]
    assert np.mean([text == targets[place] for text, place in zip(alone, places, strict=True)]) <= 0.5
