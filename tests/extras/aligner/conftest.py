"""What the tests of the aligner share: the command line in this process, texts to learn from, and what was learnt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nmt.extras.aligner import model_aligner
from nmt.extras.aligner.align import learn_word_aligner
from nmt.extras.aligner.aligner import save_aligner
from tests.extras.aligner.compounds import LINES, LINKS
from tests.workflows.runs import Command, in_process, sentences


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs a command in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    return in_process(capsys)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sentence pairs that the run ``trained`` knows, and files that nothing can be learnt from."""
    folder = tmp_path_factory.mktemp("text")
    for name, side in zip(("x.de", "x.en"), zip(*sentences(80, seed=1), strict=True), strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    for name, data in (("blank", b"\n" * 80), ("short", b"eins\n"), ("empty", b""), ("bytes", b"\xff\xfe\n" * 80)):
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs of compounds and odd ones, their gold links, and the aligner that is learnt from them."""
    folder = tmp_path_factory.mktemp("learned")
    sides = list(zip(*LINES, strict=True))
    for name, lines in zip(("x.de", "x.en", "gold"), (*sides, LINKS), strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    save_aligner(learn_word_aligner(*sides), folder / "x.aligner")
    return folder


@pytest.fixture
def given(folder: Path) -> list[str]:
    """The options of ``folder``'s pairs."""
    return ["-s", str(folder / "x.de"), "-t", str(folder / "x.en")]


@pytest.fixture(scope="session")
def taught(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a run that has learnt to align from its training pairs."""
    folder = tmp_path_factory.mktemp("taught") / "x"
    shutil.copytree(trained, folder, symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_aligner, "UPDATES", 20)
        patch.chdir(folder)
        model_aligner.learn_for_model("run", [], None, None, seed=1, device="cpu", precision="float32")
    return folder
