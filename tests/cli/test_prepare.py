"""`nmt prepare` and other commands that read a configuration: its faults are found without PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Refusal
from tests.workflows.runs import Command

BROKEN = {
    "rnu: x\ndata: {train: {pairs: x.tsv}}\n": ":1: rnu: unknown key; did you mean 'run'?",
    "run: [x\n": ":2: not valid YAML: expected ',' or ']', but got '<stream end>'",
    "": ": is empty; a configuration needs at least one 'key: value' line",
}


@pytest.mark.parametrize("text", BROKEN)
def test_faults_of_a_configuration(text: str, tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    (tmp_path / "checkpoints" / "step-00000001").mkdir(parents=True)
    for command in (f"prepare {path}", f"train {path}", f"translate {path}", f"align {tmp_path} --source x"):
        assert refusal(command).startswith(f"{path}{BROKEN[text]}"), command


def test_it_says_what_to_do_next(here: Path, run: Command) -> None:
    Path("my config.yaml").write_text(Path("config.yaml").read_text())
    done = run("prepare", "my config.yaml")
    assert (done.code, done.stderr.splitlines()[-1]) == (0, "next: nmt train 'my config.yaml'")
