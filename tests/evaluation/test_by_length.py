"""Buckets against corpora that are filtered by hand and scored by sacreBLEU."""

from __future__ import annotations

import json
import re

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.core.errors import InputError
from nmt.evaluation.bootstrap import interval, sentence_counts
from nmt.evaluation.by_length import FEW, as_tree, by_length, parse_edges, table
from tests.evaluation.systems import references, translations

REFERENCES = ["", *references(200)]
HYPOTHESES = translations(REFERENCES, errors=0.3, seed=2)
SOURCES = translations(REFERENCES, errors=0.4, seed=3)  # of other lengths than the references


def test_text_is_prepared_as_for_the_whole() -> None:
    shouted = [line.upper() for line in HYPOTHESES]
    (plain,) = by_length(["x"] * len(shouted), HYPOTHESES, REFERENCES, lowercase=True, tokenize="intl", resamples=5)
    (same,) = by_length(["x"] * len(shouted), shouted, REFERENCES, lowercase=True, tokenize="intl", resamples=5)
    (other,) = by_length(["x"] * len(shouted), shouted, REFERENCES, resamples=5)
    expected = BLEU(lowercase=True, tokenize="intl").corpus_score(HYPOTHESES, [REFERENCES]).score
    assert plain.bleu.value == same.bleu.value == expected
    assert plain.chrf == same.chrf
    assert other.bleu.value < 1.0 < plain.bleu.value


@pytest.mark.parametrize("edges", [(5, 10, 15, 20, 25, 30), (1,), (3, 4, 17)])
def test_each_bucket_is_scored_as_a_corpus_of_its_own(edges: tuple[int, ...]) -> None:
    found = by_length(SOURCES, HYPOTHESES, REFERENCES, edges=edges, resamples=20)
    expected = []
    for first, last in [(0, 0), *zip([1, *(edge + 1 for edge in edges)], [*edges, None], strict=True)]:
        lengths = [len(source.split()) for source in SOURCES]
        rows = [row for row, length in enumerate(lengths) if first <= length <= (length if last is None else last)]
        if rows:
            lines = [HYPOTHESES[row] for row in rows], [[REFERENCES[row] for row in rows]]
            scores = BLEU().corpus_score(*lines).score, CHRF().corpus_score(*lines).score
            expected.append((first, last, len(rows), *scores))
    assert [(each.first, each.last, each.sentences, each.bleu.value, each.chrf.value) for each in found] == expected
    assert sum(each.sentences for each in found) == len(SOURCES)
    assert found[0].label == "0"


def test_the_intervals_are_those_of_the_bucket_alone() -> None:
    found = {each.label: each for each in by_length(SOURCES, HYPOTHESES, REFERENCES, edges=(7, 12), resamples=50)}
    rows = [row for row, source in enumerate(SOURCES) if 8 <= len(source.split()) <= 12]
    alone = [HYPOTHESES[row] for row in rows], [REFERENCES[row] for row in rows]
    assert found["8-12"].bleu == interval(sentence_counts(*alone), resamples=50)
    assert found["8-12"].chrf == interval(sentence_counts(*alone, metric="chrf"), resamples=50)


def test_empty_buckets_are_left_out_and_lengths_are_white_space_words() -> None:
    sources = ["a", " b\tb  b\u00a0b,b \n", "c " * 40]
    found = by_length(sources, ["x"] * 3, ["x"] * 3)
    assert [(each.label, each.sentences) for each in found] == [("1-5", 2), ("31+", 1)]
    # edges of one word
    assert [each.label for each in by_length(["a", "b b", "c c c"], *[["x"] * 3] * 2, edges=(1, 2))] == ["1", "2", "3+"]


def test_the_table_is_aligned_and_marks_small_buckets() -> None:
    sources = ["a b"] * FEW + ["a b c d e f g"] * (FEW - 1)
    hypotheses = translations(["the old dog runs."] * len(sources), errors=0.2, seed=1)
    found = by_length(sources, hypotheses, ["the old dog runs."] * len(sources))
    head, first, second, note = table(found)
    assert re.match(r" +1-5 +50  +\d+\.\d  +\d+\.\d to \d+\.\d  +\d+\.\d  +\d+\.\d to \d+\.\d$", first)
    assert re.match(r" +6-10 +49\* +\d", second)
    assert note == "* fewer than 50 sentences: too few to rely on"
    assert len(head) == len(first) == len(second)
    for column in ("sentences", "BLEU", "chrF2"):
        assert re.match(r"[^ ][ *]", first[head.index(column) + len(column) - 1 :])
    assert [each.is_few for each in found] == [False, True]
    assert not any("*" in line for line in table(found[:1]))


def test_json_has_stable_keys_and_all_digits() -> None:
    found = by_length(SOURCES, HYPOTHESES, REFERENCES, resamples=20)
    tree = json.loads(json.dumps(as_tree(found)))
    assert [list(each) for each in tree] == [["first_words", "last_words", "sentences", "BLEU", "chrF2"]] * len(found)
    assert tree[1]["BLEU"] == {"value": found[1].bleu.value, "low": found[1].bleu.low, "high": found[1].bleu.high}
    assert tree[1]["chrF2"]["value"] == found[1].chrf.value
    by_five = as_tree(by_length(["a " * 40], ["x"], ["x"]))
    assert (by_five[0]["first_words"], by_five[0]["last_words"]) == (31, None)


@pytest.mark.parametrize("text", ["", "5,", "0,5", "5,5", "10,5", "-3", "five", "5;10", "1.5"])
def test_edges_that_do_not_rise_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"^--length-edges {re.escape(text)}: give rising whole numbers of at least 1"):
        parse_edges(text)
    assert parse_edges("5, 10,20") == (5, 10, 20)
    assert parse_edges("1") == (1,)


def test_faults() -> None:
    with pytest.raises(ValueError, match="do not rise"):
        by_length(["a"], ["a"], ["a"], edges=(5, 5))
    for numbers, message in (((1, 2, 2), "1 sources but 2 hypotheses"), ((2, 2, 1), "2 hypotheses but 1 references")):
        with pytest.raises(InputError, match=message):
            by_length(*(["a"] * number for number in numbers))


def test_text_without_spaces_is_cut_as_its_script_needs() -> None:
    lines = ["我有一条狗。"], ["我有一只狗。"]
    (found,) = by_length(["a"], *lines, resamples=5)
    assert found.bleu.value == pytest.approx(BLEU(tokenize="zh").corpus_score(lines[0], [lines[1]]).score)


def test_words_of_scripts_without_spaces_are_counted_by_their_rule() -> None:
    sources = ["我有一条狗。", "Das ist ... gut!!!", "สวัสดีครับ", "", "!!!"]
    buckets = {
        each.first: each.sentences for each in by_length(sources, sources, sources, edges=(1, 3, 4, 5), resamples=2)
    }
    assert buckets == {0: 1, 1: 1, 4: 1, 5: 1, 6: 1}
