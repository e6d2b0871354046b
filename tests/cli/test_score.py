"""Options of `nmt score`: all formats tell the same, and faults of files are one line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.workflows.runs import Command

FILES = ("--source", "test.de", "--target", "test.en")


@pytest.fixture
def score(run: Command, trained: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(trained)
    return partial(run, "score", "run", "--precision", "float32")


def test_formats_tell_the_same(score: Command, tmp_path: Path) -> None:
    objects = [json.loads(line) for line in score(*FILES, "--format", "jsonl").stdout.splitlines()]
    scores = [f"{each['score']:.6f}" for each in objects]
    assert score(*FILES).stdout.splitlines() == scores
    log_probs = [f"{each['log_prob']:.6f}" for each in objects]
    rows = [
        f"{one}\t{other}\t{len(each['tokens'])}" for one, other, each in zip(scores, log_probs, objects, strict=True)
    ]
    assert score(*FILES, "--format", "tsv").stdout.splitlines() == rows
    assert score(*FILES, "--length-penalty", "0").stdout.splitlines() == log_probs
    assert score(*FILES, "--output", tmp_path / "scores.txt")[:2] == (0, "")
    assert (tmp_path / "scores.txt").read_text().splitlines() == scores


FAULTS = [
    ("one", "two", "one has 1 lines, but two has more: they must agree line by line"),
    ("empty", "empty", "empty: holds no line to score"),
    ("none", "one", "none: no such file"),
]


@pytest.mark.parametrize(("source", "target", "message"), FAULTS)
def test_mistakes(score: Command, source: str, target: str, message: str, tmp_path: Path) -> None:
    for name, text in (("one", "a\n"), ("two", "a\nb\n"), ("empty", "")):
        (tmp_path / name).write_text(text)
    error = score("--source", tmp_path / source, "--target", tmp_path / target).error
    assert error.replace(f"{tmp_path}/", "") == message
