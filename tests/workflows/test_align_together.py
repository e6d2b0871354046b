"""Whatever aligns, all that `nmt align` writes works with it, and all of it in one run. The command line runs in this
process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.alignment.directions import join
from nmt.alignment.error_rate import AlignmentScore, score_pair
from nmt.alignment.formats import (
    Alignment,
    LineWriter,
    NpzWriter,
    gold_line,
    jsonl_line,
    parse_gold,
    pharaoh_line,
    read_jsonl,
    read_npz,
)
from nmt.alignment.link_files import TsvWriter, read_links
from nmt.alignment.views import View
from nmt.extras.pages.bilingual_lexicon import BilingualLexicon
from nmt.extras.pages.corpus_reports import LexiconOptions, SuspectsOptions
from nmt.extras.pages.formats import PictureWriter
from nmt.extras.pages.viewer import open_page
from nmt.translator.views import OneWay, Views, one_view
from nmt.workflows import align as align_workflow
from nmt.workflows import align_links
from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, file, lines, write_alignments
from tests.workflows.runs import Command, in_process
from tests.workflows.test_align_html import read, same

PRECISE = ("--precision", "float32")
SOURCES = ["Er geht, heute.", "", "Hund und Katze", "a b c d e f", "drei"]
TARGETS = ["He goes today .", "x", "dog and cat", "u v w x y", "three three"]
FORWARD = "0-0 1-1 2-2\n\n0-0\n0-0 1-1 2-1 3-3 5-4\n0-0 0-1\n"
BACKWARD = "0-0 1-1 2-2 2-3\n\n\n0-0 1-1 1-2 3-3 4-3\n0-1\n"
GOLD = "0-0 1p1\n\n0-0 1-1 2-2\n5-4\n\n"


@pytest.fixture(autouse=True)
def _files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(align_workflow, "WINDOW_PAIRS", 2)
    monkeypatch.setattr(align_links, "WINDOW_PAIRS", 2)
    for name, texts in (("s", SOURCES), ("t", TARGETS)):
        Path(name).write_text("".join(f"{line}\n" for line in texts))
    for name, text in (("f", FORWARD), ("b", BACKWARD), ("gold", GOLD)):
        Path(name).write_text(text)


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "align")


class EveryOther:
    """An aligner of our own: it links every word with the one at twice its place, where there is one."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def align(self, sources: Sequence[str], targets: Sequence[str], first_line: int) -> list[Alignment]:
        self.asked.append((first_line, len(sources)))
        found = []
        for source, target in zip(sources, targets, strict=True):
            ours, theirs = tuple(source.split()), tuple(target.split())
            links = tuple((place, 2 * place) for place in range(len(ours)) if 2 * place < len(theirs))
            weights_TS = np.full((len(theirs), len(ours)), 0.2)
            for one, other in links:
                weights_TS[other, one] = 0.8
            found.append(Alignment(ours, theirs, links, weights_TS))
        return found


LINKS = [((0, 0), (1, 2)), (), ((0, 0), (1, 2)), ((0, 0), (1, 2), (2, 4)), ((0, 0),)]
INPUTS = AlignmentInputs(Path("s"), Path("t"), Path("gold"))


@pytest.mark.parametrize(
    "writer",
    [
        lines(lambda stream: LineWriter(stream, lambda pair: pharaoh_line(pair.links, 0))),
        lines(lambda stream: LineWriter(stream, lambda pair: gold_line(pair.as_gold(), 0))),
        lines(TsvWriter),
        lines(lambda stream: LineWriter(stream, jsonl_line)),
        file(lambda path, _: NpzWriter(path)),
    ],
    ids=["pharaoh", "gold", "tsv", "jsonl", "npz"],
)
def test_an_aligner_of_ones_own_is_written_in_every_format(writer: Any) -> None:
    aligner = EveryOther()
    outputs = AlignmentOutputs(Path("out"), writer)
    (score,) = write_alignments(one_view("mine", aligner), INPUTS, outputs).values()
    assert [each.links for each in read_links(Path("out"))] == LINKS
    assert aligner.asked == [(1, 2), (3, 2), (5, 1)]
    total = AlignmentScore()
    for links, line in zip(LINKS, GOLD.splitlines(), strict=True):
        total += score_pair(links, parse_gold(line))
    assert score == total


def test_an_aligner_of_ones_own_has_a_page_pictures_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    lexicon, suspects = LexiconOptions(Path("lexicon")), SuspectsOptions(Path("suspects"), min_score=5)
    outputs = AlignmentOutputs(Path("page.html"), open_page, [lexicon, suspects])
    write_alignments(
        one_view("mine", EveryOther()), INPUTS, outputs, facts=["by hand"], nlls=lambda one, _, first: [9.0] * len(one)
    )
    meta, pairs = read("page.html")
    assert (meta["views"], meta["facts"]) == (["mine"], ["s – t", "by hand"])
    assert [each["mine"][0] for each in pairs] == [list(each) for each in LINKS]
    assert Path("lexicon").read_text().splitlines()[1].split("\t")[:3] == ["a", "u", "1"]
    assert len(Path("suspects").read_text().splitlines()) == 1 + len(SOURCES)
    assert capsys.readouterr().err.splitlines()[-1].startswith("AER ")
    pictures = AlignmentOutputs(Path("pictures"), file(lambda path, _: PictureWriter(path, format="svg")))
    write_alignments(one_view("mine", EveryOther()), INPUTS, pictures)
    assert len(list(Path("pictures").iterdir())) == len(SOURCES)


def test_two_aligners_of_ones_own_are_joined() -> None:
    shown = [View("mine"), View("mine", side="backward"), View("mine", side="forward")]
    both = Views(shown, {"forward": OneWay(EveryOther()), "backward": OneWay(EveryOther())}, join("intersection"))
    joined, backward, forward = both.align(SOURCES, TARGETS, first_line=1)
    assert [each.links for each in forward] == LINKS
    assert [set(each.links) for each in backward] == [
        {(2 * place, place) for place in range(len(target.split())) if 2 * place < len(source.split())}
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    for three in zip(joined, forward, backward, strict=True):
        one, other, another = (set(each.links) for each in three)
        assert one == other & another
    assert set(write_alignments(both, INPUTS, AlignmentOutputs(Path("out")))) == {
        "mine",
        "backward:mine",
        "forward:mine",
    }
    assert [each.links for each in read_links(Path("out"))] == [each.links for each in joined], "the first view"


FILES = ("-s", "s", "-t", "t", "--links", "f")
BOTH = (*FILES, "--reverse-links", "b")


def test_a_page_of_links_from_files_has_their_views(align: Command) -> None:
    views = [part for view in ("backward:links", "links", "forward:links", "links") for part in ("--view", view)]
    code, out, err = align(*BOTH, "--gold", "gold", "--format", "html", "-o", "page", *views)
    assert (code, out) == (0, "")
    meta, pairs = read("page")
    rule = "The links of the two directions are joined by grow-diag-final-and; the weights are the mean."
    assert meta == {
        "views": ["backward:links", "links", "forward:links"],
        "facts": ["s – t", "f", "b"],
        "gold": True,
        "explanations": {"links": rule},
    }
    judged = []
    for view, arguments in (("backward:links", (*FILES[:-1], "b")), ("links", BOTH), ("forward:links", FILES)):
        _, _, said = align(*arguments, "--gold", "gold", "--format", "jsonl", "-o", "alone")
        same([each[view] for each in pairs], "alone")
        judged.append(f"{view}: {said}")
    assert err == "".join(judged)
    assert align(*BOTH, "--format", "html", "-o", "page")[0] == 0
    assert read("page")[0]["views"] == ["links"]
    assert align(*FILES, "--format", "html", "-o", "page", "--view", "links")[0] == 0


def test_a_view_of_one_file_leaves_the_other_unread(align: Command) -> None:
    Path("b").write_text("0-0\n")
    assert align(*BOTH, "--format", "html", "-o", "page", "--view", "forward:links")[0] == 0
    code, _, err = align(*BOTH, "--format", "html", "-o", "new", "--view", "backward:links")
    assert (code, err) == (2, "error: b has 1 pairs, but s has more: they must go together one by one\n")
    assert not Path("new").exists()


def test_words_of_ordinary_text_and_gold_links_from_1_in_the_page(trained: Path, align: Command) -> None:
    Path("links").write_text("4-3\n\n\n5-4\n\n")
    Path("gold").write_text("5-4 1p1\n\n\n6-5\n1-2\n")
    given = ("-s", "s", "-t", "t", "--text", "--gold", "gold", "--gold-base", "1")
    for by in (("--links", "links"), (trained / "run", *PRECISE)):
        code, _, err = align(*by, *given, "--format", "html", "-o", "page")
        assert code == 0, err
        score = err.splitlines()[-1]
        code, _, err = align(*by, *given, "--format", "jsonl", "-o", "alone")
        assert (code, err.splitlines()[-1]) == (0, score)
        assert "[[4,3],[0,0]]" in Path("page").read_text()
        (view,) = read("page")[0]["views"]
        same([each[view] for each in read("page")[1]], "alone")
        assert next(read_jsonl(Path("alone"))).source_words == ("Er", "geht", ",", "heute", ".")
    assert '["Er","geht",",","heute","."]' in Path("page").read_text()


@pytest.mark.parametrize("text", [False, True], ids=["words", "text"])
def test_a_lexicon_of_links_from_files(align: Command, text: bool) -> None:
    given = (*BOTH, "--lexicon", "lexicon.jsonl", *(["--text"] if text else []))
    code, out, err = align(*given)
    assert (code, out) == (0, "")
    assert align(*given, "--format", "npz", "-o", "npz")[0] == 0
    glossary = BilingualLexicon()
    for line, alignment in enumerate(read_npz(Path("npz")), 1):
        glossary.add(alignment, line)
    rows = [json.loads(line) for line in Path("lexicon.jsonl").read_text().splitlines()]
    assert [(row["source"], row["target"], row["count"], row["lines"]) for row in rows] == [
        (each.source, each.target, each.count, list(each.lines)) for each in glossary.entries()
    ]
    assert err == f"{len(rows)} entries: lexicon.jsonl\n"
    assert ("," in {row["source"] for row in rows}) == text


def test_pictures_of_links_from_files(align: Command) -> None:
    assert align(*BOTH, "--format", "svg", "-o", "pictures", "--gold", "gold")[0] == 0
    assert sorted(each.name for each in Path("pictures").iterdir()) == [f"00000{n}.svg" for n in range(1, 6)]
    assert ">Katze</text>" in Path("pictures/000003.svg").read_text()


def test_a_page_and_both_reports_in_one_run_are_what_each_is_alone(trained: Path, align: Command) -> None:
    given = (trained / "run", "-s", "s", "-t", "t", *PRECISE)
    reports = ("--lexicon", "lexicon", "--suspects", "suspects", "--min-score", "0")
    views = ("--view", "gradient", "--view", "attention")
    assert align(*given, "--format", "html", "-o", "page", *reports, *views)[0] == 0
    together = [Path(name).read_bytes() for name in ("page", "lexicon", "suspects")]
    assert align(*given, "--format", "html", "-o", "page", *views)[0] == 0
    # The first view is what the reports go by.
    assert align(*given, "--method", "gradient", *reports)[0] == 0
    assert [Path(name).read_bytes() for name in ("page", "lexicon", "suspects")] == together
    assert align(*given, "--method", "attention", *reports)[0] == 0
    assert Path("lexicon").read_bytes() != together[1]


def test_suspects_are_shown_as_they_are_written(trained: Path, align: Command) -> None:
    given = (trained / "run", "-s", "s", "-t", "t", *PRECISE, "--text", "--suspects", "suspects.jsonl")
    assert align(*given, "--min-score", "-9")[0] == 0
    rows = {row["line"]: row for row in map(json.loads, Path("suspects.jsonl").read_text().splitlines())}
    assert (rows[1]["source"], rows[1]["target"]) == (SOURCES[0], TARGETS[0])
    assert set(rows) == {1, 2, 3, 4, 5}


HTML = ("--format", "html", "-o", "out")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [*FILES, "--suspects", "out"],
            "--suspects asks a model how probable each pair is, and --links are of none; leave one out",
        ),
        (
            [*FILES, *HTML, "--view", "attention"],
            "--view attention: of links from files choose one of links, forward:links, backward:links",
        ),
        (
            [*FILES, *HTML, "--view", "backward:links"],
            "--view backward:links: is of one of two files; give --reverse-links as well",
        ),
        ([*FILES, "--view", "links"], "--view chooses what --format html shows; add that, or leave out --view"),
        (
            [*FILES, *HTML, "--base", "0"],
            "--base: html always counts from 0; leave it out, or use pharaoh, gold or tsv",
        ),
        ([*FILES, "--lexicon", "f"], "--lexicon f: is an input file of this command; write to another file"),
        ([*BOTH, "--format", "html", "-o", "b"], "--output b: is an input file of this command; write to another file"),
        (
            [*FILES, "--lexicon", "out", "--base", "1"],
            "--base and --level are of links, which only reports do not show; add --output or --format",
        ),
        (
            [*FILES, *HTML, "--lexicon", "out"],
            "--output, --lexicon, --terms and --suspects: two of them are the same file; give each its own",
        ),
    ],
    ids=["suspects", "method", "one-file", "no-page", "base", "input", "reverse-input", "only-reports", "same"],
)
def test_mistakes_are_one_line(align: Command, arguments: list[str], message: str) -> None:
    assert align(*arguments) == (2, "", f"error: {message}\n")
    assert not Path("out").exists()


@pytest.mark.parametrize("line", ["0-9\n", "0-0\n" * 2], ids=["outside", "more"])
def test_a_fault_late_in_a_file_of_links_leaves_no_page_and_no_lexicon(align: Command, line: str) -> None:
    Path("f").write_text("\n" * 4 + line)
    before = sorted(Path().iterdir())
    code, out, err = align(*FILES, *HTML, "--lexicon", "lexicon")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert sorted(Path().iterdir()) == before


def test_torch_is_not_needed_for_a_page_and_a_lexicon_of_links() -> None:
    arguments = ["align", *BOTH, *HTML, "--lexicon", "lexicon", "--gold", "gold"]
    script = f"import sys; sys.modules['torch'] = None\nfrom nmt.cli import app\napp.main({arguments})"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": root}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert read("out")[0]["views"] == ["links"]
