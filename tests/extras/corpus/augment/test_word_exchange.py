"""Exchanged words, against the only words that differ from the training pairs, and the order of entries."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from nmt.extras.corpus.augment.dictionary import DictionaryEntry, count_words
from nmt.extras.corpus.augment.word_exchange import EXCHANGED, USES, exchanged_words, most_useful
from tests.workflows.runs import sentences

PAIRS = sentences(200, seed=3)
KNOWN = [
    DictionaryEntry("Hund", "dog", "m"),
    DictionaryEntry("Katze", "cat", "f"),
    DictionaryEntry("grün", "green", "adj"),
    DictionaryEntry("eins", "one", ""),
]
RARE = [
    *(DictionaryEntry(f"Rüde{n}", f"hound{n}", "m") for n in range(9)),
    DictionaryEntry("Uhu", "owl", "m"),  # begins with a vowel
    DictionaryEntry("Stier", "wild young bull", "m"),  # too long
    *(DictionaryEntry(f"Biene{n}", f"busy bee{n}", "f") for n in range(9)),
    DictionaryEntry("rau", "Rough", "adj"),  # capitalised on one side
    DictionaryEntry("neins", "none", ""),  # other endings: the first vowel differs
    DictionaryEntry("acht fünf", "eight five", ""),
]


COUNTS = count_words(source for source, _ in PAIRS) + Counter(filler=1_000_000)
"""None of the words is frequent in this text."""


def test_one_word_and_its_translation_become_a_rare_entry_of_the_same_kind() -> None:
    made = list(exchanged_words(PAIRS, [*KNOWN, *RARE], COUNTS, 1))
    # 18 entries can stand for a dog or a cat
    assert len(made) == min(USES * 18, int(EXCHANGED * len(PAIRS)))
    uses: Counter[str] = Counter()
    for source, target in made:
        (new,), (new_target,) = re.findall(r"\w+\d", source), re.findall(r"(?:busy )?\w+\d", target)
        old, old_target = {"Rüde": ("Hund", "dog"), "Biene": ("Katze", "cat")}[new[:-1]]
        assert DictionaryEntry(new, new_target, "m" if old == "Hund" else "f") in RARE
        # nothing else differs, and the exchanged word had stood once
        assert (source.replace(new, old), target.replace(new_target, old_target)) in PAIRS
        assert old not in source
        uses[new] += 1
    assert max(uses.values()) == USES


def test_it_depends_on_the_seed_alone() -> None:
    first, again, other = (list(exchanged_words(PAIRS, [*KNOWN, *RARE], COUNTS, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_word_without_a_certain_counterpart_stays() -> None:
    entries = [
        DictionaryEntry("Bank", "bank", "f"),
        DictionaryEntry("Ufer", "bank", "f"),
        DictionaryEntry("Tür", "door", "f"),
    ]
    entries += [DictionaryEntry("Luke", "hatch", "f")]
    counts = Counter({"bank": 9, "ufer": 9, "tür": 9, "filler": 100_000})
    pairs = [("", "")] * 4
    pairs += [("Bank am Ufer", "bank near it"), ("Tür an Tür", "door by door"), ("Tor", "door")]
    assert not list(exchanged_words(pairs, entries, counts, 1))
    assert not list(exchanged_words([("Die Tür", "The door")] * 4, entries, counts + Counter(tür=1000), 1))
    certain = exchanged_words([*pairs, ("Die Tür!", "The door!")], entries, counts, 1)
    assert list(map(tuple, certain)) == [("Die Luke!", "The hatch!")]


@pytest.mark.parametrize("known", [0, 4, 5])
def test_rare_words_then_first_senses_then_everyday_words_come_first(known: int) -> None:
    counts = Counter({"kiefer": 0, "haus": known}), Counter({"jaw": 3, "pine": 7, "tree": 9, "house": 9})
    jaw, pine, tree = (DictionaryEntry("Kiefer", text, "") for text in ("jaw", "pine", "pine tree"))
    house, rarity = DictionaryEntry("Haus", "house", ""), DictionaryEntry("Kieferhaus", "house of pine", "")
    phrase = DictionaryEntry("Haus und Kiefer", "house and pine", "")
    order = most_useful([rarity, house, jaw, tree, phrase, pine, jaw], counts)
    expected = [pine, rarity, phrase, jaw, tree]
    expected.insert(1 if known < 5 else 5, house)
    assert order == expected
