"""Functions of the benchmarks on whose figures the pages rely: against plain loops, and by hand."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import benchmark_alignment
import benchmark_filter
import benchmark_glossary
import benchmark_prepare
import benchmark_sentences
import benchmark_suspects
import dropped_words
import forgetting
import numpy as np
import pytest
import rare_words
from sacrebleu.metrics.chrf import CHRF

import nmt
from nmt.alignment.formats import Alignment, read_gold
from nmt.data.store import Ragged, Store, StoredCorpus
from nmt.data.store_writer import StoreWriter
from nmt.data.words import text_words
from nmt.extras.aligner.align import TextAligner, learn_word_aligner
from nmt.extras.aligner.aligner import load_aligner, save_aligner
from nmt.extras.aligner.word_units import Subwords
from nmt.extras.documents.glossary import Term
from tests.scripts.conftest import ROOT
from tests.workflows.runs import sentences, write_pairs

DATA = ROOT / "data" / "de-en"


def test_eflomal_gets_words_and_signs_in_lower_case() -> None:
    assert benchmark_alignment.plain(["Ein Hund, ﬁnde ich.", "", "Don't!"]) == ["ein hund , finde ich .", "", "don't !"]


def test_links_of_eflomal_are_brought_to_white_space_words() -> None:
    text = benchmark_alignment.Text(["Ja .", "Ein Hund, ja."], ["Yes .", "A dog , yes."])
    links = ["9-9", "0-0 1-1", "0-0 1-1 2-2 3-3 3-4 4-4"]
    expected = [((0, 0), (1, 1)), ((0, 0), (1, 1), (1, 2), (2, 3))]
    assert benchmark_alignment._of_words(links, text) == expected


def test_words_of_a_text_without_spaces_are_linked_where_half_of_their_characters_are() -> None:
    text = benchmark_alignment.Text(["Ab, cde 12"], ["x, y z"])
    together = benchmark_alignment.without_spaces(text, 0)
    assert together == (["乡乢,乣乤乥12"], ["x, y z"])
    source, target = (text_words(line) for (line,) in together)
    words = [
        tuple(line[begin:end] for begin, end in spans)
        for (line,), spans in zip(together, [source, target], strict=True)
    ]
    weights_TS = np.zeros((len(target), len(source)))
    links = ((0, 0), (3, 2), (4, 3), (5, 3), (6, 2))
    found = Alignment(*words, links, weights_TS, source_spans=tuple(source), target_spans=tuple(target))
    assert benchmark_alignment._of_characters(found, "Ab, cde 12", "x, y z", 0) == ((1, 2), (2, 1))


def test_pieces_align_a_text_whose_spaces_are_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = benchmark_alignment.read(*(DATA / f"train.{side}" for side in ("de", "en")), 1000)
    gold_text = benchmark_alignment.read(*(DATA / f"valid.{side}" for side in ("de", "en")), 100)
    lengths = [(len(one.split()), len(other.split())) for one, other in zip(*gold_text, strict=True)]
    lines = (DATA / "valid.align").read_text().splitlines(keepends=True)
    (tmp_path / "gold").write_text("".join(lines[:100]))
    gold = read_gold(tmp_path / "gold", lengths)

    def error_rate(name: str) -> float:
        save_aligner(learn_word_aligner(*benchmark_alignment.without_spaces(train, 0)), tmp_path / name)
        aligner = TextAligner(load_aligner(tmp_path / name), text=True)
        found = aligner.align(*benchmark_alignment.without_spaces(gold_text, 0))
        links = [benchmark_alignment._of_characters(*row, 0) for row in zip(found, *gold_text, strict=True)]
        return benchmark_alignment.score(links, gold).aer

    by_pieces = error_rate("pieces")
    save_aligner(load_aligner(tmp_path / "pieces"), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "pieces").read_bytes()
    monkeypatch.setattr(Subwords, "learn_runs", lambda *_: None)
    assert by_pieces < 0.4 < error_rate("characters")


def test_a_gold_file_that_does_not_fit_is_one_plain_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "de").write_text("Ein Hund .\nEin Hund .\n")
    (tmp_path / "en").write_text("A dog .\nA dog .\n")
    (tmp_path / "links").write_text("0-0\n" * 3)
    files = [str(tmp_path / name) for name in ("de", "en", "links")]
    assert benchmark_alignment.main([*files[:2], "--gold", *files]) == 2
    assert capsys.readouterr().err.startswith(f"error: {files[2]}: 3 lines for 2 sentence pairs")


def test_wrong_pairs_are_made_of_every_pair() -> None:
    pairs = [*sentences(60, seed=2), ("eins", "one")]
    wrong = benchmark_filter.wrong_pairs(pairs, random.Random(1))
    partners = wrong["wrong partners"]
    assert [source for source, _ in partners] == [source for source, _ in pairs]
    assert sorted(target for _, target in partners) == sorted(target for _, target in pairs)
    assert not set(partners) & set(pairs)
    halves, punctuated = wrong["dropped halves"], wrong["dropped halves, final punctuation kept"]
    assert len(halves) == len(punctuated) == 60, "one word has no half"
    for pair, half, kept in zip(pairs, halves, punctuated, strict=False):
        (side,) = [side for side in (0, 1) if half[side] != pair[side]]
        words, left = pair[side].split(), half[side].split()
        assert len(left) == len(words) - len(words) // 2
        assert left in (words[: len(left)], words[-len(left) :])
        assert kept[side] == " ".join(left).removesuffix(".") + "."
    assert wrong["next target behind"][60] == ("eins", f"one {pairs[0][1]}")
    assert wrong["copied sources"][60] == ("eins", "eins")


def test_found_is_what_is_worse_than_all_but_one_in_a_hundred() -> None:
    right = np.array([9.0, 5.0, *range(-198, 0)])
    assert benchmark_filter.found(right, np.array([-1.0, 0.0, 6.0, 10.0])) == 0.75


def test_planted_pairs_are_wrong_and_their_shares_those_of_the_table() -> None:
    whole = [*sentences(400, seed=3), *sentences(400, seed=3)[:50]]
    pairs, sorts = benchmark_filter.planted(whole, 400, random.Random(1))
    counts = {sort: sorts.count(sort) for sort in set(sorts)}
    assert counts == {"right": 344, "wrong partners": 20, "halves": 20, "copies": 8, "swapped": 8}
    assert all((pair in whole) == (sort == "right") for pair, sort in zip(pairs, sorts, strict=True))
    assert all(source == target for (source, target), sort in zip(pairs, sorts, strict=True) if sort == "copies")
    assert set(benchmark_filter.planted(whole, 400, random.Random(1), clean=True)[1]) == {"right"}


def test_a_term_is_a_word_whose_references_always_have_a_linked_word() -> None:
    sources = ["Der Hund bellt.", "Ein Hund, eine Katze.", "Katze und Hase."]
    references = ["The dog barks.", "A hound, a cat.", "A kitten and a rabbit."]
    targets = {"Hund": ("dog", "hound", "mutt"), "Katze": ("cat",), "Hase": ("rabbit",), "Ein": ("A",)}
    assert benchmark_glossary.gold_glossary(sources, references, targets).terms == (
        Term("Hund", ("dog", "hound")),
        Term("Hase", ("rabbit",)),
    )


def test_a_glossary_of_the_training_pairs_has_their_frequent_nouns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_glossary, "MIN_NOUNS", 2)
    lines = ["Der Hund bellt.", "Ein Hund schläft, die Katze.", "die Katze.", "Hund, Maus.", "Die Maus, Hund."]
    assert benchmark_glossary.frequent_nouns(lines) == {"Hund", "Katze"}  # Maus once behind a word
    pairs = [("Der Hund bellt", "The dog barks"), ("Der Hund schläft", "The hound sleeps"), ("Der Tag", "The day")]
    pairs = [*pairs, ("Ein Hund schläft", "A dog sleeps"), ("Ein Tag", "A day")] * 10
    found = dict(benchmark_glossary.linked(pairs, 0.1))
    assert found["Hund"] == ("dog", "hound")
    assert found["Tag"] == ("day",)


def test_two_pairs_in_a_hundred_are_wrong(tmp_path: Path) -> None:
    for side, letter in (("de", "ä"), ("en", "e")):
        (tmp_path / side).write_text("".join(f"{letter} {number}\n" for number in range(7)), encoding="utf-8")
    benchmark_prepare._write((tmp_path / "de", tmp_path / "en"), tmp_path, 180, joined=True, faults=True)
    sources, targets = ((tmp_path / side).read_text("utf-8").split("\n")[:-1] for side in ("source", "target"))
    assert len(sources) == len(targets) == 180
    swapped = [row for row in range(180) if sources[row].startswith("e")]
    assert swapped == [row for row in range(180) if targets[row].startswith("ä")] == [75, 175]
    for row in (50, 150):
        assert (sources[row], targets[row]) == (sources[row - 1].upper(), targets[row - 1].upper())
        assert sources[row] != sources[row - 1]
    assert [source.split()[1::2] for source in sources] == [target.split()[1::2] for target in targets]


def test_a_store_is_repeated(tmp_path: Path) -> None:
    rows = [[4, 5, 6], [7], [8, 9]]
    with StoreWriter(
        tmp_path / "store", corpora=[StoredCorpus("a", 1.0)], vocabulary_sizes=(20, 20), keep_text=False
    ) as writer:
        sources, targets = (Ragged.of([np.array(row) + number for row in rows]) for number in (0, 1))
        writer.append(corpus=0, lines=np.arange(1, 4), sources=sources, targets=targets)
        writer.finish()
    assert benchmark_prepare._repeat(tmp_path / "store", 3) == 9
    store = Store.open(tmp_path / "store")
    store.check(20, 20)
    assert [store.source(index).tolist() for index in range(len(store))] == rows * 3
    assert [store.target(index).tolist() for index in range(9)] == [[token + 1 for token in row] for row in rows] * 3


def test_lines_are_joined_in_order_without_those_left_over() -> None:
    assert benchmark_sentences.joined(["a", "b", "c", "d", "e"], 2) == ["a b", "c d"]
    assert benchmark_sentences.joined(["a", "b"], 1) == ["a", "b"]


def test_every_twentieth_pair_is_swapped_and_every_twentieth_shortened() -> None:
    draw = random.Random(3)
    pairs = [
        tuple(" ".join(f"{side}{row}.{word}" for word in range(draw.randint(1, 9))) for side in "st")
        for row in range(200)
    ]
    found = benchmark_suspects.spoilt(pairs, random.Random(1))  # type: ignore[arg-type]
    assert found == benchmark_suspects.spoilt(pairs, random.Random(1))  # type: ignore[arg-type]
    assert found != benchmark_suspects.spoilt(pairs, random.Random(2))  # type: ignore[arg-type]
    swapped = [row for row, each in enumerate(found) if each.fault == "swapped"]
    assert len(swapped) == sum(each.fault == "dropped" for each in found) == 10
    assert sorted(found[row].target for row in swapped) == sorted(pairs[row][1] for row in swapped)
    for row, (each, pair) in enumerate(zip(found, pairs, strict=True)):
        if each.fault == "swapped":
            assert each.source == pair[0]
            assert each.target != pair[1]
        elif each.fault is None:
            assert (each.source, each.target) == pair
        else:
            sides = zip((each.source, each.target), pair, strict=True)
            ((shorter, whole),) = [(now.split(), then.split()) for now, then in sides if now != then] or [([], [])]
            gone = len(whole) - len(shorter)
            assert gone <= max(2, len(whole) // 2)
            assert any(whole[:first] + whole[first + gone :] == shorter for first in range(len(whole) + 1)), row
            assert min(len(whole), 3) <= gone + 1, "two at least, of two words one"


def test_average_precision_is_that_of_plain_loops() -> None:
    draw = random.Random(1)
    for _ in range(50):
        scores = [float(draw.randint(0, 5)) for _ in range(12)]
        marks = [draw.random() < 0.4 for _ in scores] + [True]
        scores.append(2.0)
        ranking = sorted(range(13), key=lambda row: (-scores[row], row))
        precisions = [
            Fraction(sum(marks[each] for each in ranking[: rank + 1]), rank + 1)
            for rank, row in enumerate(ranking)
            if marks[row]
        ]
        found = benchmark_suspects.average_precision(scores, marks)
        assert found == pytest.approx(float(sum(precisions) / len(precisions)))


def test_quartiles_are_those_of_each_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "FEW", 3)
    matrices = [np.random.default_rng(seed).random((5 + seed, 9 - seed)).astype(np.float32) for seed in range(3)]
    for by, width in (("offset", 1), ("path", 1), ("path", 3)):
        expected: dict[int, list[float]] = {}
        for size_TS in matrices:
            T, S = size_TS.shape
            for t in range(1, T + 1):
                for s in range(1, S + 1):
                    # the last of S states and end-of-sentence's: S + 1 - s steps to the end, then t - 1 and one more
                    steps = t - s if by == "offset" else (S + 1 - s) + t
                    expected.setdefault(steps // width, []).append(float(size_TS[t - 1, s - 1]))
        found = forgetting.spreads(matrices, by, width)
        kept = {number: values for number, values in sorted(expected.items()) if len(values) >= 3}
        assert [each.number for each in found] == [len(values) for values in kept.values()]
        for each, (number, values) in zip(found, kept.items(), strict=True):
            assert each.distance == number * width + (width - 1) / 2
            np.testing.assert_allclose(each[1:4], np.percentile(values, [25, 50, 75]), rtol=1e-6)


def test_the_factor_is_that_of_a_power_law() -> None:
    found = [forgetting.Spread(step, 0, 3 * 0.8**step, 1, 50) for step in range(-3, 9)]
    assert forgetting.factor(found) == pytest.approx(0.8)
    assert np.isnan(forgetting.factor(found[:4]))


def test_words_that_are_dropped_or_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first word of a translation is left out, or its last one is said twice more."""
    pairs = [[*map(str.strip, (DATA / f"train.{side}").open(encoding="utf-8"))][:600] for side in ("de", "en")]
    files = [tmp_path / "de", tmp_path / "en"]
    for file, lines in zip(files, pairs, strict=True):
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    texts = [dropped_words.words(line) for line in pairs[1]]
    changed = {
        "none": [" ".join(line) for line in texts],
        "first": [" ".join(line[1:]) for line in texts],
        "last": [" ".join([*line, line[-1], line[-1]]) for line in texts],
    }
    for name, lines in changed.items():
        (tmp_path / name / "seed-1" / "test").mkdir(parents=True)
        (tmp_path / name / "seed-1" / "test" / "t").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["--train", *files, "--source", files[0], "--reference", files[1]]
    paths = [tmp_path / name / "seed-1" / "test" / "t" for name in changed]
    monkeypatch.setattr("sys.argv", ["dropped_words.py", *map(str, [*arguments, *paths])])
    dropped_words.main()
    none, first, last = ([float(each) for each in row.split()[:2]] for row in capsys.readouterr().out.splitlines()[1:])
    assert none == [0.0, 0.0]
    assert first[1] == 0.0
    assert first[0] > 5
    assert last[1] == pytest.approx(100 * 2 * len(texts) / (sum(map(len, texts)) + 2 * len(texts)), abs=0.006)
    assert last[0] < 1


def test_lines_by_their_rarest_word(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against words counted by white space, and sacreBLEU's sentence chrF of nmt's translations."""
    counts = Counter(word for line in (trained / "train.de").open() for word in line.lower().strip(".\n").split())
    sources = [*(trained / "valid.de").read_text().splitlines(), "Grün Igel.", "..."]
    translations = nmt.load_translator(trained / "run").translate(sources)
    monkeypatch.chdir(tmp_path)
    write_pairs(sources, ["one two three."] * len(sources))
    monkeypatch.chdir(trained)
    files = ("--source", str(tmp_path / "s"), "--reference", str(tmp_path / "t"))
    monkeypatch.setattr("sys.argv", ["rare_words.py", "run", *files])
    rare_words.main()
    expected: dict[int, list[float]] = {limit: [] for limit in (0, 4, 19, 99, 10**9)}
    for source, translation in zip(sources, translations, strict=True):
        rarest = min((counts[word] for word in source.lower().strip(".").split()), default=10**9)
        group = next(limit for limit in expected if rarest <= limit)
        expected[group].append(CHRF().sentence_score(translation.text, ["one two three."]).score)
    _, numbers, figures = (row.split() for row in capsys.readouterr().out.splitlines())
    assert list(map(int, numbers)) == [len(sources), *map(len, expected.values())]
    means = [np.mean(group) if group else np.nan for group in expected.values()]
    assert list(map(float, figures[:5])) == pytest.approx(means, abs=0.051, nan_ok=True)
