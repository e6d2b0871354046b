"""The options of `nmt align` for reports on a corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.runs import Command, in_process


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt align` in ``tmp_path``, where ``s`` and ``t`` are files of pairs."""
    monkeypatch.chdir(tmp_path)
    Path("s").write_text("Hund\n")
    Path("t").write_text("dog\n")
    return in_process(capsys, "align")


GIVEN = ["-s", "s", "-t", "t"]
OF_A_LEXICON = "--min-count and --lowercase say what is in a lexicon or glossary; give --lexicon or --terms as well"
SAME_FILE = "--output, --lexicon, --terms and --suspects: two of them are the same file; give each its own"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*GIVEN, "--min-count", "2"], OF_A_LEXICON),
        ([*GIVEN, "--suspects", "x", "--lowercase"], OF_A_LEXICON),
        ([*GIVEN, "--terms", "x", "--examples", "2"], "--examples says what is in a lexicon; give --lexicon as well"),
        ([*GIVEN, "--min-score", "2"], "--min-score says which pairs are suspicious; give --suspects as well"),
        ([*GIVEN, "--suspects", "x", "--min-score", "nan"], "--min-score nan: give a finite number"),
        (
            ["-s", "s", "--suspects", "x"],
            "--suspects looks for mistranslations in given pairs; give --target as well",
        ),
        ([*GIVEN, "--suspects", "x", "--lexicon", "./x"], SAME_FILE),
        ([*GIVEN, "--lexicon", "x", "--output", "x"], SAME_FILE),
        ([*GIVEN, "--lexicon", "s"], "--lexicon s: is an input file of this command; write to another file"),
        ([*GIVEN, "--suspects", "t"], "--suspects t: is an input file of this command; write to another file"),
        ([*GIVEN, "--lexicon", "."], "--lexicon .: is not a regular file; give the name of a file to write"),
        ([*GIVEN, "--suspects", "no/x"], "--suspects no/x: cannot be written: No such file or directory"),
        (
            [*GIVEN, "--compare", "--lexicon", "x"],
            "--compare prints a report on all methods, between words; leave out --lexicon",
        ),
    ],
    ids=[
        "min-count", "lowercase", "examples", "min-score", "nan", "target", "same", "output", "source", "target-file",
        "folder", "no-folder", "compare",
    ],
)  # fmt: skip
def test_options_that_make_no_sense_together(trained: Path, align: Command, arguments: list[str], message: str) -> None:
    code, stdout, stderr = align(trained / "run", *arguments)
    assert (code, stdout, stderr.splitlines()[-1]) == (2, "", f"error: {message}")
    assert sorted(path.name for path in Path().iterdir()) == ["s", "t"]
