"""The trials, notes and messages of `make compatibility`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import check_compatibility
from scripts.check_compatibility import PARTS, PYTHONS, Failed, Tried, main, passed_line

ROOT = Path(__file__).resolve().parents[2]


def trial(python: str, set: str, part: str, *, passed: bool) -> Tried:
    return Tried(
        python, set, part, "torch 2.13.0", "3 passed in 1.00s" if passed else "1 failed | 2 passed", 1.5, passed
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every trial that is made, none of which is; those of Python 3.14 fail. Of Python 3.12 there is no interpreter."""
    made: list[str] = []

    def attempt(version: str, python: Path, set: str, part: str, torch: str, *, place: Path, keep: bool) -> Tried:
        made.append(f"{version} {set} {part}")
        return trial(version, set, part, passed=version != "3.14")

    monkeypatch.setattr(check_compatibility, "attempt", attempt)
    monkeypatch.setattr(check_compatibility, "find_python", lambda version: Path() if version != "3.12" else None)
    return made


def test_each_extra_is_tried_alone() -> None:
    section = (ROOT / "pyproject.toml").read_text("utf-8").partition("[project.optional-dependencies]\n")[2]
    extras = re.findall(r"^(\w+) = \[", section.partition("\n[")[0], re.MULTILINE)
    assert len(extras) >= 6
    assert set(extras) - {"all"} == set(PARTS) - {"core", "docs", "dev"}
    for extra in set(extras) - {"all"}:
        assert PARTS[extra].extras == (extra,)


def test_pythons_are_those_that_nmt_says_it_is_for() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text) == list(PYTHONS)
    assert all(python in (ROOT / ".github/workflows/test.yml").read_text("utf-8") for python in PYTHONS)


@pytest.mark.parametrize("part", PARTS)
def test_what_is_tried_is_there(part: str) -> None:
    paths = [path for path in PARTS[part].tests if not path.startswith("-")]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("...  [100%]\n3 passed in 0.10s\n", "3 passed in 0.10s"),
        ("===== 312 passed, 1 skipped in 9.10s (0:01:00) =====", "312 passed, 1 skipped in 9.10s (0:01:00)"),
    ],
)
def test_tests_that_passed_are_counted(said: str, line: str) -> None:
    assert passed_line(said) == line


@pytest.mark.parametrize("said", ["2 skipped in 0.03s", "no tests ran in 0.01s", "5 deselected in 0.01s", "0 passed"])
def test_where_all_is_skipped_nothing_has_passed(said: str) -> None:
    with pytest.raises(Failed, match=f"^no test was run: {said}$"):
        passed_line(f"s\n{said}\n")


def test_all_is_tried_unless_something_is_named(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--set", "oldest", "--part", "core", "ray"]) == 1
    assert asked == [f"{python} oldest {part}" for python in ("3.11", "3.13", "3.14") for part in ("core", "ray")]
    said = capsys.readouterr()
    assert "Python 3.12: none is at hand" in said.err
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in said.out.splitlines()]
    assert rows[0] == ["Python", "set", "part", "versions", "tests", "seconds"]
    assert rows[2] == ["3.11", "oldest", "core", "torch 2.13.0", "3 passed in 1.00s", "2"]
    assert rows[-1][4] == r"FAILED: 1 failed \| 2 passed"
    assert {len(row) for row in rows} == {6}
    asked.clear()
    assert main(["--python", "3.11"]) == 0
    assert len(asked) == 3 * len(PARTS)


def test_what_has_passed_is_not_tried_again(
    tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--set", "newest", "--part", "onnx", "--record", str(tmp_path / "new" / "tried.jsonl")]
    assert main(["--python", "3.11", "3.14", *options]) == 1
    asked.clear()
    assert main(["--python", "3.11", "3.13", "3.14", *options]) == 1
    assert asked == ["3.13 newest onnx", "3.14 newest onnx"]
    assert len(capsys.readouterr().out.splitlines()) == 4 + 5
    lines = [json.loads(line) for line in (tmp_path / "new" / "tried.jsonl").read_text().splitlines()]
    assert [(each["python"], each["passed"]) for each in lines] == [
        ("3.11", True), ("3.14", False), ("3.13", True), ("3.14", False)
    ]  # fmt: skip
    assert main(["--python", "3.11", *options]) == 1  # the failed one stays in the table
    (tmp_path / "new" / "tried.jsonl").write_text(
        (tmp_path / "new" / "tried.jsonl").read_text().replace("false", "true")
    )
    assert main(["--python", "3.11", *options]) == 0


@pytest.mark.parametrize("line", ["{", "[]", '{"python": "3.11"}'])
def test_another_file_is_no_record(tmp_path: Path, asked: list[str], line: str) -> None:
    (tmp_path / "notes").write_text(f"{line}\n")
    with pytest.raises(SystemExit, match=r"^error: .*notes:1: no trial that --record has noted; name another file$"):
        main(["--record", str(tmp_path / "notes")])
    assert not asked


def test_a_step_that_fails_is_told_by_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_compatibility.sys, "executable", _program(tmp_path, "echo one; echo two >&2; exit 3"))
    tried = check_compatibility.attempt(
        "3.11", Path("python"), "oldest", "docs", "2.13.0", place=tmp_path / "place", keep=False
    )
    assert (tried.passed, tried.outcome, tried.versions) == (False, "two", "")
    assert not list((tmp_path / "place").iterdir())
    assert "one" in capsys.readouterr().err


def test_a_step_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_compatibility, "LIMIT_MINUTES", 0.001)
    run: Callable[..., str] = check_compatibility._run
    with pytest.raises(Failed, match=r"^program was not done after 0\.001 minutes$"):
        run([_program(tmp_path, "exec sleep 60")], cwd=tmp_path)


def _program(folder: Path, does: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return str(path)
