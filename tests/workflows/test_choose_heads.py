"""`nmt align --choose-heads` on a tiny Transformer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.translator.translator import Translator
from tests.workflows.runs import CONFIG, nmt, write_corpus

PATTERNS = ("*", "layer1.*", "layer2.*", "layer1.head1", "layer1.head2", "layer2.head1", "layer2.head2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads")
    write_corpus(folder)
    side = "{kind: transformer, size: 16, layers: 2, heads: 2, feed_forward: 16}"
    config = CONFIG.replace("{kind: rnn, size: 12}", side).replace("{kind: rnn, size: 20}", side)
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    done = nmt("train", "config.yaml", "--precision", "float32", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    lines = (folder / "valid.de").read_text(encoding="utf-8").splitlines()
    gold = [" ".join(f"{place}-{place}" for place in range(len(line.split()))) for line in lines]
    (folder / "gold").write_text("".join(f"{line}\n" for line in gold), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Translator:
    return package.load(folder / "run", precision="float32")


def _align(folder: Path, *options: str) -> tuple[str, str]:
    pair = ("--source", "valid.de", "--target", "valid.en", "--precision", "float32")
    done = nmt("align", "run", *pair, *options, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_heads_of_the_least_error_rate_are_chosen(folder: Path) -> None:
    links, said = _align(folder, "--choose-heads", "gold", "--gold", "gold")
    chosen = re.search(r"heads: (\S+) of", said)
    assert chosen is not None
    rates = {}
    for pattern in PATTERNS:
        by_pattern, score = _align(folder, "--heads", pattern, "--gold", "gold")
        rates[pattern] = float(score.split("AER ")[1].split()[0])
        if pattern == chosen[1]:
            assert by_pattern == links
    assert rates[chosen[1]] == min(rates.values())
    assert max(rates.values()) > min(rates.values())


def test_gold_of_the_first_pairs_chooses_on_these(folder: Path) -> None:
    gold = (folder / "gold").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "short").write_text("".join(gold[:2]), encoding="utf-8")
    _, said = _align(folder, "--choose-heads", "gold", "--gold", "short")
    chosen = re.search(r"heads: .* AER ([\d.]+) % on (\d+) pairs", said)
    assert chosen is not None
    assert chosen[2] == "2"
    assert f"AER {chosen[1]} " in said.splitlines()[-1], "the rate of the same two pairs"


def test_heads_of_the_least_entropy_are_chosen(folder: Path, model: Translator) -> None:
    _, said = _align(folder, "--choose-heads", "entropy")
    sides = [(folder / f"valid.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en")]
    spreads: dict[str, float] = {}
    for pattern in PATTERNS:
        chosen = replace(model, heads=pattern)
        total, count = 0.0, 0
        for alignment in chosen.align(sides[0], sides[1], level="subword"):
            for row in np.asarray(alignment.weights_TS)[:-1]:
                shared = row[:-1] + row[-1] / (len(row) - 1)
                total -= sum(weight * np.log(weight) for weight in shared) / np.log(len(shared))
                count += 1
        spreads[pattern] = total / count
    best = min(spreads, key=lambda pattern: spreads[pattern])
    assert f"heads: {best} of" in said
    assert f"uncertainty {100 * spreads[best]:.1f} %" in said
    assert len({round(value, 6) for value in spreads.values()}) == len(PATTERNS)


def test_both_models_choose_for_themselves(folder: Path) -> None:
    # A second run that reads the target; what it learns does not matter here.
    swapped = ("--set", "run=back", "--set", "data.train.source=train.en", "--set", "data.train.target=train.de")
    swapped += ("--set", "data.valid.source=valid.en", "--set", "data.valid.target=valid.de")
    done = nmt("train", "config.yaml", "--precision", "float32", *swapped, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    _, said = _align(folder, "--reverse", "back", "--choose-heads", "gold", "--gold", "gold")
    assert len(re.findall(r"heads: \S+ of (?:run|back)/", said)) == 2
