"""Recordings of a checkout: one of a tiny training, and comparisons."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import record

from tests.scripts.conftest import ROOT
from tests.workflows.runs import nmt, write_corpus


def test_records_of_a_tiny_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    monkeypatch.setattr(record, "DATA", tmp_path)
    monkeypatch.setattr(record, "COMMON", (*record.COMMON, "training.stopping={updates: 2}", "data.subwords.size=60"))
    monkeypatch.setattr(record, "nmt", lambda tree, command, *_: nmt(*command, "--device", "cpu", folder=tree))
    file = tmp_path / "recording.json"
    command = ["make", str(file), "--only", "gru dot, 1 threads, kernels"]
    assert record.main(command) == 0
    recording = json.loads(file.read_text(encoding="utf-8"))
    [(name, made)] = recording.items()
    assert name == "gru dot, 1 threads, kernels"
    assert len(made["losses"]) == 2
    assert all(0 < loss < math.inf for loss in made["losses"])
    assert len(made["weights"]) == 64
    written = file.stat().st_mtime_ns
    assert record.main(command) == 0  # nothing is left to do
    assert file.stat().st_mtime_ns == written
    assert record.main(["compare", str(file), str(file)]) == 0
    assert capsys.readouterr().out == "no difference\n"


def test_a_refusal_is_recorded() -> None:
    made = record.output(ROOT, ["translate", "no-such-run", "--beam", "1"], None, False)
    assert len(made["lines"]) == 1
    assert made["lines"][0].startswith("error: no-such-run: ")


def test_differences_of_two_recordings() -> None:
    first = {
        "a": {"losses": [2.0, 1.0], "weights": "1"},
        "b": {"losses": [2.0, 1.0], "weights": "1"},
        "c": {"lines": ["x", "y"]},
        "d": {"lines": []},
        "e": {"losses": [2.0], "weights": "1"},
    }
    second = {
        "a": {"losses": [2.0, 1.00005], "weights": "2"},
        "b": {"losses": [2.0, 1.0], "weights": "2"},
        "c": {"lines": ["x", "z", "z"]},
        "e": {"losses": [2.0, 1.0], "weights": "1"},
        "f": {"lines": []},
    }
    lines = ["c: 2 of 2 lines differ", "d: only in one of them", "e: losses differ from update 2 on"]
    missing = ["f: only in one of them"]
    exact = ["a: losses differ from update 2 on", "b: weights differ"]
    assert list(record.compare(first, first, relative=0.0)) == []
    assert list(record.compare(first, second, relative=0.0)) == exact + lines + missing
    assert list(record.compare(first, second, relative=1e-4)) == lines + missing
