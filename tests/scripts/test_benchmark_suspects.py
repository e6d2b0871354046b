"""The measurement of `nmt align --suspects`: what is spoilt, average precision, and a run on a tiny model."""

from __future__ import annotations

import json
import random
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tests.workflows.runs import trained, write_corpus

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import benchmark_suspects  # noqa: E402

__all__ = ["trained"]


def test_every_twentieth_pair_is_swapped_and_every_twentieth_shortened() -> None:
    draw = random.Random(3)
    pairs = [
        tuple(" ".join(f"{side}{row}.{word}" for word in range(draw.randint(1, 9))) for side in "st")
        for row in range(200)
    ]
    found = benchmark_suspects.spoilt(pairs, random.Random(1))  # type: ignore[arg-type]
    assert found == benchmark_suspects.spoilt(pairs, random.Random(1))  # type: ignore[arg-type]
    assert found != benchmark_suspects.spoilt(pairs, random.Random(2))  # type: ignore[arg-type]
    swapped = [row for row, each in enumerate(found) if each.fault == "swapped"]
    assert len(swapped) == sum(each.fault == "dropped" for each in found) == 10
    assert sorted(found[row].target for row in swapped) == sorted(pairs[row][1] for row in swapped)
    for row, (each, pair) in enumerate(zip(found, pairs, strict=True)):
        if each.fault == "swapped":
            assert each.source == pair[0]
            assert each.target != pair[1]
        elif each.fault is None:
            assert (each.source, each.target) == pair
        else:
            sides = zip((each.source, each.target), pair, strict=True)
            ((shorter, whole),) = [(now.split(), then.split()) for now, then in sides if now != then] or [([], [])]
            gone = len(whole) - len(shorter)
            assert gone <= max(2, len(whole) // 2)
            assert any(whole[:first] + whole[first + gone :] == shorter for first in range(len(whole) + 1)), row
            assert min(len(whole), 3) <= gone + 1, "two at least, of two words one"


def test_average_precision_is_that_of_plain_loops() -> None:
    draw = random.Random(1)
    for _ in range(50):
        scores = [float(draw.randint(0, 5)) for _ in range(12)]
        marks = [draw.random() < 0.4 for _ in scores] + [True]
        scores.append(2.0)
        ranking = sorted(range(13), key=lambda row: (-scores[row], row))
        precisions = [
            Fraction(sum(marks[each] for each in ranking[: rank + 1]), rank + 1)
            for rank, row in enumerate(ranking)
            if marks[row]
        ]
        found = benchmark_suspects.average_precision(scores, marks)
        assert found == pytest.approx(float(sum(precisions) / len(precisions)))


def test_a_measurement_prints_a_line_for_each_figure(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    command = ["x", str(trained / "run"), str(tmp_path / "train.de"), str(tmp_path / "train.en")]
    monkeypatch.setattr(sys, "argv", [*command, "--pairs", "40"])
    benchmark_suspects.main()
    figures = {each["name"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    for name in ("unlinked words", "best weight of each word", "nll", "length |z|", "nll + z² / 2"):
        for rest in ("", ", swapped alone", ", dropped alone"):
            assert 0 < figures[f"average precision by {name}{rest}"]["value"] <= 1
    assert figures["copied: marked pairs"]["value"] == 0
    monkeypatch.setattr(sys, "argv", [*command, "--pairs", "5"])
    with pytest.raises(SystemExit) as exit:
        benchmark_suspects.main()
    assert exit.value.code == 2
    error = "error: 5 pairs are too few to spoil 5 % of them twice; give more lines or --pairs"
    assert capsys.readouterr().err.splitlines()[-1] == error
