"""Counts of the sources: what each counts, and that none exceeds its bar."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import count_lines  # noqa: E402

SOURCE = '''\
"""What a module is."""

def f(
    a: int,
) -> int:
    """Sum of a and 1, which is no
    product."""
    return a + 1
'''


def test_the_sources_and_a_run_keep_the_bars(capsys: pytest.CaptureFixture[str]) -> None:
    code = count_lines.main(["--run"])
    out, err = capsys.readouterr()
    assert code == 0, err
    figures = {line["name"]: line["value"] for line in map(json.loads, out.splitlines())}
    assert figures.keys() == count_lines.BARS.keys()
    assert figures.pop("oblique docstrings, %") >= 0  # none is best
    assert min(figures.values()) > 0


def test_counts_of_a_small_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("nmt/search/beam.py", "nmt/training/objective.py", "nmt/cli/app.py"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(SOURCE, encoding="utf-8")
    (tmp_path / "README.md").write_text("There is no bar, and there is none.\n", encoding="utf-8")
    monkeypatch.setattr(count_lines, "ROOT", tmp_path)
    bars = {**count_lines.BARS, "longest function": 3}
    monkeypatch.setattr(count_lines, "BARS", bars)
    assert count_lines.main([]) == 1  # by the function and the docstrings
    out, _ = capsys.readouterr()
    values = {line["name"]: line["value"] for line in map(json.loads, out.splitlines())}
    assert list(values.values()) == [8, 12, 4, 4, 50.0]
