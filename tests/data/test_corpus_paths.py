"""Corpora that a configuration names: where they are looked for, and how a missing one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt import experiment
from nmt.core.errors import InputError

CONFIG = """\
run: run
data:
  train:
  - source: train.de
    target: train.en
  valid: {pairs: valid.tsv}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    path = Path("configs/c.yaml")
    path.write_text(CONFIG)
    return path


def test_missing_files_are_named_with_line_and_key(config: Path) -> None:
    Path("train.en").mkdir()
    with pytest.raises(InputError) as caught:
        experiment.load(config, ["data.test=[{pairs: /no/such}]"], with_corpora=True)
    nowhere = "no such file, nor is it beside the configuration"
    assert caught.value.messages == [
        f"configs/c.yaml:4: data.train.0.source: train.de: {nowhere}",
        "configs/c.yaml:5: data.train.0.target: train.en: is a folder; name a file",
        f"configs/c.yaml:6: data.valid.pairs: valid.tsv: {nowhere}",
        "--set data.test=[{pairs: /no/such}]: data.test.0.pairs: /no/such: no such file",
    ]


def test_files_are_found_in_the_working_directory_then_beside_the_configuration(config: Path) -> None:
    for name in ("train.de", "configs/train.de", "configs/train.en", "configs/valid.tsv"):
        Path(name).write_text("x\n")
    loaded = experiment.load(config, with_corpora=True)
    assert loaded.data.train_corpora[0].files == (Path("train.de"), Path("configs/train.en"))
    assert loaded.data.valid is not None
    assert loaded.data.valid.files == (Path("configs/valid.tsv"),)
    experiment.save(loaded, Path("saved.yaml"))
    assert experiment.load(Path("saved.yaml")) == loaded
