"""Whatever aligns, all that `nmt align` writes works with it, and all of it in one run. The command line runs in this
process."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt as package
from nmt.alignment import formats
from nmt.alignment.directions import join
from nmt.alignment.error_rate import AlignmentScore, score_pair
from nmt.alignment.formats import Alignment, LineWriter
from nmt.alignment.link_files import TsvWriter, read_links
from nmt.alignment.request import AlignmentRequest, align_both
from nmt.extras.pages.bilingual_lexicon import BilingualLexicon
from nmt.extras.pages.corpus_filter import length, usual_lengths
from nmt.extras.pages.corpus_reports import LexiconOptions, SuspectsOptions
from nmt.extras.pages.formats import open_svg
from nmt.extras.pages.viewer import open_page
from nmt.workflows import align as align_workflow
from nmt.workflows import links as links_workflow
from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, first_view, lines, write_alignments
from tests.workflows.runs import EXACT, Command, in_process, json_lines, lines_of, without_torch, write_pairs

SOURCES = ["Er geht, heute.", "", "Hund und Katze", "a b c d e f", "drei"]
TARGETS = ["He goes today .", "x", "dog and cat", "u v w x y", "three three"]
FORWARD = "0-0 1-1 2-2\n\n0-0\n0-0 1-1 2-1 3-3 5-4\n0-0 0-1\n"
BACKWARD = "0-0 1-1 2-2 2-3\n\n\n0-0 1-1 1-2 3-3 4-3\n0-1\n"
GOLD = "0-0 1p1\n\n0-0 1-1 2-2\n5-4\n\n"


@pytest.fixture(autouse=True)
def _files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(align_workflow, "WINDOW_PAIRS", 2)
    monkeypatch.setattr(links_workflow, "WINDOW_PAIRS", 2)
    write_pairs(SOURCES, TARGETS)
    for name, text in (("f", FORWARD), ("b", BACKWARD), ("gold", GOLD)):
        Path(name).write_text(text)


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "align")


@pytest.fixture
def links(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "links")


def read(path: str) -> tuple[dict[str, Any], list[dict[str, tuple[list[Any], np.ndarray]]]]:
    """Reads the links and weights of each view of each pair, by the view's name."""
    text = Path(path).read_text(encoding="utf-8")
    (meta,) = re.findall(r'<script type="application/json" id="meta">(.*)</script>', text)
    blocks = re.findall(r'<script type="application/json" class="pairs">(.*)</script>', text)
    views, pairs = json.loads(meta), []
    for source, target, found, _ in (pair for block in blocks for pair in json.loads(block)):
        named = {}
        for name, (flat, weights) in zip(views["views"], found, strict=True):
            steps = np.frombuffer(base64.b64decode(weights), np.uint8).reshape(len(target), len(source))
            named[name] = (list(zip(flat[::2], flat[1::2], strict=True)), steps / 255)
        pairs.append(named)
    return views, pairs


def lexicon_of(alignments: Iterable[Alignment]) -> list[tuple[object, ...]]:
    lexicon = BilingualLexicon()
    for line, alignment in enumerate(alignments, 1):
        lexicon.add(alignment, line)
    return [(each.source, each.target, each.count, list(each.lines)) for each in lexicon.entries()]


def same(view: list[tuple[list[Any], np.ndarray]], path: str, *, turned: bool = False) -> None:
    """A view is what --format jsonl says."""
    expected = list(formats.read_jsonl(Path(path)))
    assert len(view) == len(expected)
    for (links, weights_TS), each in zip(view, expected, strict=True):
        assert links == sorted((link[1], link[0]) if turned else link for link in each.links)
        np.testing.assert_allclose(weights_TS, each.weights_TS.T if turned else each.weights_TS, atol=1 / 510 + 1e-6)


class EveryOther:
    """An aligner of our own: it links every word with the one at twice its place, where there is one."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def __call__(
        self, requests: Sequence[AlignmentRequest], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> dict[AlignmentRequest, list[Alignment]]:
        self.asked.append((first_line, len(sources)))
        found = []
        for source, target in zip(sources, targets, strict=True):
            ours, theirs = tuple(source.split()), tuple(target.split())
            links = tuple((place, 2 * place) for place in range(len(ours)) if 2 * place < len(theirs))
            weights_TS = np.full((len(theirs), len(ours)), 0.2)
            for one, other in links:
                weights_TS[other, one] = 0.8
            found.append(Alignment(ours, theirs, links, weights_TS))
        return dict.fromkeys(requests, found)


LINKS = [((0, 0), (1, 2)), (), ((0, 0), (1, 2)), ((0, 0), (1, 2), (2, 4)), ((0, 0),)]
MINE = [AlignmentRequest("mine")]
INPUTS = AlignmentInputs(Path("s"), Path("t"), Path("gold"))


@pytest.mark.parametrize(
    "writer",
    [
        lines(lambda stream: LineWriter(stream, lambda pair: formats.pharaoh_line(pair.links, 0))),
        lines(lambda stream: LineWriter(stream, lambda pair: formats.gold_line(pair.as_gold(), 0))),
        lines(TsvWriter),
        lines(lambda stream: LineWriter(stream, formats.jsonl_line)),
        lambda path, _: first_view(formats.NpzWriter(path)),
    ],
    ids=["pharaoh", "gold", "tsv", "jsonl", "npz"],
)
def test_an_aligner_of_ones_own_is_written_in_every_format(writer: Any) -> None:
    aligner = EveryOther()
    outputs = AlignmentOutputs(Path("out"), writer)
    (score,) = write_alignments(aligner, MINE, INPUTS, outputs).values()
    assert [each.links for each in read_links(Path("out"))] == LINKS
    assert aligner.asked == [(1, 2), (3, 2), (5, 1)]
    total = AlignmentScore()
    for links, line in zip(LINKS, GOLD.splitlines(), strict=True):
        total += score_pair(links, formats.parse_gold(line))
    assert score == total


def test_an_aligner_of_ones_own_has_a_page_pictures_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    lexicon, suspects = LexiconOptions(Path("lexicon")), SuspectsOptions(Path("suspects"), min_score=5)
    outputs = AlignmentOutputs(Path("page.html"), open_page, [lexicon, suspects])
    write_alignments(
        EveryOther(), MINE, INPUTS, outputs, facts=["by hand"], nlls=lambda one, _, first: [9.0] * len(one)
    )
    meta, pairs = read("page.html")
    assert (meta["views"], meta["facts"]) == (["mine"], ["s – t", "by hand"])
    assert [each["mine"][0] for each in pairs] == [list(each) for each in LINKS]
    assert Path("lexicon").read_text().splitlines()[1].split("\t")[:3] == ["a", "u", "1"]
    assert len(Path("suspects").read_text().splitlines()) == 1 + len(SOURCES)
    assert capsys.readouterr().err.splitlines()[-1].startswith("AER ")
    pictures = AlignmentOutputs(Path("pictures"), open_svg)
    write_alignments(EveryOther(), MINE, INPUTS, pictures)
    assert len(list(Path("pictures").iterdir())) == len(SOURCES)


def test_two_aligners_of_ones_own_are_joined() -> None:
    requests = [
        AlignmentRequest("mine", symmetrization=join("intersection")),
        AlignmentRequest("mine", direction="backward"),
        AlignmentRequest("mine", direction="forward"),
    ]
    both = partial(align_both, EveryOther(), EveryOther())
    joined, backward, forward = both(requests, SOURCES, TARGETS, first_line=1).values()
    assert [each.links for each in forward] == LINKS
    assert [set(each.links) for each in backward] == [
        {(2 * place, place) for place in range(len(target.split())) if 2 * place < len(source.split())}
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    for three in zip(joined, forward, backward, strict=True):
        one, other, another = (set(each.links) for each in three)
        assert one == other & another
    assert set(write_alignments(both, requests, INPUTS, AlignmentOutputs(Path("out")))) == {
        "mine",
        "backward:mine",
        "forward:mine",
    }
    assert [each.links for each in read_links(Path("out"))] == [each.links for each in joined], "the first view"


PAIRS = ("-s", "s", "-t", "t")
FILES = ("f", *PAIRS)
BOTH = (*FILES, "--reverse-links", "b")


def test_a_page_of_links_from_files_has_their_views(links: Command) -> None:
    views = [part for view in ("backward:links", "links", "forward:links", "links") for part in ("--view", view)]
    done = links(*BOTH, "--gold", "gold", "--format", "html", "-o", "page", *views)
    assert done.output == ""
    meta, pairs = read("page")
    rule = "The links of the two directions are joined by grow-diag-final-and; the weights are the mean."
    assert meta == {
        "views": ["backward:links", "links", "forward:links"],
        "facts": ["s – t", "f", "b"],
        "gold": True,
        "explanations": {"links": rule},
    }
    judged = []
    for view, arguments in (("backward:links", ("b", *PAIRS)), ("links", BOTH), ("forward:links", FILES)):
        _, _, said = links(*arguments, "--gold", "gold", "--format", "jsonl", "-o", "alone")
        same([each[view] for each in pairs], "alone")
        judged.append(f"{view}: {said}")
    assert done.stderr == "".join(judged)
    assert links(*BOTH, "--format", "html", "-o", "page")[0] == 0
    assert read("page")[0]["views"] == ["links"]
    assert links(*FILES, "--format", "html", "-o", "page", "--view", "links")[0] == 0


def test_a_view_of_one_file_leaves_the_other_unread(links: Command) -> None:
    Path("b").write_text("0-0\n")
    assert links(*BOTH, "--format", "html", "-o", "page", "--view", "forward:links")[0] == 0
    error = links(*BOTH, "--format", "html", "-o", "new", "--view", "backward:links").error
    assert error == "b has 1 pairs, but s has more: they must go together one by one"
    assert not Path("new").exists()


def test_words_of_ordinary_text_and_gold_links_from_1_in_the_page(
    trained: Path, align: Command, links: Command
) -> None:
    Path("links").write_text("4-3\n\n\n5-4\n\n")
    Path("gold").write_text("5-4 1p1\n\n\n6-5\n1-2\n")
    given = ("-s", "s", "-t", "t", "--text", "--gold", "gold", "--gold-base", "1")
    for command, *by in ((links, "links"), (align, trained / "run", *EXACT)):
        files = (("html", "page"), ("jsonl", "alone"))
        of_page, alone = (command(*by, *given, "--format", name, "-o", to) for name, to in files)
        assert (of_page.code, alone.code) == (0, 0), of_page.stderr
        assert alone.stderr.splitlines()[-1] == of_page.stderr.splitlines()[-1]
        assert "[[4,3],[0,0]]" in Path("page").read_text()
        (view,) = read("page")[0]["views"]
        same([each[view] for each in read("page")[1]], "alone")
        assert next(formats.read_jsonl(Path("alone"))).source_words == ("Er", "geht", ",", "heute", ".")
    assert '["Er","geht",",","heute","."]' in Path("page").read_text()


@pytest.mark.parametrize("text", [False, True], ids=["words", "text"])
def test_a_lexicon_of_links_from_files(links: Command, text: bool) -> None:
    given = (*BOTH, "--lexicon", "lexicon.jsonl", *(["--text"] if text else []))
    done = links(*given)
    rows = json_lines("lexicon.jsonl")
    assert done == (0, "", f"{len(rows)} entries: lexicon.jsonl\n")
    assert links(*given, "--format", "npz", "-o", "npz")[0] == 0
    found = [(row["source"], row["target"], row["count"], row["lines"]) for row in rows]
    assert found == lexicon_of(formats.read_npz(Path("npz")))
    assert ("," in {row["source"] for row in rows}) == text


def test_a_page_and_both_reports_in_one_run_are_what_each_is_alone(trained: Path, align: Command) -> None:
    given = (trained / "run", *GIVEN)
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


HTML = ("--format", "html", "-o", "out")


@pytest.mark.parametrize("line", ["0-9\n", "0-0\n" * 2], ids=["outside", "more"])
def test_a_fault_late_in_a_file_of_links_leaves_no_page_and_no_lexicon(links: Command, line: str) -> None:
    Path("f").write_text("\n" * 4 + line)
    before = sorted(Path().iterdir())
    assert links(*FILES, *HTML, "--lexicon", "lexicon").error
    assert sorted(Path().iterdir()) == before


def test_torch_is_not_needed_for_a_page_and_a_lexicon_of_links_and_for_their_scores(tmp_path: Path) -> None:
    arguments = " ".join([*BOTH, *HTML, "--lexicon", "lexicon", "--gold", "gold"])
    done = without_torch(f"links {arguments}", "evaluate --alignment f --gold gold", folder=tmp_path)
    assert (done.returncode, done.stdout[:1]) == (0, " "), done.stderr
    assert read("out")[0]["views"] == ["links"]


SIDES = (
    ["Hund und Katze.", "", "zwei Hund </script>", "eins", " ", "grün Katze drei"],
    ["dog and cat.", "x", " ", "one three", "", "green cat three"],
)
GIVEN = (*PAIRS, *EXACT)
HEADS = [f"layer{layer}.head{head}" for layer in (1, 2) for head in (1, 2)]


def test_views_are_what_the_options_give_alone(trained: Path, reverse: Path, align: Command) -> None:
    write_pairs(*SIDES)
    both = (trained / "run", "--reverse", reverse, *GIVEN)
    views = ["attention", "gradient", "forward:attention", "backward:attention:layer2.*", "backward:each:*"]
    asked = [part for view in views for part in ("--view", view)]
    assert align(*both, "--format", "html", "-o", "page.html", *asked, "--view", "gradient").output == ""
    meta, pairs = read("page.html")
    assert meta["views"] == [*views[:4], *(f"backward:attention:{head}" for head in HEADS)]
    assert meta["facts"] == ["s – t", str(trained / "run/best"), str(reverse / "best")]
    turned = (reverse, "-s", "t", "-t", "s", *EXACT)
    for view, arguments in (
        ("attention", both),
        ("gradient", (*both, "--method", "gradient")),
        ("forward:attention", (trained / "run", *GIVEN)),
        ("backward:attention:layer2.*", (*turned, "--heads", "layer2.*")),
        ("backward:attention:layer1.head2", (*turned, "--heads", "layer1.head2")),
    ):
        assert align(*arguments, "--format", "jsonl", "-o", "alone")[0] == 0
        same([each[view] for each in pairs], "alone", turned=view.startswith("backward"))
    heads = [each[f"backward:attention:{head}"][1] for each in pairs[:1] for head in HEADS]
    assert np.abs(heads[0] - heads[3]).max() > 0.02


def test_without_views_the_page_shows_what_method_and_heads_say(trained: Path, reverse: Path, align: Command) -> None:
    write_pairs(*SIDES)
    for arguments in (("--method", "gradient"), ("--heads", "layer1.head2"), ("--set", "alignment={kind: argmax}")):
        for name in ("html", "jsonl"):
            assert align(reverse, *GIVEN, *arguments, "--format", name, "-o", name)[0] == 0
        meta, pairs = read("html")
        view = "gradient" if "gradient" in arguments else "attention"
        offered = [f"attention:{head}" for head in HEADS] if "--set" in arguments else []  # where no heads are chosen
        assert meta["views"] == [view, *offered]
        same([each[view] for each in pairs], "jsonl")
        for head in offered[1:3]:
            alone = (*arguments, "--heads", head.partition(":")[2], "--format", "jsonl", "-o", "jsonl")
            assert align(reverse, *GIVEN, *alone)[0] == 0
            same([each[head] for each in pairs], "jsonl")
    rule = "Linked: the strongest weight of each target word."
    mean = " The weights are the mean of 4 heads."
    assert meta["explanations"] == {"attention": rule + mean, **dict.fromkeys(offered, rule)}
    # the only head of a model is what attention shows
    assert align(trained / "run", *GIVEN, "--format", "html", "-o", "one.html")[0] == 0
    assert read("one.html")[0]["views"] == ["attention"]
    assert align(trained / "run", "-s", "s", *EXACT, "--format", "html", "-o", "own.html")[0] == 0  # of its own
    assert read("own.html")[0]["facts"][0] == "s"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("s", "is an input file of this command; write to another file"),
        (".", "cannot be written: is a folder"),
        ("no/page.html", "cannot be written: folder no does not exist"),
    ],
)
def test_pages_that_cannot_be_written(trained: Path, align: Command, output: str, message: str) -> None:
    assert align(trained / "run", *GIVEN, "--format", "html", "-o", output).error == f"--output {output}: {message}"


NO_HEAD = f"fits no head of REVERSE/best; it has {', '.join(HEADS)}"
NONE_IN_COMMON = "the two models have no such head in common; ask for those of one, forward:each:* or backward:each:*"


@pytest.mark.parametrize(
    ("models", "view", "message"),
    [
        ("REVERSE", "attention:layer9.*", NO_HEAD),
        ("REVERSE", "each:layer9.*", NO_HEAD),
        ("RUN --reverse REVERSE", "each:layer1.*", "fits no head of RUN/best; it has head1"),
        ("RUN --reverse REVERSE", "each:*", NONE_IN_COMMON),
        ("RUN --reverse REVERSE", "attention:head1", NO_HEAD),
    ],
)
def test_heads_that_a_model_does_not_have_are_said(
    trained: Path, reverse: Path, align: Command, models: str, view: str, message: str
) -> None:
    def named(text: str) -> str:
        return text.replace("RUN", str(trained / "run")).replace("REVERSE", str(reverse))

    error = align(*named(models).split(), *GIVEN, *HTML, "--view", view).error
    assert error == f"--view {view}: {named(message)}"


CORPUS = (
    ["Hund und Katze.", "", "zwei Hund", "eins", " ", "grün\tKatze  drei", "Hund 17", "eins zwei", "Katze"],
    ["dog and cat.", "x", "two dog", "one three", "", "green cat three", "dog", "eins  Zwei", "cat " * 12],
)


def table(path: str) -> list[dict[str, str]]:
    header, *lines = lines_of(path)
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


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
    write_pairs(*CORPUS)
    given = (trained / "run", *GIVEN)
    alone = align(*given, "--lexicon", "lexicon")
    assert alone.output == ""
    assert alone.stderr.splitlines()[-1] == f"{len(table('lexicon'))} entries: lexicon"
    found = align(*given, "--lexicon", "again", "--format", "pharaoh")
    assert found.stdout == align(*given).stdout, "and with --format the links as without a lexicon"
    monkeypatch.setattr(align_workflow, "WINDOW_PAIRS", 2)
    assert align(*given, "--lexicon", "windows", "--quiet", "-o", "links") == (0, "", "")
    assert Path("links").read_text() == found.stdout
    assert Path("lexicon").read_bytes() == Path("again").read_bytes() == Path("windows").read_bytes()

    # Each word counts once, in the entry of the words that its links lead to.
    words = Counter(word.rstrip(".") for line in CORPUS[0] for word in line.split())
    counted: Counter[str] = Counter()
    for row in table("lexicon"):
        for word in row["source"].split():
            counted[word] += int(row["count"]) if word != "…" else 0
    assert +counted == words
    expected = lexicon_of(package.load(trained / "run", precision="float32").align(*CORPUS))
    for row, (source, target, count, numbers) in zip(table("lexicon"), expected, strict=True):
        assert (row["source"], row["target"], row["count"]) == (source, target, str(count))
        assert [*map(int, row["lines"].split())] == numbers


def test_the_options_of_the_lexicon(trained: Path, align: Command) -> None:
    write_pairs(*CORPUS)
    given = (trained / "run", *GIVEN)
    assert align(*given, "--lexicon", "all", "--lowercase", "--examples", "9").code == 0
    rows = table("all")
    assert align(*given, "--lexicon", "some.jsonl", "--lowercase", "--examples", "1", "--min-count", "2").code == 0
    expected = [{**row, "lines": row["lines"].split()[0]} for row in rows if int(row["count"]) > 1]
    assert as_cells(json_lines("some.jsonl")) == expected
    assert 0 < len(expected) < len(rows)
    assert align(*given, "--lexicon", "none", "--examples", "0").code == 0
    assert {row["lines"] for row in table("none")} == {""}


def test_a_lexicon_of_the_models_own_translations(trained: Path, align: Command) -> None:
    write_pairs(*CORPUS)
    given = (trained / "run", "-s", "s", "--free-running", "--beam", "2", *EXACT)
    assert align(*given, "--lexicon", "lexicon.jsonl", "-o", "links.jsonl", "--format", "jsonl").code == 0

    def words(text: str) -> list[str]:
        return [word for word in text.split() if any(map(str.isalnum, word))]

    made = Counter(word for row in json_lines("links.jsonl") for word in words(" ".join(row["target_words"])))
    found: Counter[str] = Counter()
    for row in json_lines("lexicon.jsonl"):
        for word in words(row["target"]):
            found[word] += row["count"]
    assert found == made
    assert len(made) > 3


@pytest.mark.parametrize("directions", [1, 2])
def test_suspects_have_the_scores_of_the_formula(
    trained: Path, reverse: Path, align: Command, monkeypatch: pytest.MonkeyPatch, directions: int
) -> None:
    write_pairs(*CORPUS)
    given = [trained / "run", "-s", "s", "-t", "t", *EXACT, *(["--reverse", reverse] if directions == 2 else [])]
    done = align(*given, "--suspects", "all.jsonl", "--min-score", "-1")
    assert done.output == ""
    assert done.stderr.splitlines()[-1] == "8 suspicious pairs: all.jsonl"
    rows = json_lines("all.jsonl")
    assert sorted(row["line"] for row in rows) == [1, 2, 3, 4, 6, 7, 8, 9], "all but two blank sides"
    assert rows == sorted(rows, key=lambda row: (-row["score"], row["line"]))
    runs = [(trained / "run", *CORPUS), (reverse, *reversed(CORPUS))][:directions]
    scored = [package.load(run, precision="float32").score(*sides) for run, *sides in runs]
    lengths = usual_lengths((length(s), length(t)) for s, t in zip(*CORPUS, strict=True))
    for row in rows:
        place = row["line"] - 1
        nll = sum(-scores[place].log_prob / len(scores[place].tokens) for scores in scored) / directions
        z = lengths.z(CORPUS[0][place], CORPUS[1][place])
        assert (row["nll"], row["z"]) == pytest.approx((nll, z), abs=1e-4)
        assert row["score"] == pytest.approx(nll + z * z / 2, abs=1e-4)
        assert (row["source"].split(), row["target"].split()) == (CORPUS[0][place].split(), CORPUS[1][place].split())
    kinds = {row["line"]: set(row["kinds"]) - {"unlinked"} for row in rows}
    assert kinds == {
        1: {"unlikely"}, 2: {"unlikely", "blank"}, 3: {"unlikely"}, 4: {"unlikely"}, 6: {"unlikely"},
        7: {"unlikely", "numbers"}, 8: {"unlikely", "copied"}, 9: {"unlikely"},
    }  # fmt: skip

    monkeypatch.setattr(align_workflow, "WINDOW_PAIRS", 2)
    assert align(*given, "--suspects", "all", "--min-score", "-1", "-o", "links").code == 0
    assert table("all") == as_cells(rows)
    assert len(Path("links").read_text().splitlines()) == len(CORPUS[0])
    least = rows[3]["score"]
    assert align(*given, "--suspects", "some", "--min-score", str(least - 1e-4)).code == 0
    unlikely = [row["line"] for row in table("some") if "unlikely" in row["kinds"]]
    assert unlikely == [str(row["line"]) for row in rows[:4]]
    assert {"2", "7", "8"} <= {row["line"] for row in table("some")}, "what is suspicious otherwise stays"


@pytest.mark.parametrize("outputs", ["--format html -o old", "--lexicon old", "--suspects old", "--lexicon new"])
def test_an_error_on_the_way_leaves_no_file_and_an_old_one_as_it_was(
    trained: Path, align: Command, outputs: str
) -> None:
    write_pairs(CORPUS[0], CORPUS[1][:-1])
    Path("old").write_text("old")
    error = align(trained / "run", *GIVEN, *outputs.split()).error
    assert error == "t has 8 lines, but s has more: they must agree line by line"
    assert Path("old").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["b", "f", "gold", "old", "s", "t"]


@pytest.mark.parametrize(
    ("line", "text", "warned"),
    [("我有一只猫。", False, True), ("我有一只猫。", True, False), ("我 有 一只 猫", False, False)],
)
def test_sentences_without_spaces_need_an_option(
    line: str, text: bool, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zh").write_text(f"{line}\n", encoding="utf-8")
    (tmp_path / "en").write_text("I have a cat.\n", encoding="utf-8")
    warnings = list[str]()
    monkeypatch.setattr("nmt.core.log.warning", warnings.append)
    align_workflow.check_files(AlignmentInputs(tmp_path / "zh", tmp_path / "en", text=text), AlignmentOutputs(None))
    expected = (
        f"{tmp_path / 'zh'}: white space separates few of its words, and whole sentences are aligned; give --text"
    )
    assert warnings == [expected] * warned
