"""Lines in capitals and in title case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.casing import case_of, is_usual, put_back, to_ordinary

ORDINARY = [
    "NATO",
    "A B",
    "Die NATO tagt in DE.",
    "Der Hund",
    "Der Hund bellt",
    "Ein Hund bellt im Garten",
    "狗 在 睡觉",
]
CASES = {
    "upper": ["EIN HUND BELLT.", "EIN HUND, 3 KATZEN!"],
    "title": ["Ein Hund Bellt"],
    "headline": ["The Lord of the Rings"],
    "ordinary": [*ORDINARY, "", "123 !?"],  # one word may be an acronym
}


@pytest.mark.parametrize(("case", "text"), [(case, text) for case, texts in CASES.items() for text in texts])
def test_cases(case: str, text: str) -> None:
    assert case_of(text) == case


def test_what_is_kept_has_no_say_and_no_change() -> None:
    text = "ÖFFNE DIE Datei JETZT"
    kept = [(10, 15)]
    assert case_of(text) == "ordinary"
    assert case_of(text, kept) == "upper"
    assert to_ordinary(text, len, kept) == "Öffne die Datei jetzt"


def test_the_cheapest_case_is_the_usual_one() -> None:
    known = {"Hund": 1, "der": 1, "NATO": 1, "Der": 1}

    def cost(word: str) -> int:
        return known.get(word, len(word))

    assert to_ordinary("DER HUND DER NATO BELLT", cost) == "Der Hund der NATO bellt"
    assert to_ordinary("Der Hund Der Nato", cost) == "Der Hund der NATO"


@pytest.mark.parametrize(
    ("text", "ordinary", "usual"),
    [
        ("Der Hund im Park", "Der Hund im Park", True),
        ("Der Hund im Park", "Der Hund im park", True),
        ("Der Hund Im Park", "Der Hund im park", False),
        ("The Lord of the Rings", "The lord of the rings", False),
        ("EIN HUND", "Ein Hund", False),
        ("", "", True),
    ],
)
def test_a_line_that_the_vocabulary_would_write_so_is_left_alone(text: str, ordinary: str, usual: bool) -> None:
    assert is_usual(text, ordinary) == usual


@pytest.mark.parametrize(
    ("text", "case", "expected"),
    [
        ("The dog's big.", "upper", "THE DOG'S BIG."),
        ("die Straße", "upper", "DIE STRAẞE"),
        ("the dog of it", "title", "The Dog Of It"),
        ("the dog of the rings", "headline", "The dog of the Rings"),
        ("the dog", "ordinary", "the dog"),
    ],
)
def test_back(text: str, case: str, expected: str) -> None:
    assert put_back(text, case) == expected  # type: ignore[arg-type]


@given(st.text())
def test_no_character_is_lost_or_added(text: str) -> None:
    assert len(to_ordinary(text, len)) == len(text)
    for case in ("upper", "title", "headline"):
        assert len(put_back(text, case)) == len(text)  # type: ignore[arg-type]
