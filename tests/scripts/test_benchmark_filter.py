"""The measurement of `nmt filter`: the wrong pairs, the share that is found, and a run on a tiny filter."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from nmt.data.config import SubwordsConfig
from nmt.data.train_tokenizers import train_tokenizers
from nmt.extras.pair_filter.model import DecomposableAttention
from nmt.extras.pair_filter.pair_filter import PairFilter, save_pair_filter
from tests.workflows.runs import sentences, trained, write_corpus

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import benchmark_filter

__all__ = ["trained"]


def test_wrong_pairs_are_made_of_every_pair() -> None:
    pairs = [*sentences(60, seed=2), ("eins", "one")]
    wrong = benchmark_filter.wrong_pairs(pairs, random.Random(1))
    partners = wrong["wrong partners"]
    assert [source for source, _ in partners] == [source for source, _ in pairs]
    assert sorted(target for _, target in partners) == sorted(target for _, target in pairs)
    assert not set(partners) & set(pairs)
    halves, punctuated = wrong["dropped halves"], wrong["dropped halves, final punctuation kept"]
    assert len(halves) == len(punctuated) == 60, "one word has no half"
    for pair, half, kept in zip(pairs, halves, punctuated, strict=False):
        (side,) = [side for side in (0, 1) if half[side] != pair[side]]
        words, left = pair[side].split(), half[side].split()
        assert len(left) == len(words) - len(words) // 2
        assert left in (words[: len(left)], words[-len(left) :])
        assert kept[side] == " ".join(left).removesuffix(".") + "."
    assert wrong["next target behind"][60] == ("eins", f"one {pairs[0][1]}")
    assert wrong["copied sources"][60] == ("eins", "eins")


def test_found_is_what_is_worse_than_all_but_one_in_a_hundred() -> None:
    right = np.array([9.0, 5.0, *range(-198, 0)])
    assert benchmark_filter.found(right, np.array([-1.0, 0.0, 6.0, 10.0])) == 0.75


def test_a_measurement_prints_a_line_for_each_figure(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    tokenizer = train_tokenizers(sentences(60, seed=1), SubwordsConfig(size=38)).source
    model = DecomposableAttention(tokenizer.size, 4).requires_grad_(False)
    save_pair_filter(PairFilter(tokenizer, model, np.zeros(2, np.float32)), tmp_path / "a.filter")
    command = ["x", *(str(tmp_path / name) for name in ("a.filter", "test.de", "test.en"))]
    monkeypatch.setattr(sys, "argv", [*command, "--model", str(trained / "run")])
    benchmark_filter.main()
    figures = {each["name"]: each["value"] for each in map(json.loads, capsys.readouterr().out.splitlines())}
    for name in ("filter", "suspects", "suspects, nll alone", "suspects, |z| alone"):
        for sort in ("wrong partners", "dropped halves", "copied sources"):
            assert 0 <= figures[f"{name}: {sort}"] <= 1
    assert figures["suspects, |z| alone: next target behind"] > 0
