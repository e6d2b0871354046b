"""Words that stand for numbers and negations, in Czech, English, French, German and Spanish."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def _by_word(kind: str) -> Mapping[str, Mapping[str, str]]:
    """Reads the words of each language with the number that each stands for, or ``NEGATION``."""
    tree: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {
        language: {word: fact for fact, words in kinds[kind].items() for word in words.split()}
        for language, kinds in tree.items()
    }


NEGATION = "negation"
WORDS = _by_word("words")
"""The numbers 0 and from 2 to 20, the tens, and the negations, by language. 1 is often an article. A negation that is
the second part of a double one is missing."""
BEGINNINGS = _by_word("beginnings")
"""Beginnings of words that may stand for a number or a negation as well."""
ONES = _by_word("ones")
"""Words that stand for 1: always, or only with "before a word", as the articles a and ein, or "last", as once, where no
other word follows without punctuation."""
OTHERS = _by_word("others")
"""Beginnings of further words that digits may translate, such as hundred or noon."""


def without_country(language: str | None) -> str:
    """Returns the language as it is named here, such as "en" for "en-GB"; nothing if there is none."""
    return (language or "").split("-")[0]


def usual_digits(text: str) -> str:
    """Writes decimal digits of any script, such as those of Arabic, as 0 to 9, and its separators as . and ,"""
    text = text.replace("\u066b", ".").replace("\u066c", ",")
    return text if text.isascii() else "".join(str(unicodedata.decimal(each, each)) for each in text)
