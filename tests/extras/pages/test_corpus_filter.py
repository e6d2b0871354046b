"""Suspicious sentence pairs."""

from __future__ import annotations

import math
import random

import pytest

from nmt.alignment.formats import Alignment
from nmt.extras.pages import corpus_filter
from tests.extras.pages.samples import aligned


def diagonal(source: str, target: str) -> Alignment:
    """Words that are linked one by one."""
    return aligned(source, target, tuple((n, n) for n in range(min(len(source.split()), len(target.split())))))


def texts(pair: Alignment) -> tuple[str, str]:
    return "  ".join(pair.source_words), "\t".join(pair.target_words)


def test_usual_lengths_are_those_of_the_formula() -> None:
    draw = random.Random(1)
    lengths = [(draw.randint(0, 9), draw.randint(0, 9)) for _ in range(200)]
    kept = [pair for pair in lengths if pair != (0, 0)]
    assert len(kept) < len(lengths), "two blank sides count nothing"
    c = sum(t for _, t in kept) / sum(s for s, _ in kept)
    v = sum((t - c * s) ** 2 / ((s + t / c) / 2) for s, t in kept) / len(kept)
    found = corpus_filter.usual_lengths(iter(lengths))
    assert (found.ratio, found.variance) == pytest.approx((c, v))
    z = [found.z("x" * s, "y" * t) for s, t in lengths]
    for (s, t), each in zip(lengths, z, strict=True):
        assert each == pytest.approx((t - c * s) / math.sqrt(v * (s + t / c) / 2) if s or t else 0.0)
    assert sum(each**2 for each in z) / len(kept) == pytest.approx(1)


def test_without_variance_no_length_is_unusual() -> None:
    for lengths in ([], [(0, 0)], [(0, 5)], [(5, 0)], [(3, 6), (4, 8)]):
        assert corpus_filter.usual_lengths(lengths).z("abc", "a") == 0.0


def test_white_space_has_no_length() -> None:
    assert corpus_filter.length(" a\tbc\u2003d ") == 4


def test_unlinked_words_are_those_with_a_letter_or_digit() -> None:
    pair = aligned("Der Hund , 7 „", "dog !", ((1, 0),))
    assert corpus_filter.unlinked(pair) == (("Der", "7"), ())
    assert corpus_filter.unlinked_share(pair) == pytest.approx(2 / 3)
    assert corpus_filter.unlinked_share(aligned("Hund", "a b c d", ((0, 0),))) == pytest.approx(3 / 4)
    assert corpus_filter.unlinked_share(aligned("Hund", "a", ())) == 1.0
    assert corpus_filter.unlinked_share(aligned("", "")) == corpus_filter.unlinked_share(aligned("!", "?", ())) == 0.0


SAME = corpus_filter.UsualLengths(1.0, 1.0)
"""Lengths a and b are (b - a) / √((a + b) / 2) from the usual."""


SUSPICIONS = [
    (diagonal("ab cd", "ef gh"), 3.99, ()),
    (diagonal("ab cd", "ef gh"), 4.0, ("unlikely",)),
    (diagonal("abcd", "efg"), 3.8572, ("unlikely",)),
    (diagonal("a" * 4, "b" * 16), 0.0, ("unlikely", "length")),
    (aligned("a b c d e", "v w x y z", ((0, 0), (1, 1), (2, 2))), 0.0, ()),
    (aligned("a b c d e", "v w x y z", ((0, 0), (1, 1), (1, 2), (1, 3))), 0.0, ("unlinked",)),
    (diagonal("im Jahr 1989", "in the 1990"), 0.0, ("numbers",)),
    (diagonal("Ein Hund", "ein  hund"), 0.0, ("copied",)),
    (diagonal("Berlin", "Berlin"), 0.0, ()),
    (diagonal("a", ""), 0.0, ("unlinked", "blank")),
    (diagonal("", ""), 99.0, ()),
]


@pytest.mark.parametrize(
    ("pair", "nll", "kinds"),
    SUSPICIONS,
    ids=["none", "unlikely", "both", "length", "links", "unlinked", "numbers", "copied", "name", "blank", "blanks"],
)
def test_kinds_of_suspicion(pair: Alignment, nll: float, kinds: tuple[str, ...]) -> None:
    found = corpus_filter.suspect(5, *texts(pair), pair, nll=nll, lengths=SAME)
    assert (found.kinds if found else ()) == kinds


def test_a_suspect_names_what_is_wrong() -> None:
    pair = aligned("Im Jahr 1989, Mann", "In  year two men", ((1, 1), (3, 3)))
    l_mean = (15 + 12) / 2
    assert corpus_filter.suspect(
        5, *texts(pair), pair, nll=2.0, lengths=corpus_filter.UsualLengths(1.0, 0.5), min_score=9
    ) == corpus_filter.Suspect(
        line=5,
        score=pytest.approx(2 + 9 / (0.5 * l_mean) / 2),
        kinds=("unlinked", "numbers"),
        nll=2.0,
        z=pytest.approx(-3 / math.sqrt(0.5 * l_mean)),
        source_words=("Im", "1989,", "1989"),
        target_words=("In", "two"),
        source="Im Jahr 1989, Mann",
        target="In year two men",
    )
