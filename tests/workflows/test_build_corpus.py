"""What a prepared corpus holds, and its report: pairs, filters, subwords, seeds."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.core.errors import InputError
from nmt.data.corpus import read_blocks
from nmt.data.report import Report, report_table
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair
from nmt.workflows import build_corpus
from nmt.workflows.prepare import prepare
from tests.workflows.corpora import PAIRS, Make, Pairs, config_of, content, write_tsv


def texts(store: Store) -> list[tuple[str, str]]:
    return [store.text(index) for index in range(len(store))]


def test_the_store_holds_the_encoded_corpus(tmp_path: Path, tsv: Path, make: Make) -> None:
    made = make(run=tmp_path / "run")
    assert (made.folder, made.reused, made.valid) == (tmp_path / "run" / "prepared", False, None)
    assert len(made.train) == len(PAIRS) == made.report.kept
    for index, (source, target) in enumerate(PAIRS):
        assert made.train.source(index).tolist() == made.tokenizers.source.encode(source)
        assert made.train.target(index).tolist() == made.tokenizers.target.encode(target)
        assert made.train.line(index) == (str(tsv), index + 1)
    assert not made.train.has_text


def test_every_filter_is_counted_with_its_lines(tmp_path: Path) -> None:
    good = PAIRS[:300]
    valid, test = ("der Hund läuft", "the dog runs"), ("die Katze schläft", "the cat sleeps")
    long = " ".join(["der Hund"] * 150)
    bad: dict[str, Pairs] = {
        "empty": [("", "x"), ("x", " \u3000"), ("\u200b", "normalised away")],
        "control characters": [("a\0b", "x y")],
        "identical": [("same thing", " same thing")],
        "held out": [valid, test],
        "duplicate": [good[3], (f" {good[4][0]} ", good[4][1])],
        "too long": [(long, "x"), ("x", long)],
        "length ratio": [("." * 60, "a")],
    }
    rows = [*good, *(pair for pairs in bad.values() for pair in pairs), PAIRS[301], *[("", "again")] * 15]
    a, b = (
        write_tsv(tmp_path / name, pairs)
        for name, pairs in (("a.tsv", rows), ("b.tsv", [good[0], ("ganz neu", "all new")]))
    )
    parts = {
        "train": [{"pairs": a}, {"pairs": b}],
        "valid": {"pairs": write_tsv(tmp_path / "valid.tsv", [valid, ("", "x")])},
        "test": [{"pairs": write_tsv(tmp_path / "test.tsv", [test])}],
    }
    made = prepare(config_of(a, **parts), run=tmp_path / "run", seed=1)
    first, second = made.report.corpora

    expected: dict[str, list[int]] = {"near duplicate": [], "no pair": []}  # which are kept unless asked for
    line = 301
    for name, pairs in bad.items():
        expected[name] = list(range(line, line + len(pairs)))
        line += len(pairs)
    expected["empty"] += range(314, 329)
    assert {name: (drop.pairs, list(drop.first_lines)) for name, drop in first.dropped.items()} == {
        name: (len(lines), lines[:10]) for name, lines in expected.items()
    }
    assert (first.pairs, first.kept) == (328, 301)
    assert (second.kept, second.dropped["duplicate"].first_lines) == (1, (1,))
    lines = [made.train.line(index) for index in (299, 300, 301)]
    assert lines == [(str(a), 300), (str(a), 313), (str(b), 2)]

    assert made.report.valid is not None
    assert made.report.valid.blank.first_lines == (2,)
    table = "\n".join(report_table(made.report))
    assert "18   lines 301, 302, 303, 314, 315, 316, 317, 318, 319, 320, …\n" in table
    assert "1   line 304\n" in table


def test_rows_that_are_no_pairs_join_the_report(tsv: Path, make: Make) -> None:
    write_tsv(tsv, PAIRS[:100])
    tsv.write_bytes(b"no pair\n" + tsv.read_bytes() + b"gr\xfcn\tgreen\n")
    made = make()
    (corpus,) = made.report.corpora
    assert (corpus.pairs, corpus.kept, corpus.dropped["no pair"].first_lines) == (102, 100, (1, 102))
    assert any(line.split()[1:4] == ["no", "pair", "2"] for line in report_table(made.report))
    assert made.train.line(0) == (str(tsv), 2)
    with pytest.raises(InputError, match="2 of 102 rows are no pairs: 1 without exactly one TAB, 1 not UTF-8"):
        make(faulty="refuse")


def test_near_duplicates_are_told_and_dropped_where_asked(tsv: Path, make: Make) -> None:
    (source, target), count = PAIRS[7], len(PAIRS)
    near = [(source.upper(), f"{target} !"), (f"{source} 2.", target), (f"{source}?", "something else")]
    write_tsv(tsv, [*PAIRS, PAIRS[7], *near])
    told = make()
    (corpus,) = told.report.corpora
    assert (corpus.kept, corpus.near_duplicates.first_lines) == (count + 3, (count + 2, count + 3))
    assert (corpus.dropped["duplicate"].first_lines, corpus.dropped["near duplicate"].pairs) == ((count + 1,), 0)
    (row,) = (line.split() for line in report_table(told.report) if line.startswith("    near "))
    assert row == ["near", "duplicates", "2", "kept;", "lines", f"{count + 2},", f"{count + 3}"]
    dropped = make(filters={"near_duplicates": True})
    (corpus,) = dropped.report.corpora
    assert not dropped.reused
    assert (corpus.kept, corpus.near_duplicates.pairs) == (count + 1, 0)
    assert corpus.dropped["near duplicate"].first_lines == (count + 2, count + 3)
    assert dropped.train.line(count).number == count + 4
    with pytest.raises(ValueError, match="near_duplicates drops equal pairs too"):
        make(filters={"near_duplicates": True, "duplicates": False})


def test_filters_off_keep_everything_but_the_blank(tmp_path: Path, tsv: Path, make: Make) -> None:
    odd = [PAIRS[0], PAIRS[0], ("same", "same"), ("a\x01b", "x"), ("der " * 150, "x"), ("", "x")]
    write_tsv(tsv, PAIRS + odd)
    off = {"max_length": 1000, "max_ratio": 1000, "identical": False, "duplicates": False, "control_characters": False}
    valid = {"pairs": write_tsv(tmp_path / "valid.tsv", PAIRS[:5])}
    made = make(filters={**off, "held_out": "none"}, valid=valid)
    assert len(made.train) == made.train.line(len(made.train) - 1).number == len(PAIRS) + 5


def test_valid_is_kept_whole_with_its_text_as_is_what_is_sampled(tmp_path: Path, make: Make) -> None:
    lines = [("der Hund", "the dog"), ("", ""), ("x " * 300, "y"), ("gleich", "gleich"), ("a\x01b", "\u2028")]
    valid = {"pairs": write_tsv(tmp_path / "valid.tsv", lines)}
    made = make(valid=valid, subwords={"size": 120, "sampling": 0.1})
    assert made.valid is not None
    assert texts(made.valid) == lines
    assert texts(made.train) == [pair for pair in PAIRS if pair != lines[0]]
    assert made.report.valid is not None
    assert made.report.valid.too_long.first_lines == (3,)


def test_the_report_counts_what_is_stored(tmp_path: Path, make: Make) -> None:
    made = make(valid={"pairs": write_tsv(tmp_path / "valid.tsv", [("Ωmega", "the dog")])})
    report = made.report
    assert Report.model_validate_json((made.folder / "report.json").read_text()) == report
    lengths = np.array([len(made.train.target(index)) for index in range(len(made.train))])
    assert report.target.tokens == lengths.sum()
    assert report.target.words == sum(len(target.split()) for _, target in PAIRS)
    assert report.target.tokens_per_word == pytest.approx(report.target.tokens / report.target.words)
    assert report.source.vocabulary == made.tokenizers.source.size == 120
    for name, percent in [("least", 0), ("25%", 25), ("median", 50), ("99%", 99), ("most", 100)]:
        assert report.target.lengths[name] == np.percentile(lengths, percent, method="inverted_cdf")
    assert report.valid is not None
    assert (report.source.unknown, report.valid.unknown[0] > 0, report.valid.unknown[1]) == (0, True, 0)


def test_the_report_has_the_shares_of_lines(tsv: Path, make: Make) -> None:
    lines = [f"Hund {number}. Und noch einer." for number in range(300)]
    lines += [f"Nr. {number}" for number in range(1500)] + [f"{number}, 5 %" for number in range(200)]
    write_tsv(tsv, [(line, f"the {number}") for number, line in enumerate(lines)])
    report = make().report
    assert (report.several, report.letterless) == (300 / 2000, 200 / 2000)


def test_it_is_a_function_of_input_config_and_seed(
    tmp_path: Path, tsv: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks and threads do not matter."""
    write_tsv(tsv, (PAIRS + PAIRS[:50] + [("", "x")]) * 2)
    subwords = {"size": 120, "training_sentences": 200}
    whole, other = (content(make(run=tmp_path / f"{n}", seed=n, subwords=subwords, workers=1).folder) for n in (1, 2))
    monkeypatch.setattr(build_corpus, "read_blocks", functools.partial(read_blocks, size=7))
    assert content(make(run=tmp_path / "blocks", subwords=subwords, workers=3).folder) == whole
    assert whole["subwords.model"] != other["subwords.model"]


def test_rare_words_are_told_and_make_another_folder(tsv: Path, make: Make) -> None:
    config = {"kind": "word", "joint": False}
    assert not any("rarer words" in line for line in report_table(make(subwords=config).report))
    made = make(subwords={**config, "min_frequency": 3})
    assert not made.reused
    assert make(subwords={**config, "min_frequency": 3}).reused
    counts = Counter(word for source, _ in PAIRS for word in source.split())
    unknown = {word for word, count in counts.items() if count < 3}
    assert made.report.source.rare == len(unknown) > 0
    assert made.report.source.unknown == sum(counts[word] for word in unknown) / sum(counts.values())
    (row,) = (line.split() for line in report_table(made.report) if "rarer words" in line)
    assert row == ["rarer", "words", str(made.report.source.rare), str(made.report.target.rare)]


def test_nothing_left_says_which_filter(tsv: Path, make: Make) -> None:
    with pytest.raises(InputError, match=r"none of 400 training pairs is left \(400 too long\); relax the filters"):
        make(filters={"max_length": 1})
    write_tsv(tsv, [(source, source) for source, _ in PAIRS])
    with pytest.raises(InputError, match=r"400 identical"):
        make()


@pytest.mark.parametrize("count", [399, 401])
def test_a_corpus_that_changes_meanwhile_is_noticed(
    tsv: Path, make: Make, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    learn = build_corpus.train_tokenizers

    def grow(*arguments: Any) -> TokenizerPair:
        write_tsv(tsv, (PAIRS + PAIRS)[:count])
        return learn(*arguments)

    monkeypatch.setattr(build_corpus, "train_tokenizers", grow)
    with pytest.raises(InputError, match="changed while it was read"):
        make()
