"""`nmt info`: its page and its JSON object, and what is damaged or no run."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from nmt.workflows.info import inspect, text
from tests.cli.conftest import Light
from tests.workflows.runs import Command


def test_it_prints_a_page_or_an_object_without_torch(trained: Path, run: Command, light: Light) -> None:
    found = inspect(str(trained / "run"))
    assert run("info", trained / "run") == (0, f"{text(found)}\n", "")
    assert json.loads(run("info", trained / "run", "--json").stdout) == json.loads(json.dumps(asdict(found)))
    assert light("info", str(trained / "run")) == ([], 0)


DAMAGED = [
    ("best/model.safetensors", b"nothing", "best/model.safetensors: unreadable checkpoint"),
    ("best/state.json", b"[]", "best/state.json: unreadable checkpoint"),
    ("best/state.json", b'{"position": {}}', "best/state.json: unreadable checkpoint"),
    ("metrics.jsonl", b"x\n", "metrics.jsonl: is not a file of metrics"),
    ("metrics.jsonl", b"\xff\n", "metrics.jsonl: is not a file of metrics"),
    ("metrics.jsonl", b"[1]\n", "metrics.jsonl: is not a file of metrics"),
    ("exported/onnx/nmt.json", b"{}", "exported/onnx/nmt.json: damaged"),
    ("config.yaml", b"rnu: x\ndata: {train: {pairs: x}}\n", "config.yaml:1: rnu: unknown key"),
]


@pytest.mark.parametrize(("name", "data", "message"), DAMAGED)
def test_what_is_damaged_is_named(
    trained: Path, tmp_path: Path, run: Command, name: str, data: bytes, message: str
) -> None:
    copy = shutil.copytree(trained / "run", tmp_path / "copy", symlinks=True)
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    (copy / name).write_bytes(data)
    assert run("info", copy).error.startswith(f"{copy}/{message}")


def test_what_is_no_run_is_refused(tmp_path: Path, run: Command) -> None:
    neither = f"{tmp_path}: is neither a run directory (it has no config.yaml) nor a checkpoint"
    assert run("info", tmp_path).error == neither
    assert run("info", tmp_path / "x").error == f"{tmp_path}/x: no such run directory, checkpoint or config"
