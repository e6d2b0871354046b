"""The options of `nmt align` for reports on a corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.runs import Command

PAIRS = "-s s -t t"
LEXICON = "--min-count and --lowercase say what is in a lexicon or glossary; give --lexicon or --terms as well"
SAME = "two of them are the same file; give each its own"


FAULTS = [
    (f"{PAIRS} --min-count 2", LEXICON),
    (f"{PAIRS} --suspects x --lowercase", LEXICON),
    (f"{PAIRS} --terms x --examples 2", "--examples says what is in a lexicon; give --lexicon as well"),
    (f"{PAIRS} --min-score 2", "--min-score says which pairs are suspicious; give --suspects as well"),
    (f"{PAIRS} --suspects x --min-score nan", "--min-score nan: give a finite number"),
    ("-s s --suspects x", "--suspects looks for mistranslations in given pairs; give --target as well"),
    (f"{PAIRS} --suspects x --lexicon ./x", f"--lexicon, --suspects: {SAME}"),
    (f"{PAIRS} --lexicon x --output x", f"--output, --lexicon: {SAME}"),
    (f"{PAIRS} --lexicon s", "--lexicon s: is an input file of this command; write to another file"),
    (f"{PAIRS} --suspects t", "--suspects t: is an input file of this command; write to another file"),
    (f"{PAIRS} --lexicon .", "--lexicon .: cannot be written: is a folder"),
    (f"{PAIRS} --suspects no/x", "--suspects no/x: cannot be written: folder no does not exist"),
    (f"{PAIRS} --compare --lexicon x", "--compare prints a report on all methods, between words; leave out --lexicon"),
    (f"{PAIRS} --suspects x --base 1",
     "--base and --level are of links, which only reports do not show; add --output or --format"),
    (f"{PAIRS} --format html -o x --level subword",
     "--level subword: --format html shows words; leave it out, or use --format png"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), FAULTS)
def test_options_that_make_no_sense_together(
    arguments: str, message: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s").write_text("Hund\n")
    Path("t").write_text("dog\n")
    assert run("align", trained / "run", *arguments.split()).error == message
    assert sorted(path.name for path in Path().iterdir()) == ["s", "t"]
