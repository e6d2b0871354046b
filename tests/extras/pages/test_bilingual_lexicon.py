"""The lexicon that links give, against plain loops."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

from nmt.alignment import Link
from nmt.alignment.formats import Alignment
from nmt.extras.pages.bilingual_lexicon import BilingualLexicon, Entry, Group, groups, unit
from tests.extras.pages.samples import aligned


def closure(links: set[Link], source_words: int, target_words: int) -> set[Group]:
    """Sets of one word each, of which each link joins those of its two words."""
    sets = [{("s", place)} for place in range(source_words)] + [{("t", place)} for place in range(target_words)]
    for source, target in links:
        joined = set[tuple[str, int]]().union(*(each for each in sets if each & {("s", source), ("t", target)}))
        sets = [joined, *(each for each in sets if not each & joined)]
    return {tuple(tuple(sorted(place for at, place in each if at == side)) for side in "st") for each in sets}  # type: ignore[misc]


def random_pairs(count: int, seed: int) -> list[Alignment]:
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        source = [draw.choice("abcd") for _ in range(draw.randint(0, 6))]
        target = [draw.choice("wxyz") for _ in range(draw.randint(0, 6))]
        grid = [(s, t) for s in range(len(source)) for t in range(len(target))]
        links = tuple(sorted(link for link in grid if draw.random() < 0.2))
        pairs.append(aligned(source, target, links))
    return pairs


def test_groups_are_the_connected_components() -> None:
    for pair in random_pairs(300, seed=1):
        S, T = len(pair.source_words), len(pair.target_words)
        found = list(groups(pair.links, S, T))
        assert sorted(found) == sorted(closure(set(pair.links), S, T))


def spelt(words: tuple[str, ...], places: tuple[int, ...]) -> str:
    text = ""
    for place in range(min(places, default=0), max(places, default=-1) + 1):
        if place in places:
            text += f" {words[place]}"
        elif not text.endswith("…"):
            text += " …"
    return text.strip()


def test_entries_are_what_plain_loops_count() -> None:
    pairs = random_pairs(200, seed=2)
    counts: Counter[tuple[str, str]] = Counter()
    lines: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    lexicon = BilingualLexicon(examples=2)
    for line, pair in enumerate(pairs, 1):
        lexicon.add(pair, line)
        for sources, targets in closure(set(pair.links), len(pair.source_words), len(pair.target_words)):
            key = spelt(pair.source_words, sources), spelt(pair.target_words, targets)
            counts[key] += 1
            if line not in lines[key]:
                lines[key].append(line)
    found = list(lexicon.entries())
    assert {(entry.source, entry.target): entry.count for entry in found} == counts
    for entry in found:
        assert list(entry.lines) == lines[entry.source, entry.target][:2]
        of_source = sum(count for (source, _), count in counts.items() if source == entry.source)
        of_target = sum(count for (_, target), count in counts.items() if target == entry.target)
        assert entry.target_given_source == (entry.count / of_source if entry.source else None)
        assert entry.source_given_target == (entry.count / of_target if entry.target else None)
    for word in "abcd":
        assert sum(entry.target_given_source or 0 for entry in found if entry.source == word) == pytest.approx(1)
    frequent = list(lexicon.entries(min_count=5))
    assert frequent == [entry for entry in found if entry.count >= 5]
    assert 0 < len(frequent) < len(found)


def test_the_order_is_that_of_a_dictionary() -> None:
    lexicon = BilingualLexicon()
    pairs = [("Zaun", "fence"), ("alt", "old"), ("Alt", "Old"), ("alt", "aged"), ("alt", "old"), ("Ball", "ball")]
    for line, (source, target) in enumerate(pairs, 1):
        lexicon.add(aligned(source, target, ((0, 0),)), line)
    lexicon.add(aligned("", "the", ()), 9)
    lexicon.add(aligned("ja", "", ()), 10)
    found = [(entry.source, entry.target) for entry in lexicon.entries()]
    assert found == [
        ("Alt", "Old"), ("alt", "old"), ("alt", "aged"), ("Ball", "ball"), ("ja", ""), ("Zaun", "fence"), ("", "the"),
    ]  # fmt: skip
    assert list(lexicon.entries())[4] == Entry("ja", "", 1, 1.0, None, (10,))


def test_characters_are_joined_as_they_are_written() -> None:
    assert unit(["两", "个", "苹", "果", "。"], [1, 2, 3, 4]) == "个苹果"
    assert unit(["两", "公司", "电话", "号"], [0, 1, 2]) == "两 公司 电话"  # the words of tokenized text
    assert unit(["两", "个", "USB", "苹"], [0, 2, 3]) == "两 … USB 苹"


def test_case_may_not_count_and_a_line_is_named_once() -> None:
    pair = aligned("Der Hund der", "The dog the", ((0, 0), (1, 1), (2, 2)))
    entries = []
    for lowercase in (False, True):
        lexicon = BilingualLexicon(lowercase=lowercase, examples=5)
        lexicon.add(pair, 7)
        entries.append({(each.source, each.target): (each.count, each.lines) for each in lexicon.entries()})
    assert entries[0] == {("Der", "The"): (1, (7,)), ("Hund", "dog"): (1, (7,)), ("der", "the"): (1, (7,))}
    assert entries[1] == {("der", "the"): (2, (7,)), ("hund", "dog"): (1, (7,))}


UNITS = [
    ("Er steht früh auf.", (1, 3), "steht … auf"),
    ("der Schwebebalken.", (1,), "Schwebebalken"),
    ("balance beam !", (0, 1, 2), "balance beam"),
    ("( ein „Hund“, der )", (0, 1, 2, 3, 4), "ein „Hund“, der"),
    ("( ein „Hund“, der )", (0, 2), "Hund"),
    ("ja , nein ,", (1, 3), ", … ,"),
    (". . .", (0, 1), ". ."),
    ("50% #1 C#", (0, 1, 2), "50% #1 C#"),
    ("what's o'clock?", (0, 1), "what's o'clock"),
    ("a b c", (), ""),
    ("Nord- und Südkorea", (0, 2), "Nord- … Südkorea"),
]


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    UNITS,
    ids=["verb", "stop", "mark", "inner", "bracket", "marks", "stops", "kept", "apostrophe", "none", "hyphen"],
)
def test_units_are_without_punctuation_at_their_ends(text: str, places: tuple[int, ...], expected: str) -> None:
    assert unit(text.split(), places) == expected
