"""Data diversification: what the folder holds afterwards, going on, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nmt.experiment import load
from scripts import diversify as script
from tests.workflows.runs import CONFIG, write_corpus

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "diversify.py"
SHORT = ("--set", "training.stopping.updates=2", "--set", "training.validation.bleu=false")


def diversify(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, "config.yaml", "--out", "more", *SHORT, *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_three_corpora_come_of_one(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = diversify(tmp_path)
    assert done.returncode == 0, done.stderr
    more = tmp_path / "more"
    assert (more / "source.txt").read_bytes() == (tmp_path / "train.de").read_bytes()
    assert (more / "target.txt").read_bytes() == (tmp_path / "train.en").read_bytes()
    for run, given, made in (
        ("forward", "source.txt", "target.translated.txt"),
        ("backward", "target.txt", "source.translated.txt"),
    ):
        alone = subprocess.run(
            [sys.executable, "-m", "nmt", "translate", f"more/{run}", "--beam", "5", "--input", f"more/{given}"],
            cwd=tmp_path, capture_output=True, check=True,
        )  # fmt: skip
        assert (more / made).read_bytes() == alone.stdout
        assert alone.stdout.count(b"\n") == 60
    backward = load(more / "backward" / "config.yaml").data
    assert backward.valid is not None
    assert [file.name for file in backward.valid.files] == ["valid.en", "valid.de"]
    assert [file.name for file in backward.train_corpora[0].files] == ["target.txt", "source.txt"]

    # the section that is printed is one that can be trained on
    corpora = yaml.safe_load(done.stdout)["data"]["train"]
    assert [(Path(each["source"]).name, Path(each["target"]).name) for each in corpora] == [
        ("source.txt", "target.txt"), ("source.txt", "target.translated.txt"), ("source.translated.txt", "target.txt"),
    ]  # fmt: skip

    # what is there is not made again
    before = (more / "target.translated.txt").stat().st_mtime_ns
    again = diversify(tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert (more / "target.translated.txt").stat().st_mtime_ns == before
    assert "$ nmt translate" not in again.stderr


def test_a_mistake_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    lines = zip(
        (tmp_path / "valid.de").read_text().splitlines(), (tmp_path / "valid.en").read_text().splitlines(), strict=True
    )
    (tmp_path / "valid.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in lines))
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for setting, message in (
        ("data.valid={pairs: valid.tsv}", "valid.tsv: cannot be exchanged; give source and target as two files\n"),
        ("training.stopping.updtes=2", "--set training.stopping.updtes"),
    ):
        monkeypatch.setattr(sys, "argv", ["diversify.py", "config.yaml", "--out", "more", *SHORT, "--set", setting])
        with pytest.raises(SystemExit) as exit:
            script.main()
        assert exit.value.code == 2
        assert capsys.readouterr().err.startswith(f"error: {message}")
