"""``nmt shortlist`` and ``nmt translate --shortlist``, through the command line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import safetensors.numpy

from tests.workflows.runs import CONFIG, nmt, write_corpus
from tests.workflows.test_commands import error

TEXT = b"eins Hund.\n\nzwei Katze und drei Hund.\n"
USE = ("translate", "run", "--shortlist", "--precision", "float32")


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("listed")
    write_corpus(folder)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = nmt("train", "config.yaml", "--precision", "float32", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    run = (folder / "run").resolve()
    assert error(nmt(*USE, folder=folder, stdin=TEXT)) == (
        f"search.shortlist: {run}/shortlist.safetensors is not there; make it with: nmt shortlist {run}"
    )
    return folder


def test_a_list_of_the_whole_vocabulary_translates_as_the_model_does(listed: Path) -> None:
    done = nmt("shortlist", "run", "--size", "60", "--frequent", "60", "--precision", "float32", folder=listed)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""
    assert b"10 of 10 validation sentences are translated alike (100.0 %)" in done.stderr
    plain = nmt("translate", "run", "--precision", "float32", folder=listed, stdin=TEXT)
    found = nmt(*USE, folder=listed, stdin=TEXT)
    assert found.returncode == 0, found.stderr.decode()
    assert found.stdout == plain.stdout


def test_a_short_list_narrows_what_is_said(listed: Path) -> None:
    done = nmt("shortlist", "run", "--size", "1", "--frequent", "0", folder=listed)
    assert done.returncode == 0, done.stderr.decode()
    mean = re.search(rb"(\d+) of 60 target subwords for a sentence", done.stderr)
    assert mean is not None
    assert 4 < int(mean[1]) < 25
    found = nmt(*USE, "--ensemble", "run", folder=listed, stdin=TEXT)
    assert found.returncode == 0, found.stderr.decode()
    assert found.stdout.count(b"\n") == 3


def test_mistakes_get_one_line(listed: Path, tmp_path: Path) -> None:
    for name in ("run", "config.yaml", "train.de", "train.en", "valid.de", "valid.en"):
        copy = shutil.copytree if (listed / name).is_dir() else shutil.copy
        copy(listed / name, tmp_path / name, **({"symlinks": True} if (listed / name).is_dir() else {}))
    assert nmt("shortlist", "run", folder=tmp_path).returncode == 0
    file = tmp_path / "run" / "shortlist.safetensors"
    tensors = safetensors.numpy.load_file(file)
    vocabulary = {"vocabulary": "another"}
    safetensors.numpy.save_file(tensors, file, vocabulary)
    assert "is for another vocabulary than the model's" in error(nmt(*USE, folder=tmp_path, stdin=TEXT))
    file.write_bytes(b"nothing of the kind")
    assert "run/shortlist.safetensors: is damaged" in error(nmt(*USE, folder=tmp_path, stdin=TEXT))
    shutil.rmtree(tmp_path / "run" / "prepared")
    run = (tmp_path / "run").resolve()
    assert error(nmt("shortlist", "run", folder=tmp_path)) == (
        f"{run}/prepared: no prepared corpus; make it with: nmt prepare {run}/config.yaml"
    )
