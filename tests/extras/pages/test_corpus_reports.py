"""`nmt align --lexicon` and `--suspects` on tiny runs. The command line runs in this process."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nmt as package
from nmt.alignment.directions import join
from nmt.extras.pages.bilingual_lexicon import BilingualLexicon
from nmt.extras.pages.corpus_filter import length, usual_lengths
from nmt.translator.both_directions import BothDirections
from nmt.workflows import align as workflow
from tests.workflows.runs import Command, in_process
from tests.workflows.test_align_both_directions import train_reverse

PRECISE = ("--precision", "float32")
SOURCES = ["Hund und Katze.", "", "zwei Hund", "eins", " ", "grün\tKatze  drei", "Hund 17", "eins zwei", "Katze"]
TARGETS = ["dog and cat.", "x", "two dog", "one three", "", "green cat three", "dog", "eins  Zwei", "cat " * 12]


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt align` in ``tmp_path``, where ``s`` and ``t`` are files of pairs."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", SOURCES), ("t", TARGETS)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))

    return in_process(capsys, "align")


@pytest.fixture(scope="module")
def reverse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates the other way."""
    return train_reverse(tmp_path_factory.mktemp("reverse"))


def table(path: str) -> list[dict[str, str]]:
    header, *lines = Path(path).read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def json_rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def as_cells(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {
            key: "" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)
            for key, value in row.items()
        }
        for row in rows
    ]


def test_the_lexicon_is_that_of_the_links_that_are_written(
    trained: Path, align: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (trained / "run", "-s", "s", "-t", "t", *PRECISE)
    alone = align(*given, "--lexicon", "lexicon")
    assert (alone.code, alone.stdout) == (0, ""), alone.stderr
    assert alone.stderr.splitlines()[-1] == f"{len(table('lexicon'))} entries: lexicon"
    found = align(*given, "--lexicon", "again", "--format", "pharaoh")
    assert found.stdout == align(*given).stdout, "and with --format the links as without a lexicon"
    monkeypatch.setattr(workflow, "WINDOW_PAIRS", 2)
    assert align(*given, "--lexicon", "windows", "--quiet", "-o", "links") == (0, "", "")
    assert Path("links").read_text() == found.stdout
    assert Path("lexicon").read_bytes() == Path("again").read_bytes() == Path("windows").read_bytes()

    # Each word counts once, in the entry of the words that its links lead to.
    words = Counter(word.rstrip(".") for line in SOURCES for word in line.split())
    counted: Counter[str] = Counter()
    for row in table("lexicon"):
        for word in row["source"].split():
            counted[word] += int(row["count"]) if word != "…" else 0
    assert +counted == words
    lexicon = BilingualLexicon()
    translator = package.load(trained / "run", precision="float32")
    for line, alignment in enumerate(translator.align(SOURCES, TARGETS), 1):
        lexicon.add(alignment, line)
    assert [(row["source"], row["target"], row["count"], row["lines"]) for row in table("lexicon")] == [
        (each.source, each.target, str(each.count), " ".join(map(str, each.lines))) for each in lexicon.entries()
    ]


def test_the_options_of_the_lexicon(trained: Path, align: Command) -> None:
    given = (trained / "run", "-s", "s", "-t", "t", *PRECISE)
    assert align(*given, "--lexicon", "all", "--lowercase", "--examples", "9").code == 0
    rows = table("all")
    assert align(*given, "--lexicon", "some.jsonl", "--lowercase", "--examples", "1", "--min-count", "2").code == 0
    expected = [{**row, "lines": row["lines"].split()[0]} for row in rows if int(row["count"]) > 1]
    assert as_cells(json_rows("some.jsonl")) == expected
    assert 0 < len(expected) < len(rows)
    assert align(*given, "--lexicon", "none", "--examples", "0").code == 0
    assert {row["lines"] for row in table("none")} == {""}


def test_a_lexicon_of_the_models_own_translations(trained: Path, align: Command) -> None:
    given = (trained / "run", "-s", "s", "--free-running", "--beam", "2", *PRECISE)
    assert align(*given, "--lexicon", "lexicon.jsonl", "-o", "links.jsonl", "--format", "jsonl").code == 0

    def words(text: str) -> list[str]:
        return [word for word in text.split() if any(map(str.isalnum, word))]

    made = Counter(word for row in json_rows("links.jsonl") for word in words(" ".join(row["target_words"])))
    found: Counter[str] = Counter()
    for row in json_rows("lexicon.jsonl"):
        for word in words(row["target"]):
            found[word] += row["count"]
    assert found == made
    assert len(made) > 3


@pytest.mark.parametrize("directions", [1, 2])
def test_suspects_have_the_scores_of_the_formula(
    trained: Path, reverse: Path, align: Command, monkeypatch: pytest.MonkeyPatch, directions: int
) -> None:
    given = [trained / "run", "-s", "s", "-t", "t", *PRECISE, *(["--reverse", reverse] if directions == 2 else [])]
    done = align(*given, "--suspects", "all.jsonl", "--min-score", "-1")
    assert (done.code, done.stdout) == (0, ""), done.stderr
    assert done.stderr.splitlines()[-1] == "8 suspicious pairs: all.jsonl"
    rows = json_rows("all.jsonl")
    assert sorted(row["line"] for row in rows) == [1, 2, 3, 4, 6, 7, 8, 9], "all but two blank sides"
    assert rows == sorted(rows, key=lambda row: (-row["score"], row["line"]))
    runs = [(trained / "run", SOURCES, TARGETS), (reverse, TARGETS, SOURCES)][:directions]
    scored = [package.load(run, precision="float32").score(*sides) for run, *sides in runs]
    lengths = usual_lengths((length(s), length(t)) for s, t in zip(SOURCES, TARGETS, strict=True))
    for row in rows:
        place = row["line"] - 1
        nll = sum(-scores[place].log_prob / len(scores[place].tokens) for scores in scored) / directions
        z = lengths.z(SOURCES[place], TARGETS[place])
        assert (row["nll"], row["z"]) == pytest.approx((nll, z), abs=1e-4)
        assert row["score"] == pytest.approx(nll + z * z / 2, abs=1e-4)
        assert (row["source"].split(), row["target"].split()) == (SOURCES[place].split(), TARGETS[place].split())
    kinds = {row["line"]: set(row["kinds"]) - {"unlinked"} for row in rows}
    assert kinds == {
        1: {"unlikely"}, 2: {"unlikely", "blank"}, 3: {"unlikely"}, 4: {"unlikely"}, 6: {"unlikely"},
        7: {"unlikely", "numbers"}, 8: {"unlikely", "copied"}, 9: {"unlikely"},
    }  # fmt: skip

    monkeypatch.setattr(workflow, "WINDOW_PAIRS", 2)
    assert align(*given, "--suspects", "all", "--min-score", "-1", "-o", "links").code == 0
    assert table("all") == as_cells(rows)
    assert len(Path("links").read_text().splitlines()) == len(SOURCES)
    least = rows[3]["score"]
    assert align(*given, "--suspects", "some", "--min-score", str(least - 1e-4)).code == 0
    unlikely = [row["line"] for row in table("some") if "unlikely" in row["kinds"]]
    assert unlikely == [str(row["line"]) for row in rows[:4]]
    assert {"2", "7", "8"} <= {row["line"] for row in table("some")}, "what is suspicious otherwise stays"


def test_both_reports_in_one_run_go_by_the_joined_links(trained: Path, reverse: Path, align: Command) -> None:
    given = [trained / "run", "--reverse", reverse, "-s", "s", "-t", "t", *PRECISE, "--symmetrize", "intersection"]
    assert align(*given, "--lexicon", "lexicon", "--suspects", "suspects", "--min-score", "-1").code == 0
    both = BothDirections(
        *(package.load(run, precision="float32") for run in (trained / "run", reverse)), join("intersection")
    )
    alignments = both.align(SOURCES, TARGETS)
    lexicon = BilingualLexicon()
    for line, alignment in enumerate(alignments, 1):
        lexicon.add(alignment, line)
    assert [(row["source"], row["target"]) for row in table("lexicon")] == [
        (each.source, each.target) for each in lexicon.entries()
    ]
    for row in table("suspects"):
        alignment = alignments[int(row["line"]) - 1]
        linked = {source for source, _ in alignment.links}
        loose = [word for place, word in enumerate(alignment.source_words) if place not in linked]
        assert row["source_words"].split() == loose + (["17"] if row["line"] == "7" else [])


def test_an_error_on_the_way_leaves_no_file_and_an_old_one_as_it_was(trained: Path, align: Command) -> None:
    Path("t").write_text("".join(f"{line}\n" for line in TARGETS[:-1]))
    Path("old").write_text("old")
    for reports in (["--lexicon", "old"], ["--suspects", "old"], ["--lexicon", "new"]):
        done = align(trained / "run", "-s", "s", "-t", "t", *PRECISE, *reports)
        message = "error: t has 8 lines, but s has more: they must go together line by line"
        assert (done.code, done.stderr.splitlines()[-1]) == (2, message)
    assert Path("old").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["old", "s", "t"]
