"""The measurement of `nmt augment`: its parts of the corpus, and a run on a tiny one."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from tests.workflows.runs import CONFIG, write_corpus

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import benchmark_augment


@pytest.mark.slow
def test_a_measurement_prints_baseline_and_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    write_corpus(tmp_path)
    for name, of in (("train", "train"), ("val", "valid")):
        for language in ("de", "en"):
            with gzip.open(tmp_path / f"{name}.{language}.gz", "wb") as file:
                file.write((tmp_path / f"{of}.{language}").read_bytes())
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    words = "benchmark_augment.py --corpus . --config config.yaml --pairs 40 --updates 2 --subwords 60 --out out"
    monkeypatch.setattr(sys, "argv", [*words.split(), "--", "--precision", "float32"])
    benchmark_augment.main()
    figures = {line["name"]: line["value"] for line in map(json.loads, capsys.readouterr().out.splitlines())}
    before, after, gain = (figures[f"augment: BLEU, {which}"] for which in ("baseline", "augmented", "gain"))
    assert gain == pytest.approx(after - before, abs=0.05)
    assert figures["augment: all of it"] > 0
    assert (tmp_path / "out" / "train.en").read_text() + (tmp_path / "out" / "mono.en").read_text() == (
        tmp_path / "train.en"
    ).read_text()
