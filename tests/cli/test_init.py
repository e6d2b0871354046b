"""Options of `nmt init`, and faults of its files: nothing is written."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.workflows.runs import Command, sentences

NO_NAME = "a configuration cannot name this file: its name is not plain text; rename it"
TSV = "--tsv pairs.tsv"


@pytest.fixture
def init(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    pairs = sentences(80, seed=2)
    Path("pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    Path("x.de").write_text("".join(f"{source}\n" for source, _ in pairs))
    return partial(run, "init", "--no-time")


FAULTS = [
    ("", "there is nothing to train on; give two files, nmt init NAME FILE FILE"),
    ("--source x.de", "--source and --target go together; give both"),
    (f"{TSV} --test-source x.de", "--test-source and --test-target go together; give both"),
    (f"{TSV} --valid-tsv pairs.tsv --valid-pairs 3",
     "--valid-pairs: --valid-source or --valid-tsv has such pairs; leave one out"),
    ("--tsv none.tsv", "none.tsv: no such file"),
    ("--tsv x.de", "x.de: 80 of 80 rows are no pairs: 80 without exactly one TAB (lines 1, 2"),
    (f"{TSV} --valid-pairs 80 --test-pairs 0",
     "pairs.tsv: too few different pairs (80) to hold out 80 as valid, and train on others; ask for fewer"),
    ("--tsv ${HOME}.tsv", f"${{HOME}}.tsv: {NO_NAME}"),
    ("--tsv ${NO_SUCH_VARIABLE}", f"${{NO_SUCH_VARIABLE}}: {NO_NAME}"),
    ("--source x.de --target x.de", "x.de + x.de: both sides are the same in all 80 pairs"),
    (f"{TSV} --device gpu", "--device gpu: is none of auto, cpu, cuda, cuda:N"),
    (f"{TSV} --minutes 3", "--minutes measures how long an update takes; leave out --no-time, or --minutes"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), FAULTS)
def test_a_fault_is_one_line_and_nothing_is_written(init: Command, arguments: str, message: str) -> None:
    device = [] if "--device" in arguments else ["--device", "cpu"]
    assert init("a", *arguments.split(), *device).error.startswith(message)
    assert not Path("a.yaml").exists()
    assert not Path("data/a").exists()


@pytest.mark.parametrize("path", ["a.yaml", "data/a", "runs/a"])
def test_nothing_is_overwritten(init: Command, path: str) -> None:
    Path(path).mkdir(parents=True)
    run = ", and would be the run of a.yaml" if path == "runs/a" else ""
    error = f"{path}: is there already{run}; give another NAME, or delete it"
    assert init("a", *TSV.split(), "--device", "cpu").error == error


@pytest.mark.parametrize(
    "name", ["..", ".yaml", " ", "no/such/folder", "${x}", "a" * 300, f"{'a' * 300}/b", "x/${HOME}"]
)
def test_what_is_no_name_is_refused(init: Command, name: str) -> None:
    error = init(name, *TSV.split(), "--device", "cpu").error
    assert error.startswith((f"NAME {name!r}: is not a name", f"{name}.yaml: cannot be written: folder "))
