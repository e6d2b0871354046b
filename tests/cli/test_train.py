"""Options of `nmt train`, as they reach the workflow and the other processes."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import nmt
from nmt.training import launch
from nmt.workflows import train
from tests.workflows.runs import Command

OPTIONS = ["--device", "cpu", "--precision", "float32"]


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("flags", [[], ["--skip-damaged"], ["--extend"]])
def test_options_reach_all_processes(
    processes: int, flags: list[str], here: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn, workflow = Mock(return_value=nullcontext()), Mock()
    monkeypatch.setattr(launch, "spawn_workers", spawn)
    monkeypatch.setattr(train, "train", workflow)
    choices = ["--set", "seed=7", *OPTIONS]
    assert run("train", "config.yaml", *choices, *flags, "--processes", str(processes)) == (0, "", "")
    (settings,), named = workflow.call_args
    expected: dict[str, Any] = {name: f"--{name.replace('_', '-')}" in flags for name in ("skip_damaged", "extend")}
    assert settings.seed == 7
    assert named == {**expected, "device": "cpu", "precision": "float32", "threads": nmt.on_idle_cores}
    others = [] if processes == 1 else [((3, ["train", *choices, "--quiet", *flags, "--", "config.yaml"]),)]
    assert spawn.call_args_list == others
