"""``make test-cuda``: its line without a GPU, and its table, here of a CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.workflows.runs import CONFIG, write_corpus

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import on_cuda  # noqa: E402


def test_without_a_gpu_one_line_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["on_cuda.py"])
    on_cuda.main()
    assert capsys.readouterr() == ("", "there is no CUDA device: nothing was tested or measured\n")


def test_tests_that_fail_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(sys, "argv", ["on_cuda.py"])
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    with pytest.raises(SystemExit) as ended:
        on_cuda.main()
    assert ended.value.code == 1


@pytest.mark.slow
def test_the_table_has_a_row_for_each_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    on_cuda.table(list(on_cuda.figures(Path("config.yaml"), Path("test.de"), 2, device="cpu")))
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("  ")[0] for row in rows[:4]] == [
        "training", "training, share of the matrix rate", "translating, greedy", "translating, beam 5",
    ]  # fmt: skip
    assert len(rows) == 5
