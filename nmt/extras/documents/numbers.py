"""Numbers, codes, URLs and e-mail addresses that a translation has lost, as terms that it should have.

A translation has a number if it has the same digits, whatever separates them: 1,000.50 is 1.000,50, and 8:30 is 8.30,
but 3,14 is not 31,4. It also has those of ``nmt.data.number_words`` that are words of its language, and a 1 for each
word for 1, such as an article, that the source does not have, too. In another language, a number up to 12 counts as
lost only where the translation has another number instead. A code is a word of Latin letters with digits in it, such as
A4; other letters beside digits, as in 我有3只狗, are words of their own. Digits before a Chinese or Korean unit (5万,
50,000), month (3月, March) or time (3時, 15:00) are no number by themselves; in a translation they may be any number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nmt.data.number_words import BEGINNINGS, NEGATION, ONES, OTHERS, WORDS, usual_digits, without_country
from nmt.extras.documents.glossary import Occurrence, Term
from nmt.extras.documents.markup import ITEM
from nmt.extras.documents.number_formats import NUMBER, written
from nmt.translator.translator import KEPT

_UNITS = "百千万萬亿億兆月时時点點分백천만억조월시분"
_NUMBER = (
    rf"(?:(?<![^\s(])[-−–])?+(?:(?:\d++\s?)?+[¼-¾⅐-⅞]"
    rf"|\d++(?:[.,:'’\u00a0\u066b\u066c\u2009\u202f]\d++)*+(?:\s?[{_UNITS}])?+)"
)
_LATIN = "A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ"
_CODE_OR_NUMBER = re.compile(rf"(?<![{_LATIN}\d_])[{_LATIN}]++[{_LATIN}\d]*+|{_NUMBER}")
"""A word, which is a code if it has a digit, or a number."""

_DATE = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(?=(?:1[5-9]|20)\d\d(?!\d))")
"""Day and month, which are numbers of their own: 21.11.2026 may be November 21, 2026."""

_TIME = re.compile(r"\d{1,2}\.\d\d(?=\s*+(?:Uhr|h)\b)|(?<=klo\s|kl\.\s)\d{1,2}\.\d\d(?![.,]?\d)")
"""Hours and minutes in German and other languages, as in 6.52 Uhr; without such a word, 6.52 is another number."""

_MINUS = re.compile(r"\b(?:minus|moins|menos|meno|минус|мінус) (?=\d)", re.IGNORECASE)

_ADDRESSES = ("url", "mail")
"""Groups of ``ITEM``."""

MAX_WORD = 12
"""Largest number that may be written as a word of an unknown language."""

_EQUALS = ("=", "≠", "≤", "≥")
"""Signs before numbers that are no words."""

_ROMAN = re.compile(r"\b(?:[VXLCDM]|[IVXLCDM]{2,}+|I(?!['’\s]++\w))\b")
"""A Roman numeral; not I before another word."""

_WORD_AND_NEXT = re.compile(r"([^\W\d_]++)(?=(\s++[^\W_])?)")
"""A word, and the beginning of the next one if only white space is between them."""

_GROUP = re.compile(r"[^\W_]++")
_NUMERAL = re.compile(r"-?[\d¼-¾⅐-⅞]")
_EXCHANGED = str.maketrans(",.", ".,")


def lost_items(
    source: str, translation: str, languages: Sequence[str | None] = (None, None),
    formats: Mapping[str, str] | None = None, *, articles: bool = False, said: bool = False,
) -> list[Occurrence]:  # fmt: skip
    """Finds what a translation of a source has lost, with ``languages`` such as ("de", "en"); with ``articles`` also a
    1 that may be an article, and other small numbers that may be words. With ``said``, a word for a number that
    translates such a word does not stand for digits of the source. A number may be written as in the source, or in the
    digits 0 to 9, and then also in the ``formats`` of ``learn``, or if there are none, with commas in place of points
    and the other way around, unless it is a version or an IP address; 6.52 Uhr also as 6:52."""
    if not KEPT.search(source):
        return []
    own, code = map(without_country, languages)
    known = WORDS.get(code, {})
    words = _CODE_OR_NUMBER.findall(_DATE.sub(r"\1 \2 ", _MINUS.sub(" -", translation)))
    free = Counter([known.get(word.lower()) or _key(word) for word in words])
    if said:
        free -= _said(_CODE_OR_NUMBER.findall(source), WORDS.get(own, {})) & _said(words, known)
    addresses = [item for item in ITEM.finditer(source) if item.lastgroup in _ADDRESSES]
    lost = [Occurrence(Term(item[0], (item[0],)), item.span()) for item in addresses if item[0] not in translation]
    rest = without_addresses(source)
    for match in _CODE_OR_NUMBER.finditer(_DATE.sub(r"\1 \2 ", rest)):
        if match[0][-1] in _UNITS or not _NUMERAL.search(match[0]):
            continue
        key = _key(match[0])
        if found := next(filter(free.__getitem__, (key, f"-{key}")), None):  # "minus" may be a word of the source
            free[found] -= 1
        else:
            usual = usual_digits(match[0])
            exchanged = usual.translate(_EXCHANGED) if NUMBER.fullmatch(usual) else usual
            time = usual.replace(".", ":") if _TIME.match(rest, match.start()) else usual
            variants = dict.fromkeys((usual, written(usual, formats) if formats else exchanged, time, match[0]))
            lost.append(Occurrence(Term(match[0], tuple(variants)), match.span()))
    numbers = (each for each in lost if _NUMERAL.match(_key(each.term.source)))
    longest_first = sorted(numbers, key=lambda number: -len(_key(number.term.source)))
    for each in longest_first[: sum(word[-1] in _UNITS for word in words)]:  # 5万 may be 50,000
        lost.remove(each)
    if articles or any(count and _NUMERAL.match(key) and _NUMERAL.match(key[-1]) for key, count in free.items()):
        return lost
    small = {"1"} if known else {str(number) for number in range(MAX_WORD + 1)}  # 1 may be an article
    in_words = [span for term, span in lost if term.targets[0] in small and not _is_value(source, span[0])]
    if known:  # as many as there are words for 1 that do not translate another one
        del in_words[max(_ones(translation, code) - _ones(source, own), 0) :]
    spans = set(in_words)
    return [each for each in lost if each.span not in spans]


def may_count(text: str, language: str | None) -> bool:
    """Returns True if a text may have a number in words, or in Roman numerals: for all texts of unknown languages."""
    code, words = without_country(language), re.findall(r"[^\W\d_]+", text.lower())
    facts = {word: fact for kind in (BEGINNINGS, OTHERS, WORDS) for word, fact in kind.get(code, {}).items()}
    numbers = tuple(word for word, fact in facts.items() if fact not in ("1", NEGATION))
    is_written = any(map(str.isnumeric, text)) or _ROMAN.search(text) is not None
    return not facts or is_written or any(word.startswith(numbers) or word.endswith(numbers) for word in words)


def _said(words: Iterable[str], known: Mapping[str, str]) -> Counter[str]:
    """Counts the numbers that words of a language stand for."""
    return Counter(known[word.lower()] for word in words if word.lower() in known)


def _ones(text: str, language: str) -> int:
    """Counts the words of a text that stand for 1."""
    facts = ((ONES.get(language, {}).get(word.lower()), rest) for word, rest in _WORD_AND_NEXT.findall(text))
    return sum(fact in ("1", "before a word" if rest else "last") for fact, rest in facts)


def _is_value(text: str, begin: int) -> bool:
    """Returns True if a number of a text follows an equals sign or the like."""
    return text[max(0, begin - 9) : begin].rstrip().endswith(_EQUALS)


def without_addresses(text: str) -> str:
    """Puts spaces in the place of the URLs and e-mail addresses of a text."""
    return ITEM.sub(lambda item: " " * len(item[0]) if item.lastgroup in _ADDRESSES else item[0], text)


def _key(text: str) -> str:
    """Returns a number or word without its separators; a last one that is not before three digits becomes a point, and
    so do all in a list or date, such as 1,2,3,4. A minus is a hyphen."""
    *groups, last = _GROUP.findall(usual_digits(text))
    minus = "" if text[0].isalnum() else "-"
    point = "." if groups and last.isdecimal() and len(last) != 3 else ""
    between = "" if all(len(group) == 3 for group in groups[1:]) else point
    return f"{minus}{between.join(groups)}{point}{last}"
