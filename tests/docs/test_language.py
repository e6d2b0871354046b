"""The pages read as prose that is written in paragraphs, and every link and anchor inside the documentation leads
somewhere."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PROSE = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = ("CONTRIBUTING", "SECURITY", "CHANGELOG", "examples/README", "data/de-en/README", "data/generator/README")
LINKED = [*PROSE, *(ROOT / f"{name}.md" for name in OTHERS)]
MEAN_WORDS = 20
README_WORDS = 1200
ALL_WORDS, PAGE_WORDS = 34_600, 2_500
REPEATS, MOST_REPEATS = 0.06, 0.12
"""Share of sentences with three words in a row of the sentence before: of all, and of a page. In pages that people like
to read it is 2 to 6 %."""
PRONOUNS = 0.025
"""Pronouns a word, at least: prose that refers back has 3 to 7 in 100."""

_FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_PRONOUN = re.compile(r"(?i)\b(?:it|its|they|them|their|this|these|those|you|your|we|our|here|there)\b")
_SENTENCE_END = re.compile(r"(?<=[.!?:])[\"')*]*\s+(?=[A-Z`\"'(*]|nmt )")


def paragraphs_of(text: str) -> list[list[str]]:
    """The sentences of each paragraph of a page: no headings, tables or code. Code in a line is one word."""
    paragraphs: list[list[str]] = [[]]
    for line in _FENCED.sub("\n", text).splitlines():
        indented = line.startswith("    ") and not paragraphs[-1]
        if not line.strip() or indented or line.startswith(("#", "|", "---")):
            paragraphs.append([])
        elif re.match(r"\s*(?:[-*]|\d+\.) ", line):
            paragraphs.append([re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line)])
        else:
            paragraphs[-1].append(line.strip())
    joined = (re.sub(r"`[^`]*`", "Code", _LINK.sub(r"\1", " ".join(lines))) for lines in paragraphs if lines)
    return [[each for each in _SENTENCE_END.split(paragraph) if " " in each] for paragraph in joined]


def sentences(text: str) -> list[str]:
    """All sentences of a page."""
    return [sentence for paragraph in paragraphs_of(text) for sentence in paragraph]


def triples(sentence: str) -> set[tuple[str, ...]]:
    """Each three words in a row."""
    words = re.findall(r"[\w'’]+", sentence.lower())
    return set(zip(words, words[1:], words[2:], strict=False))


def repeated(text: str) -> list[bool]:
    """Tells, for each sentence that follows another in its paragraph, if both have the same three words in a row."""
    pairs = (pair for paragraph in paragraphs_of(text) for pair in pairwise(paragraph))
    return [bool(triples(before) & triples(sentence)) for before, sentence in pairs]


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.*)", _FENCED.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", _LINK.sub(r"\1", heading).lower()).replace(" ", "-") for heading in headings}


def test_sentences_are_found() -> None:
    prose = "# Heading\n\nOne `x = 1` here. See [it](a.md), now:\n\n"
    text = f"{prose}    code. Code.\n\n| a |\n\n- An item.\n  It goes on.\n"
    assert sentences(text) == ["One Code here.", "See it, now:", "An item.", "It goes on."]


def test_sentences_are_short() -> None:
    lengths = [len(sentence.split()) for page in PROSE for sentence in sentences(page.read_text(encoding="utf-8"))]
    assert len(lengths) > 1000
    assert sum(lengths) / len(lengths) <= MEAN_WORDS


def test_repeats_are_found() -> None:
    text = "One two three. It is so.\n\nThe key of a line is a key. The key of a page differs.\n"
    assert repeated(text) == [False, True]


def test_paragraphs_hold_together() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in PROSE}
    words = {page: len(" ".join(sentences(text)).split()) for page, text in texts.items()}
    repeats = {page: repeated(text) for page, text in texts.items()}
    flat = [each for of_page in repeats.values() for each in of_page]
    assert sum(flat) / len(flat) <= REPEATS
    assert [page.name for page, of_page in repeats.items() if sum(of_page) > MOST_REPEATS * max(len(of_page), 10)] == []
    pronouns = sum(len(_PRONOUN.findall(" ".join(sentences(text)))) for text in texts.values())
    assert pronouns / sum(words.values()) >= PRONOUNS
    assert sum(words.values()) <= ALL_WORDS
    assert max(words.values()) <= PAGE_WORDS


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= README_WORDS


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", _FENCED.sub("", text)):
        path = page.parent / target if target else page
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{target}#{anchor}"
