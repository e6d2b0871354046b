"""The package in examples/plugin, installed as pip does it: its score, metric and command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflows import runs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the package is installed."""
    source, site = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "examples" / "plugin", source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True)
    return site


def nmt(*arguments: str, site: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "nmt", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_its_score_metric_and_command_work(site: Path, tmp_path: Path) -> None:
    runs.write_corpus(tmp_path)
    (tmp_path / "text").write_text("ein Hund\n\nzwei kleine Hunde\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(runs.CONFIG, encoding="utf-8")
    done = runs.one_process(
        "--help",
        "words text",
        "config --explain model.attention.score",
        "train config.yaml --set model.attention.score=manhattan --set training.stopping.updates=2",
        "evaluate --help",
        "evaluate run --source test.de --reference test.en --metric exact",
        "evaluate --hypothesis test.en --reference test.en --metric exact",
        folder=tmp_path,
        site=site,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    overview, _, rest = done.stdout.partition("\n2\n0\n3\n")
    assert "words     Count the words of a text." in overview.partition("Look:")[2].partition("More:")[0]
    explained, _, rest = rest.partition("Usage: nmt evaluate")
    assert "manhattan" in explained
    assert "--metric NAME" in rest
    assert "\nexact|version:1.0 = 0.0\n" in rest
    assert rest.endswith("exact|version:1.0 = 100.0\n")


def test_without_it_the_run_names_what_there_is(site: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = nmt("config", "--set", "model.attention.score=manhattan", "none", site=tmp_path / "empty", folder=tmp_path)
    assert done.returncode == 2
    lines = ("evaluate", "--hypothesis", "text", "--reference", "text", "--metric", "exact")
    (tmp_path / "text").write_text("ein Hund\n", encoding="utf-8")
    done = nmt(*lines, site=tmp_path / "empty", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: unknown metric 'exact': choose from bleu, chrf, ter\n"


def test_a_part_that_is_gone_costs_one_line(site: Path, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    shutil.copytree(site, broken)
    for name in ("command", "score", "metric"):
        (broken / "nmt_example" / f"{name}.py").write_text("import missing_package\n", encoding="utf-8")
    fault = "ModuleNotFoundError: No module named 'missing_package'"
    advice = "update the package, or remove it: pip uninstall nmt-example"
    done = nmt("words", "text", site=broken, folder=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        f"error: plug-in nmt-example: nmt_example.command:words: {fault}; {advice}\n",
    )
    done = nmt("--help", site=broken, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = nmt("config", "--explain", "model.attention.score", site=broken, folder=tmp_path)
    assert (done.returncode, done.stderr) == (
        0, f"warning: plug-in nmt-example: nmt_example.score:Manhattan: {fault}; {advice}\n",
    )  # fmt: skip
