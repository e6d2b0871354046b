"""Options of `nmt links` that do not go together, and its old spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.cli.links import renamed
from tests.cli.conftest import mistakes
from tests.workflows.runs import Command

MISTAKES = {
    "f -s s": "LINKS are of given pairs; give --target as well",
    "-s s -t t": "LINKS is missing; name the file with the links",
    "f": "--source is missing; name the file with the source sentences",
    "f -s s -t t --symmetrize union":
        "--symmetrize and --threshold join two files of links; give --reverse-links as well",
    "f -s s -t t --suspects out": "--suspects: no such option (see nmt links --help)",
    "f -s s -t t --format html -o out --view attention":
        "--view attention: of links from files choose one of links, forward:links, backward:links",
    "f -s s -t t --format html -o out --view backward:links":
        "--view backward:links: is of one of two files; give --reverse-links as well",
    "f -s s -t t --lexicon out --base 1":
        "--base is of links, which only reports do not show; add --output or --format",
    "f -s s -t t --format html -o out --lexicon out":
        "--output, --lexicon: two of them are the same file; give each its own",
}  # fmt: skip
test_mistakes = mistakes("links", MISTAKES)

WARNING = "warning: nmt align --links FILE is now nmt links FILE; the old spelling works until nmt 0.3\n"


SPELLINGS = [
    ("align --links f -s s -t t --target-first", "links f -s s -t t --target-first", WARNING),
    ("align -s s -t t --links=f", "links f -s s -t t", WARNING),
    ("align -s s --links", "links -s s", WARNING),
    ("align run -s s --reverse x", "align run -s s --reverse x", ""),
    ("links --links f", "links --links f", ""),
]


@pytest.mark.parametrize(("old", "new", "warning"), SPELLINGS)
def test_the_old_spelling_names_the_new_command(
    old: str, new: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert renamed(old.split()) == new.split()
    assert capsys.readouterr().err == warning


def test_the_old_spelling_writes_the_same_links(run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("s", "eins zwei\n"), ("t", "one two\n"), ("f", "0-0\n"), ("b", "0-0 1-1\n")):
        Path(name).write_text(text)
    given = ("--reverse-links", "b", "--format", "gold")
    for pair in (("-s", "s", "-t", "t"), ("s", "t")):
        assert run("links", "f", *pair, *given) == (0, "0-0 1p1\n", "")
        assert run("align", "--links", "f", *pair, *given) == (0, "0-0 1p1\n", WARNING)
    Path("both").write_text("eins zwei\tone two\n")
    assert run("links", "f", "both") == (0, "0-0\n", "")
