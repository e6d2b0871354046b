"""Conversion of lines in capitals, and of Lines In Which Every Word Has One, to ordinary case for a model, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from nmt.data.words import Span

Case = Literal["upper", "title", "headline", "ordinary"]
"""Case of a line. ``headline`` is title case in which short words may be in small letters."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SHORT = 3
"""Maximum number of letters of a word that may be in small letters in a headline."""


def case_of(text: str, kept: Sequence[Span] = ()) -> Case:
    """Returns the case of a line, without the spans ``kept``: capitals, if it has two or more words; title case, if
    each of three or more words has a capital; headline, if each except short ones has; or else ordinary case."""
    words = [match.group() for match in _words(text, kept)]
    words = [word for word in words if word.lower() != word.upper()]
    if len(words) >= 2 and all(word.isupper() for word in words) and any(len(word) > 1 for word in words):
        return "upper"
    if len(words) < 3 or not all(_is_title(word) for word in words if len(word) > _SHORT):
        return "ordinary"
    if all(_is_title(word) for word in words):
        return "title"
    return "headline" if _is_title(words[0]) and sum(len(word) > _SHORT for word in words) >= 2 else "ordinary"


def to_ordinary(text: str, cost: Callable[[str], int], kept: Sequence[Span] = ()) -> str:
    """Converts a line to the case that a model is used to: each word in small letters or, if its ``cost`` is lower,
    with a capital or in capitals; the first word with a capital or in capitals. The cost is the number of subwords,
    which is lowest in the case that the vocabulary was learnt with. The spans ``kept`` do not change, and no character
    is lost or added."""
    changed, last = list[str](), 0
    for match in _words(text, kept):
        word = match.group()
        small, large = _lower(word), _upper(word)
        capital = _upper(small[0]) + small[1:]
        forms = (small, capital, large) if changed else (capital, large)
        changed += [text[last : match.start()], min(forms, key=cost)]  # of equal costs the first
        last = match.end()
    return "".join([*changed, text[last:]])


def is_usual(text: str, ordinary: str) -> bool:
    """Returns True if a line is in its ordinary case for a vocabulary, or nearly: at most half of its capitals after
    the first word differ. So a German line of nouns is not a headline."""
    words, usual = (list(_WORD.finditer(line))[1:] for line in (text, ordinary))
    changed = [word[0] != other[0] for word, other in zip(words, usual, strict=True) if word[0][0].isupper()]
    return 2 * sum(changed) <= len(changed)


def put_back(text: str, case: Case) -> str:
    """Converts a translation to the case of its source. The number of characters does not change: ß becomes ẞ, and a
    character without a capital of one character stays."""
    if case == "ordinary":
        return text
    if case == "upper":
        return _upper(text)
    changed = list(text)
    for index, match in enumerate(_WORD.finditer(text)):
        if case == "title" or index == 0 or len(match.group()) > _SHORT:
            changed[match.start()] = _upper(changed[match.start()])
    return "".join(changed)


def _words(text: str, kept: Sequence[Span]) -> list[re.Match[str]]:
    """Finds the words that do not overlap the spans ``kept``."""
    return [
        match
        for match in _WORD.finditer(text)
        if not any(begin < match.end() and match.start() < end for begin, end in kept)
    ]


def _is_title(word: str) -> bool:
    return word[0].isupper() and (len(word) == 1 or not word.isupper())


def _upper(text: str) -> str:
    return "".join("ẞ" if each == "ß" else each.upper() if len(each.upper()) == 1 else each for each in text)


def _lower(text: str) -> str:
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in text)
