"""`nmt config`: a configuration with every key, or one key explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from nmt import experiment as experiments
from tests.workflows.runs import Command


def test_a_configuration_is_shown_complete(
    trained: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    file, whole = run("config", trained / "config.yaml"), run("config", trained / "run")
    assert file == (0, whole.stdout, "")
    shown = tmp_path / "shown.yaml"
    shown.write_text(run("config", trained / "run", "--set", "search.beam=7").stdout)
    assert experiments.load(shown) == experiments.load(trained / "config.yaml", ["search.beam=7"])
    assert run("config", trained / "run" / "best").stdout == whole.stdout
    assert yaml.safe_load(file.stdout)["training"]["optimizer"]["beta2"] == 0.98


def test_a_key_is_explained_with_its_value(trained: Path, run: Command) -> None:
    page = run("config", trained / "run", "--explain", "search.max_length_ratio").stdout.splitlines()
    assert page[0] == "search.max_length_ratio"
    assert "  here      1.5" in page
    assert "  here" not in run("config", "--explain", "search.max_length_ratio").stdout
    changed = run("config", trained / "run", "--explain", "search.beam", "--set", "search.beam=9").stdout
    assert "  here      9" in changed.splitlines()
    guess = "did you mean search.beam or training.validation.beam?"
    assert run("config", "--explain", "search.baem").error.endswith(guess)
    assert run("config", "--explain", "run", "--set", "seed=2").error.startswith("--set changes a configuration")


def test_the_schema_is_json_and_of_no_model(trained: Path, run: Command) -> None:
    assert json.loads(run("config", "--schema").stdout)["title"] == "Experiment"
    for given in ([trained / "run"], ["--explain", "run"], ["--set", "seed=2"]):
        assert run("config", *given, "--schema").error.startswith("--schema describes every configuration")
    assert run("config", trained / "nothing").error == f"{trained}/nothing: no such run directory, checkpoint or config"
