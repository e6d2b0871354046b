"""``make test-cuda``: its line without a GPU, and its table, here of a CPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import on_cuda
import pytest
import torch

from tests.scripts.conftest import ROOT
from tests.workflows.runs import Command


def test_tests_that_fail_end_it_and_none_are_run_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch, run_script: Command
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert run_script(on_cuda).code == 1
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run_script(on_cuda) == (0, "", "there is no CUDA device: nothing was tested or measured\n")


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_table_has_a_row_for_each_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    on_cuda.table(list(on_cuda.figures(Path("config.yaml"), Path("test.de"), 2, device="cpu")))
    rows = capsys.readouterr().out.splitlines()
    training, translating = (
        ("training", "training, share of the matrix rate"),
        ("translating, greedy", "translating, beam 5"),
    )
    assert [row.split("  ")[0] for row in rows[:-1]] == [*training, *translating]
