"""The small corpus of ``nmt init --example``."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt import experiment as experiments
from tests.workflows.runs import in_process


def test_an_example_is_written_with_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    init = in_process(capsys, "init", "--no-time")
    assert init("--example", "--device", "cpu").code == 0
    loaded = experiments.load(tmp_path / "example.yaml", with_corpora=True)
    assert [sum(1 for _ in file.open()) for file in loaded.data.train_corpora[0].files] == [4000, 4000]
    shipped = (Path(__file__).parents[2] / "data" / "de-en" / "train.de").read_text(encoding="utf-8")
    assert shipped.startswith((tmp_path / "data" / "example" / "train.de").read_text(encoding="utf-8"))
    validation, updates = loaded.training.validation, loaded.training.stopping.updates
    assert (validation.first, validation.metric) == (50, "chrf")
    assert updates is not None
    assert validation.every <= updates // 10
    assert init("--example", "--tsv", "pairs.tsv").error.startswith("--example has a corpus of its own")
    assert init("--example", "--valid-pairs", "9").error.startswith("--example has a corpus of its own, in parts")
    assert init("--example").error == "example.yaml: is there already; give another NAME, or delete it"
    assert init("--tsv", "pairs.tsv").error.startswith("NAME is missing; give one such as de-en")
