"""`nmt config`: a configuration with every key, or one key explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from nmt import experiment as experiments
from tests.workflows.runs import Command, in_process


@pytest.fixture
def config(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "config")


def test_a_configuration_is_shown_complete(
    trained: Path, config: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    file, run = config(trained / "config.yaml"), config(trained / "run")
    assert file == (0, run.stdout, "")
    shown = tmp_path / "shown.yaml"
    shown.write_text(config(trained / "run", "--set", "search.beam=7").stdout)
    assert experiments.load(shown) == experiments.load(trained / "config.yaml", ["search.beam=7"])
    assert config(trained / "run" / "best").stdout == run.stdout
    assert yaml.safe_load(file.stdout)["training"]["optimizer"]["beta2"] == 0.98


def test_a_key_is_explained_with_its_value(trained: Path, config: Command) -> None:
    page = config(trained / "run", "--explain", "search.max_length_ratio").stdout.splitlines()
    assert page[0] == "search.max_length_ratio"
    assert "  here      1.5" in page
    assert "  here" not in config("--explain", "search.max_length_ratio").stdout
    changed = config(trained / "run", "--explain", "search.beam", "--set", "search.beam=9").stdout
    assert "  here      9" in changed.splitlines()
    assert config("--explain", "search.baem").error.endswith("did you mean search.beam or training.validation.beam?")
    assert config("--explain", "run", "--set", "seed=2").error.startswith("--set changes a configuration")


def test_the_schema_is_json_and_of_no_model(trained: Path, config: Command) -> None:
    assert json.loads(config("--schema").stdout)["title"] == "Experiment"
    for given in ([trained / "run"], ["--explain", "run"], ["--set", "seed=2"]):
        assert config(*given, "--schema").error.startswith("--schema describes every configuration")
    assert config(trained / "nothing").error == f"{trained}/nothing: no such run directory, checkpoint or config"
