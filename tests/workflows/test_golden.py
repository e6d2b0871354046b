"""Runs of earlier releases are read with the same results, and runs of later ones are refused with a message.

The runs in ``tests/golden`` are files; ``expected.json`` holds the results of the release that made them. Their
probabilities are those without padding and begin-of-sentence, to which that release gave a share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.training.run_directory import FORMAT, Damaged, checkpoint_paths, read_state
from scripts.make_golden_run import copy, measure, resume
from tests.workflows.runs import Command, call

GOLDEN = Path(__file__).parents[1] / "golden"
RUNS = sorted(path.parent for path in GOLDEN.glob("*/*/expected.json"))


def command(arguments: Sequence[str], folder: Path) -> str:
    return call(folder, *arguments).output


def assert_same(found: Any, expected: Any, place: str = "") -> None:
    """Texts and whole numbers exactly; other numbers as another machine or library may round them."""
    if isinstance(expected, list):
        found, expected = dict(enumerate(found)), dict(enumerate(expected))
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key in expected:
            assert_same(found[key], expected[key], f"{place}/{key}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4), place
    else:
        assert found == expected, place


def test_there_is_one_of_each_kind_for_each_format() -> None:
    names = [f"format-{format}/{kind}" for format in range(1, FORMAT + 1) for kind in ("recurrent", "transformer")]
    assert [str(path.relative_to(GOLDEN)) for path in RUNS] == names


@pytest.mark.parametrize("golden", RUNS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_old_run_gives_what_it_gave_and_goes_on(golden: Path, tmp_path: Path) -> None:
    """Its weights, optimizer, generators and place in the corpus make the next update's loss and gradient."""
    expected = copy(golden, tmp_path / "copy")
    del expected["made_by"], expected["links"]
    resumed = expected.pop("resumed")
    assert_same(measure(tmp_path / "copy", command), expected)
    assert_same(resume(tmp_path / "copy", command), resumed)
    assert (tmp_path / "copy" / "run" / "latest").readlink().name == "step-00000601"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nmt: Command) -> Command:
    """Runs `nmt` in a folder with a copy of the first run, in this process."""
    copy(RUNS[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return nmt


def test_a_checkpoint_from_before_formats_were_noted(tmp_path: Path) -> None:
    expected = copy(RUNS[0], tmp_path / "copy")
    _change_state(tmp_path / "copy", lambda state: [state.pop("format"), state.pop("nmt")])
    assert_same(measure(tmp_path / "copy", command)["scores"], expected["scores"])


def test_a_removed_key_is_ignored_only_where_it_had_no_effect(run: Command) -> None:
    """``search.shortlist: false`` stands in all golden runs."""
    config = Path("run/config.yaml")
    lines = config.read_text(encoding="utf-8").splitlines()
    number = lines.index("  shortlist: false")
    assert "shortlist" not in run("config", "run/config.yaml").stdout
    lines[number] = "  shortlist: true"
    config.write_text("\n".join(lines), encoding="utf-8")
    advice = "search.shortlist: no longer exists; remove it"
    assert run("translate", "run").error == f"{config.resolve()}:{number + 1}: {advice}"


GIVEN = ("--source", "test.de", "--target", "test.en")


@pytest.mark.parametrize(
    "arguments",
    [
        "translate run", "translate run/latest", "translate config.yaml", "score run --source test.de --target test.en",
        "align run --source test.de --target test.en", "evaluate run --source test.de --reference test.en",
        "aligner run", "average run", "export run", "train config.yaml", "train config.yaml --skip-damaged",
        "train config.yaml --set run=other --set training.start_from=run",
    ],
)  # fmt: skip
def test_a_run_of_a_newer_release_is_refused(arguments: str, run: Command) -> None:
    """It has keys and files that this release does not know: the one line is about neither."""
    newer = FORMAT + 1
    _change_state(Path(), lambda state: state.update(format=newer, nmt="9.1.0", position=None), mend=False)
    with Path("run/config.yaml").open("a", encoding="utf-8") as file:
        file.write("telepathy: true\n")
    error = run(*arguments.split()).error
    assert "state.json: is of format " in error
    assert error.endswith(f"reads formats up to {newer - 1}; install nmt 9.1.0, which wrote it, or a newer one")
    assert checkpoint_paths(Path("run"))  # and nothing was set aside


def test_without_a_version_the_advice_is_without_one(run: Command) -> None:
    _change_state(Path(), lambda state: state.update(format=FORMAT + 1, nmt=None))
    assert run("translate", "run").error.endswith("; install the nmt that wrote it or a newer one")


@pytest.mark.parametrize("format", [0, -1, "1", 1.5, True, None, []])
def test_a_format_that_is_none_is_damage(tmp_path: Path, format: object) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"format": format}), encoding="utf-8")
    with pytest.raises(Damaged, match=r"its format is .*, which is not a number from 1"):
        read_state(tmp_path)


def test_a_run_that_was_unpacked_without_links(run: Command) -> None:
    """Zip keeps a link as a link by name alone: what unpacks it may leave a file with where it led."""
    links = [Path("run", name) for name in ("best", "latest")]
    for link in links:
        target = str(link.readlink())
        link.unlink()
        link.write_text(target)
    error = run("translate", "run", "--input", "test.de").error
    assert error.startswith("run/best: is a file, not a link: what has copied or unpacked run keeps no links; name the")
    named = run("score", "run/checkpoints/step-00000600", *GIVEN, "--quiet")
    for link in links:
        link.unlink()
    assert run("score", "run", *GIVEN, "--quiet") == named
    assert len(named.stdout.splitlines()) == 4


def _change_state(folder: Path, change: Callable[[dict[str, Any]], object], *, mend: bool = True) -> None:
    """Changes what each checkpoint tells of itself, and, to ``mend``, the checksum of it."""
    for path in (folder / "run").glob("checkpoints/*/state.json"):
        before = path.read_bytes()
        state = json.loads(before)
        change(state)
        path.write_text(json.dumps(state), encoding="utf-8")
        if mend:
            sums = path.with_name("SHA256SUMS")
            old, new = (hashlib.sha256(data).hexdigest() for data in (before, path.read_bytes()))
            sums.write_text(sums.read_text("utf-8").replace(old, new), encoding="utf-8")
