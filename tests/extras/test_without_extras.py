"""The package without ``extras``: training, translation, alignment and evaluation work, with the same greedy texts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.workflows.runs import CONFIG, write_corpus

PACKAGE = Path(__file__).parents[2] / "nmt"

ALONE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
from nmt.cli.app import main
main()
"""


def nmt(package: Path, folder: Path, *arguments: str, text: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    quiet = [] if "--help" in arguments else ["--quiet", "--device", "cpu"]
    words = [sys.executable, "-c", ALONE, *arguments, *quiet]
    done = subprocess.run(words, cwd=folder, env=environment, input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_what_reads_like_the_papers_works_alone(tmp_path: Path) -> None:
    alone, work = tmp_path / "alone", tmp_path / "work"
    shutil.copytree(PACKAGE, alone / "nmt", ignore=shutil.ignore_patterns("extras", "__pycache__"))
    work.mkdir()
    write_corpus(work)
    (work / "config.yaml").write_text(CONFIG, encoding="utf-8")
    nmt(alone, work, "train", "config.yaml", "--set", "training.stopping.updates=3")
    source = (work / "test.de").read_text(encoding="utf-8")
    translate = ["translate", "run", "--beam", "1", "--precision", "float32"]
    texts = nmt(alone, work, *translate, text=source)
    assert texts == nmt(PACKAGE.parent, work, *translate, text=source)
    assert len(texts.splitlines()) == len(source.splitlines())
    pairs = ["--source", "test.de", "--target", "test.en"]
    assert len(nmt(alone, work, "align", "run", *pairs).splitlines()) == len(source.splitlines())
    assert "translate" in nmt(alone, work, "--help")
    assert "BLEU" in nmt(alone, work, "evaluate", "run", "--source", "test.de", "--reference", "test.en")
