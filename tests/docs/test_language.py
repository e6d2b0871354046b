"""The pages are easy to read: short sentences, and every link and anchor inside the documentation leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PROSE = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PROSE, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md"))]
MEAN_WORDS = 18
README_WORDS = 1200

_FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?:])[\"')*]*\s+(?=[A-Z`\"'(*]|nmt )")


def sentences(text: str) -> list[str]:
    """The sentences of the prose of a page: no headings, tables or code. Code in a line is one word."""
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
    return [sentence for paragraph in joined for sentence in _SENTENCE_END.split(paragraph) if " " in sentence]


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.*)", _FENCED.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", _LINK.sub(r"\1", heading).lower()).replace(" ", "-") for heading in headings}


def test_sentences_are_found() -> None:
    text = (
        "# Heading\n\nOne `x = 1` here. See [it](a.md), now:\n\n    code. Code.\n\n| a |\n\n- An item.\n  It goes on.\n"
    )
    assert sentences(text) == ["One Code here.", "See it, now:", "An item.", "It goes on."]


def test_sentences_are_short() -> None:
    lengths = [len(sentence.split()) for page in PROSE for sentence in sentences(page.read_text(encoding="utf-8"))]
    assert len(lengths) > 1000
    assert sum(lengths) / len(lengths) <= MEAN_WORDS


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
