"""The measurement of tags: what is exact, what is whole, and a run on an aligner and a model of a few words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from nmt.extras.aligner.aligner import IndexedSentences, learn_aligner, save_aligner
from nmt.extras.documents.markup import extract
from nmt.translator.aligner import PieceWeights
from tests.workflows.runs import WORDS, sentences, trained

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import benchmark_markup
from benchmark_markup import Case, Known

__all__ = ["trained"]


def case(source: str, target: str, *links: tuple[int, int]) -> Case:
    """A case whose links join words that are parted by spaces."""
    tagged, reference = benchmark_markup.tags_only(source), extract(target)
    spans = []
    for text in (reference.text, tagged.text):
        ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
        spans.append(tuple((int(end) - len(word), int(end)) for word, end in zip(text.split(), ends, strict=True)))
    weights_TS = np.zeros((len(spans[0]), len(spans[1])), np.float32)
    for here, there in links:
        weights_TS[there, here] = 1.0
    return Case(tagged, reference, PieceWeights(weights_TS, *spans), Known(links))


def test_a_span_is_exact_where_it_encloses_the_same_characters() -> None:
    assert benchmark_markup.places(extract("x <b>a b </b>c <i></i>")) == {("<b>", 1, 3): 1, ("<i>", 4, 4): 1}
    swapped = case("der <b>Hund</b> bellt", "barks the <b>dog</b>", (0, 1), (1, 2), (2, 0))
    assert benchmark_markup.placed(swapped) == benchmark_markup.first_to_last(swapped) == {("<b>", 8, 11): 1}
    assert benchmark_markup.places(swapped.target) == {("<b>", 8, 11): 1}
    torn = case("<b>Hund hier</b> da", "dog there here", (0, 0), (1, 2), (2, 1))
    assert benchmark_markup.first_to_last(torn) == {("<b>", 0, 12): 1}


def test_only_pairs_of_tags_are_judged_and_text_that_looks_like_one_is_text() -> None:
    assert not benchmark_markup.has_tags(extract("<br/>100 <b> &lt;i&gt;x&lt;/i&gt;"))
    assert benchmark_markup.tags_only("100 <b>x</b><br/>").items[0].text == "<b>"
    assert len(benchmark_markup.tags_only("100 <b>x</b><br/>").items) == 2
    assert benchmark_markup.parted("<k>Cmd</k><k>Ctrl</k>+ <b>a</b>.") == "<k>Cmd </k><k>Ctrl</k>+ <b>a</b>."


@pytest.mark.parametrize(
    ("restored", "is_whole"),
    [
        ("<b><i>dog</i></b>", True),
        ("<b><i>dog</b></i>", False),
        ("<b>dog</b>", False),
        ("<b><i>dog</i></b></b>", False),
        ("<b><i>dog</i>", False),
    ],
)
def test_no_tag_may_be_lost_doubled_or_crossed(restored: str, is_whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_markup, "restored", lambda _: restored)
    assert benchmark_markup.is_whole(case("<b><i>Hund</i></b>", "dog", (0, 0))) == is_whole


@pytest.mark.parametrize("by", ["--aligner", "--reverse", "--model"])
def test_a_measurement_prints_a_line_for_each_figure(
    by: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [IndexedSentences([pair[side].rstrip(".").split() for pair in sentences(200, seed=3)]) for side in (0, 1)]
    save_aligner(learn_aligner(*(reversed(sides) if by == "--reverse" else sides)), tmp_path / "a.aligner")
    german = ["eins <b>Hund und Katze</b>", "<b>zwei</b> <i>drei</i>", "no tags", "<b>one side</b>"]
    english = [" ".join(WORDS.get(word, word) for word in _parts(line)) for line in german[:3]]
    english = [line.replace("> ", ">").replace(" </", "</") for line in english]
    (tmp_path / "x.de").write_text("".join(f"{line}\n" for line in german))
    (tmp_path / "x.en").write_text("".join(f"{line}\n" for line in [*english, "one side"]))
    aligned_by = {
        "--model": ["--model", str(trained / "run")],
        "--aligner": ["--aligner", str(tmp_path / "a.aligner")],
        "--reverse": ["--aligner", str(tmp_path / "a.aligner"), "--reverse"],
    }
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "x.de"), str(tmp_path / "x.en"), *aligned_by[by]])
    benchmark_markup.main()
    figures = {each["name"]: each["value"] for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert figures["spans"] == 3
    assert figures["lines with a tag lost, doubled or crossed, nmt"] == 0
    assert figures["exact spans, nmt, from"] <= figures["exact spans, nmt"] <= figures["exact spans, nmt, to"]
    if by != "--model":  # which has learnt from nothing
        assert figures["exact spans, nmt"] == figures["exact spans, first to last link"] == 100


def _parts(line: str) -> list[str]:
    return line.replace(">", "> ").replace("</", " </").split()
