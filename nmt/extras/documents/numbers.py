"""Numbers, codes, URLs and e-mail addresses that a translation has lost, as terms that it should have.

A translation has a number if it has the same digits, however they are separated: 1,000.50 is 1.000,50, and 8:30 is
8.30. It also has those of ``nmt.data.number_words`` that are words of its language. In another language, a number up to
12 counts as lost only where the translation has another number instead. A code is a word with digits in it, such as A4.
"""

from __future__ import annotations

import re
from collections import Counter

from nmt.data.number_words import WORDS
from nmt.extras.documents.glossary import Occurrence, Term
from nmt.extras.documents.markup import ITEM

_NUMBER = r"\d++(?:[.,:'’\u00a0\u2009\u202f]\d++)*+"
_NUMBERS = re.compile(_NUMBER)
_CODE_OR_NUMBER = re.compile(rf"(?<!\w)[^\W\d_]++[^\W_]*+|{_NUMBER}")
"""A word, which is a code if it has a digit, or a number."""

MAX_WORD = 12
"""Largest number that may be written as a word of an unknown language."""

_EXCHANGED = str.maketrans(",.", ".,")


def lost_items(source: str, translation: str, language: str | None = None) -> list[Occurrence]:
    """Finds what a translation of a source into a language, such as "en", has lost. A number may be written as in the
    source, or with commas in place of points and the other way around."""
    lost = list[Occurrence]()
    known = WORDS.get(language or "", {})
    free = Counter(map(_key, _CODE_OR_NUMBER.findall(translation)))
    free.update(known[word] for word in _CODE_OR_NUMBER.findall(translation.lower()) if word in known)
    addresses = [item.span() for item in ITEM.finditer(source) if item.lastgroup in ("url", "mail")]
    lost += [
        Occurrence(Term(source[a:b], (source[a:b],)), (a, b)) for a, b in addresses if source[a:b] not in translation
    ]
    for match in _CODE_OR_NUMBER.finditer(source):
        begin, end = match.span()
        if not any(map(str.isdigit, match[0])) or any(a < end and begin < b for a, b in addresses):
            continue
        if free[key := _key(match[0])]:
            free[key] -= 1
        else:
            variants = dict.fromkeys((match[0], match[0].translate(_EXCHANGED)))
            lost.append(Occurrence(Term(match[0], tuple(variants)), match.span()))
    has_others = any(free[key] for key in free if key.isdecimal())
    most = 1 if known else MAX_WORD  # 1 may be an article
    return [each for each in lost if has_others or not (each.term.source.isdecimal() and int(each.term.source) <= most)]


def is_address(text: str) -> bool:
    """Returns True for a URL or an e-mail address among what is lost."""
    return not text.isalnum() and any(map(str.isalpha, text))


def _key(text: str) -> str:
    """Returns a text without what separates the digits of numbers."""
    return "".join(filter(str.isalnum, text))
