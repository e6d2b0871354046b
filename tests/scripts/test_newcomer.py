"""A newcomer's way from a TSV to a report by the commands that each output names, with few pairs and updates."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from nmt.data.config import CorpusConfig
from nmt.data.corpus import numbered_pairs
from scripts import newcomer
from tests.workflows.runs import nmt


def run_in_a_fork(command: str, folder: Path) -> str:
    """Runs a command like ``newcomer.run``, without the seconds that each new process needs to start."""
    done = nmt(*shlex.split(command)[1:], folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode()


@pytest.mark.slow
def test_every_command_names_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomer, "run", run_in_a_fork)
    assert newcomer.main(["--pairs", "200", "--updates", "3", "--folder", str(tmp_path)]) == 0
    table = capsys.readouterr().out.partition("command\n")[2].splitlines()
    assert [line.split()[2:4] for line in table[:-1]] == [
        ["nmt", command] for command in ("init", "train", "translate", "align", "report")
    ]
    seconds = [float(line.split()[0]) for line in table]
    assert seconds[-1] == pytest.approx(sum(seconds[:-1]), abs=0.3)
    assert len((tmp_path / "text.de").read_text().splitlines()) == 10  # a twentieth
    assert len((tmp_path / "text.en").read_text().splitlines()) == 10
    assert (tmp_path / "text.en.html").exists()
    assert (tmp_path / "runs" / "first" / "report.html").exists()
    for name in newcomer.FORMS:
        assert (tmp_path / "runs" / name.partition(".")[0] / "latest").exists()


@pytest.mark.parametrize("name", newcomer.FORMS)
def test_a_pair_that_is_lost_is_found_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"ein {number}", f"a {number}") for number in range(100)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    monkeypatch.setattr(newcomer, "FORMS", {name: newcomer.FORMS[name]})

    def run(command: str, folder: Path) -> str:
        """Writes the parts as nmt init does, but that one pair goes under."""
        if command.startswith("nmt init"):
            parts = folder / "data" / name.partition(".")[0]
            parts.mkdir(parents=True)
            rows = [pair for _, *pair in numbered_pairs(CorpusConfig(pairs=folder / name))]
            for part, kept in (("train", rows[2:]), ("valid", rows[:1]), ("test", [])):
                (parts / f"{part}.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in kept))
        return ""

    monkeypatch.setattr(newcomer, "run", run)
    with pytest.raises(SystemExit, match="1 pairs are lost, and 0 made up"):
        newcomer.other_forms(tmp_path)


def test_a_command_that_names_no_next_one_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"init": "next    nmt train first.yaml\n", "train": "more       nmt info runs/first\n"}
    monkeypatch.setattr(newcomer, "run", lambda command, folder: said[command.split()[1]])
    with pytest.raises(SystemExit, match="train names no next command, or the wrong one: came from init to train"):
        newcomer.follow(tmp_path, pairs=2, updates=None)


def test_a_command_that_fails_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nmt 0" not in newcomer.run("nmt --version", tmp_path)  # of stdout nothing is read
    with pytest.raises(SystemExit) as exit:
        newcomer.run("nmt config nothing.yaml", tmp_path)
    assert exit.value.code == 1
    assert "error: nothing.yaml: no such" in capsys.readouterr().out
