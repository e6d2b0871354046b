"""The wheel has all that the package needs, and the source archive makes the same one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.workflows.runs import CONFIG, write_corpus

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("build") is None, reason="pip install build, which needs the network"),
]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made of the source archive of what git knows."""
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(dist)], cwd=source, check=True)
    return dist


def test_each_file_of_the_package_is_in_both(dist: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z", "nmt"], cwd=ROOT, capture_output=True, text=True, check=True)
    expected = set(filter(None, tracked.stdout.split("\0")))
    (wheel,) = dist.glob("*.whl")
    found = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("nmt/")}
    corpus = {f"nmt/extras/corpus/de-en/{path.name}" for path in (ROOT / "data" / "de-en").iterdir()}
    assert {name for name in found if not name.endswith(".so")} == expected | corpus
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert expected <= names


def test_what_is_installed_runs_outside_the_repository(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    work = tmp_path / "work"
    work.mkdir()
    write_corpus(work)
    (work / "config.yaml").write_text(CONFIG, encoding="utf-8")

    def nmt(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "nmt", *arguments],
            cwd=work, capture_output=True, text=True, check=False, env=environment, input="eins zwei.\n",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = subprocess.run(
        [sys.executable, "-c", "import nmt; print(nmt.__file__)"],
        cwd=work, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(installed)},
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(installed)
    nmt("init", "--example", "--device", "cpu")
    assert (work / "data" / "example" / "train.de").read_text(encoding="utf-8").count("\n") == 4000
    nmt("train", "config.yaml")
    assert nmt("translate", "run").count("\n") == 1
    nmt("align", "run", "--source", "test.de", "--target", "test.en", "--format", "html", "--output", "pairs.html")
    assert "<html" in (work / "pairs.html").read_text(encoding="utf-8")
    nmt("report", "run", "--no-translations")
    assert "<html" in (work / "run" / "report.html").read_text(encoding="utf-8")
