"""Counts of the sources: what each counts, and that none exceeds its bar."""

from __future__ import annotations

from pathlib import Path

import count_lines
import pytest

from tests.scripts.conftest import figures

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
    values = figures(out)
    assert values.keys() == count_lines.BARS.keys()
    assert values.pop("oblique docstrings, %") >= 0  # none is best
    assert min(values.values()) > 0


def test_counts_of_a_small_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("nmt/search/beam.py", "nmt/training/objective.py", "nmt/cli/app.py"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(SOURCE, encoding="utf-8")
    (tmp_path / "README.md").write_text("There is no bar, and there is none.\n", encoding="utf-8")
    monkeypatch.setattr(count_lines, "ROOT", tmp_path)
    monkeypatch.setattr(count_lines, "BARS", {**count_lines.BARS, "longest function": 3})
    assert count_lines.main([]) == 1  # by the function and the docstrings
    assert list(figures(capsys.readouterr().out).values()) == [8, 12, 4, 4, 50.0]
