"""The four splits: how sentences are drawn, withheld and written.

A *cell* is a combination of two things that meet in a sentence: a verb and a clause pattern, a
verb and its object, an adjective and a noun, an outer and an inner pattern.  A fixed share of all
cells, chosen by a checksum of their names, is withheld: sentences with such a cell may only be in
``hard``.  All other sentences are shared out over train, valid and test.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus_de_en.grammar import Grammar, Sentence
from corpus_de_en.sampling import Sampler

SEED = 20240607
SIZES = {"train": 24000, "valid": 500, "test": 1000, "hard": 500}
WITHHELD_ONE_IN = {"verb-pattern": 24, "verb-object": 20, "adjective-noun": 16, "nest": 24}
MIN_TRAIN_COUNT = 8
MIN_WORDS, MAX_WORDS = 3, 40
LONG_FROM = (21, 27)
"""Minimum lengths of long and very long sentences, in words of the longer side."""

LONG_SIZES = {"valid": 500, "test": 1000, "train": 12000}
LONG_WORDS = (10, 80)


def withheld(cell: str) -> bool:
    """True if a cell is kept out of train, valid and test."""
    kind = cell.partition(":")[0]
    return zlib.crc32(cell.encode("utf-8")) % WITHHELD_ONE_IN[kind] == 0


def withheld_cells(sentence: Sentence) -> list[str]:
    """The withheld cells of a sentence, sorted."""
    return sorted(cell for cell in sentence.cells if withheld(cell))


def forms(text: str) -> list[str]:
    """The lower-cased words of a line without their punctuation."""
    return [word.strip(".,?!").lower() for word in text.split()]


@dataclass(frozen=True)
class Corpus:
    """The generated splits, by name."""

    splits: dict[str, list[Sentence]]


def length(sentence: Sentence) -> int:
    """The number of words of the longer side."""
    return max(len(sentence.german.split()), len(sentence.english.split()))


def _band(sentence: Sentence) -> int:
    """0 for ordinary, 1 for long and 2 for very long sentences."""
    return sum(length(sentence) >= start for start in LONG_FROM)


def _well_sized(sentence: Sentence) -> bool:
    shorter = min(len(sentence.german.split()), len(sentence.english.split()))
    return shorter >= MIN_WORDS and length(sentence) <= MAX_WORDS


def generate(seed: int = SEED) -> Corpus:
    """Draw sentences until every split is full."""
    grammar = Grammar(Sampler(seed))
    shared = SIZES["train"] + SIZES["valid"] + SIZES["test"]
    ordinary: list[Sentence] = []
    special: list[Sentence] = []
    seen: set[str] = set()
    while len(ordinary) < shared:
        sentence = grammar.sentence()
        if sentence.german in seen or not _well_sized(sentence):
            continue
        seen.add(sentence.german)
        (special if withheld_cells(sentence) else ordinary).append(sentence)
    test_end = SIZES["valid"] + SIZES["test"]
    # The first draws go to valid and test: whatever order effects there are, train gets the rest.
    splits = {
        "valid": ordinary[: SIZES["valid"]],
        "test": ordinary[SIZES["valid"] : test_end],
        "train": ordinary[test_end:],
    }
    splits["hard"] = _hard(special, splits["train"])
    return Corpus(splits)


def generate_long(seed: int = SEED) -> Corpus:
    """Draw coordinated sentences of 10 to 80 German words, short and long ones about equally often."""
    grammar = Grammar(Sampler(seed))
    drawn: dict[str, Sentence] = {}
    low, high = LONG_WORDS
    while len(drawn) < sum(LONG_SIZES.values()):
        sentence = grammar.coordinated(grammar.rng.choice(range(low, high + 1)))
        if len(sentence.german.split()) <= high:
            drawn.setdefault(sentence.german, sentence)
    sentences = iter(drawn.values())
    return Corpus({name: list(itertools.islice(sentences, size)) for name, size in LONG_SIZES.items()})


def _counts(sentences: Iterable[Sentence]) -> tuple[Counter[str], Counter[str]]:
    """Counts of word forms, and of lemmas and patterns."""
    words: Counter[str] = Counter()
    units: Counter[str] = Counter()
    for sentence in sentences:
        words.update("de:" + form for form in forms(sentence.german))
        words.update("en:" + form for form in forms(sentence.english))
        units.update(sentence.lemmas)
        units.update(sentence.patterns)
    return words, units


def _hard(candidates: Iterable[Sentence], train: Sequence[Sentence]) -> list[Sentence]:
    """Sentences with a withheld cell whose every word, lemma and pattern is well known.

    The kinds of cell take turns, so that each has an equal share.  Long sentences, which have many
    cells, get no larger share than they have in train.
    """
    words, units = _counts(train)
    bands = Counter(map(_band, train))
    room = {band: SIZES["hard"] * bands[band] // SIZES["train"] for band in bands}
    room[0] = SIZES["hard"]
    by_kind: dict[str, list[Sentence]] = {kind: [] for kind in WITHHELD_ONE_IN}
    for sentence in candidates:
        counts = [words["de:" + form] for form in forms(sentence.german)]
        counts += [words["en:" + form] for form in forms(sentence.english)]
        counts += [units[unit] for unit in sentence.lemmas | sentence.patterns]
        if min(counts) < MIN_TRAIN_COUNT:
            continue
        by_kind[withheld_cells(sentence)[0].partition(":")[0]].append(sentence)
    chosen: list[Sentence] = []
    while len(chosen) < SIZES["hard"]:
        for queue in by_kind.values():
            while queue and len(chosen) < SIZES["hard"]:
                candidate = queue.pop(0)
                band = _band(candidate)
                if room[band] > 0:
                    room[band] -= 1
                    chosen.append(candidate)
                    break
        if not any(by_kind.values()):
            raise ValueError("too few sentences with withheld combinations")
    return chosen


def write(corpus: Corpus, folder: Path) -> None:
    """Write all splits, and the alignments of all but train."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, sentences in corpus.splits.items():
        files = {
            "de": [sentence.german for sentence in sentences],
            "en": [sentence.english for sentence in sentences],
            "align": [" ".join(map(str, sentence.links)) for sentence in sentences],
        }
        if name == "train":
            del files["align"]
        for extension, lines in files.items():
            text = "".join(line + "\n" for line in lines)
            (folder / f"{name}.{extension}").write_bytes(text.encode("utf-8"))
