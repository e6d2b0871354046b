"""The measurement of `nmt filter`: the wrong pairs, the share that is found, and a run on a tiny filter."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.config import SubwordsConfig
from nmt.data.train_tokenizers import train_tokenizers
from nmt.extras.corpus.pair_filter.lexicon import learn_lexicon
from nmt.extras.corpus.pair_filter.model import INPUTS, PairClassifier
from nmt.extras.corpus.pair_filter.pair_filter import FOLDS, SIZE, PairFilter, save_pair_filter
from nmt.extras.corpus.pair_filter.wrong_pairs import KINDS
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
    pairs = sentences(60, seed=1)
    tokenizer = train_tokenizers(pairs, SubwordsConfig(size=38)).source
    encoded = list(zip(*(tokenizer.encode_arrays(side) for side in zip(*pairs, strict=True)), strict=True))
    lexicons = [learn_lexicon(encoded, tokenizer.size) for _ in range(FOLDS)]
    models = [
        PairClassifier(torch.zeros(INPUTS), torch.ones(INPUTS), len(KINDS), SIZE).requires_grad_(False) for _ in (0, 1)
    ]
    save_pair_filter(
        PairFilter(tokenizer, tuple(lexicons), tuple(models), np.zeros(2, np.float32)), tmp_path / "a.filter"
    )
    command = ["x", *(str(tmp_path / name) for name in ("a.filter", "test.de", "test.en"))]
    monkeypatch.setattr(sys, "argv", [*command, "--model", str(trained / "run")])
    benchmark_filter.main()
    figures = {each["name"]: each["value"] for each in map(json.loads, capsys.readouterr().out.splitlines())}
    for name in ("filter", "suspects", "suspects, nll alone", "suspects, |z| alone"):
        for sort in ("wrong partners", "dropped halves", "copied sources"):
            assert 0 <= figures[f"{name}: {sort}"] <= 1
    assert figures["suspects, |z| alone: next target behind"] > 0


def test_planted_pairs_are_wrong_and_their_shares_those_of_the_table() -> None:
    whole = [*sentences(400, seed=3), *sentences(400, seed=3)[:50]]
    pairs, sorts = benchmark_filter.planted(whole, 400, random.Random(1))
    counts = {sort: sorts.count(sort) for sort in set(sorts)}
    assert counts == {"right": 344, "wrong partners": 20, "halves": 20, "copies": 8, "swapped": 8}
    assert all((pair in whole) == (sort == "right") for pair, sort in zip(pairs, sorts, strict=True))
    assert all(source == target for (source, target), sort in zip(pairs, sorts, strict=True) if sort == "copies")
    assert set(benchmark_filter.planted(whole, 400, random.Random(1), clean=True)[1]) == {"right"}


def test_a_filter_is_measured_on_a_planted_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, name in enumerate(("a.de", "a.en")):
        lines = (f"{pair[side]}\n" for pair in sentences(400, seed=3))
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    files = (str(tmp_path / name) for name in ("a.de", "a.en"))
    monkeypatch.setattr(sys, "argv", ["x", "plant", *files, "--pairs", "300", "--options=--quiet"])
    benchmark_filter.main()
    figures = {each["name"]: each["value"] for each in map(json.loads, capsys.readouterr().out.splitlines())}
    sorts = ("right", "wrong partners", "halves", "copies", "swapped")
    assert all(0 <= figures[f"{sort}: dropped"] <= 1 for sort in sorts)
    assert figures["processor time"] > 0
