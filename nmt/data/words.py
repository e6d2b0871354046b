"""The words of a line: between white space in tokenised text, or by a rule in ordinary text.

The rule is for all scripts and similar to Unicode's UAX 29:

    word      a run of letters, digits and the marks on them. An apostrophe, hyphen, full stop, middle dot or underscore
              between two of them belongs to it (don't, E-Mail, z.B, 3.14, l'eau), a comma only between digits (1,000),
              as the Arabic U+066B and U+066C
    sign      each other character by itself: punctuation, symbols. What belongs to one sign stays together: an emoji
              with its modifiers, variation selectors and what zero width joiners bind to it; the two letters of a flag
    unspaced  scripts without spaces: each character of Han and Hiragana, and each consonant of Thai, Lao, Khmer and
              Myanmar with its vowels and marks, is a word. Katakana, which mostly spells foreign words, is a run as
              letters are

White space is in no word, every other character in exactly one. Characters without a width of their own (joiners, soft
hyphens, marks of direction) belong to the preceding word or, at the beginning of a word, to what follows; a zero width
space begins a new word, as in SentencePiece.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""The offsets of the first character of a part of a text, and of the one after its last."""

Run: TypeAlias = tuple[str, ...]
"""One word, or neighbouring words of a script without spaces."""

# each class of characters has a letter, so that the rule is a regular expression over these letters
_SPACE = " "
_LETTER, _DIGIT, _UNSPACED, _SIGN, _SYMBOL, _FLAG = "L", "N", "U", "P", "S", "F"
_MARK, _JOINER, _STACKER, _PREPOSED, _BREAK = "M", "Z", "V", "O", "B"
_UNSPACED_SORTS = frozenset(_UNSPACED + _PREPOSED)
_LINK, _COMMA = "-", ","

_WORD = re.compile(
    r"""
    [MZVB]*                                               # what has nothing before it to go with
    (?:
        [LN][LNMZV]*(?:(?:-|(?<=N),(?=N))[LN][LNMZV]*)*
      | O?U(?:VU|[MZV])*
      | O[MZV]*
      | FF?[MZV]*
      | S(?:ZS|[MZV])*
      | [P,-][MZV]*
    )
    (?:B[MZVB]*(?=[ ]|\Z))?                               # what has nothing after it
    | [MZVB]+
    """,
    re.VERBOSE,
)

_LINKS = frozenset("'’-\u2010\u2011.·_")
_STACKERS = frozenset("\u1039\u17d2")
"""Characters that put the next letter under the preceding one."""
_PREPOSED_VOWELS = frozenset("\u0e40\u0e41\u0e42\u0e43\u0e44\u0ec0\u0ec1\u0ec2\u0ec3\u0ec4")
"""Thai and Lao vowels that are written before their consonant."""
_FOLLOWERS = frozenset("\u30fc\uff70\uff9e\uff9f\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3")
"""Characters whose category is letter, but which only follow others: long vowels and voicing of kana, Thai and Lao
vowels."""
_UNSPACED_RANGES = (
    (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303C), (0x3041, 0x309F),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x1B001, 0x1B11F), (0x1B150, 0x1B152), (0x20000, 0x3FFFF),
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),
)  # fmt: skip


class _Sorts(dict[int, str]):
    """The class of each code point, determined when it first occurs."""

    def __missing__(self, code: int) -> str:
        self[code] = kind = _sort(chr(code))
        return kind


_SORTS = _Sorts(
    {
        **dict.fromkeys(map(ord, _LINKS), _LINK),
        **dict.fromkeys(map(ord, _STACKERS), _STACKER),
        **dict.fromkeys(map(ord, _PREPOSED_VOWELS), _PREPOSED),
        **dict.fromkeys(map(ord, ",\u066b\u066c"), _COMMA),
        0x200B: _BREAK,
        0x200D: _JOINER,
    }
)
_BETWEEN_SPACES = re.compile(r"\S+")


def white_space_words(text: str) -> list[Span]:
    """Finds the words of a line that is tokenised by white space, like `str.split`."""
    return [match.span() for match in _BETWEEN_SPACES.finditer(text)]


def text_words(text: str) -> list[Span]:
    """Finds the words of ordinary text, in order."""
    return [match.span() for match in _WORD.finditer(text.translate(_SORTS))]


def lacks_spaces(lines: Sequence[str]) -> bool:
    """Returns True if most words of ordinary text are not separated by white space, as in Chinese or Thai."""
    return 3 * sum(len(white_space_words(line)) for line in lines) < sum(len(text_words(line)) for line in lines)


_KEPT = frozenset("#%&@§‰")
"""Characters that Unicode counts as punctuation, but that belong to the word beside them."""


@cache
def is_punctuation_mark(character: str) -> bool:
    """Returns True for punctuation, but not for a character that represents a word, such as %."""
    return unicodedata.category(character).startswith("P") and character not in _KEPT


def is_punctuation(text: str) -> bool:
    """Returns True if a text consists of one or more punctuation marks."""
    return bool(text) and all(map(is_punctuation_mark, text))


@lru_cache(1 << 16)
def is_unspaced(word: str) -> bool:
    """Returns True for a word of a script without spaces."""
    return not _UNSPACED_SORTS.isdisjoint(word.translate(_SORTS))


def words_and_runs(line: str, spans: Sequence[Span]) -> list[Run]:
    """Groups the words of a line: successive words of scripts without spaces form one run."""
    found: list[Run] = []
    if _UNSPACED_SORTS.isdisjoint(line.translate(_SORTS)):
        return [(line[begin:end],) for begin, end in spans]
    for (begin, end), (_, before) in zip(spans, [(0, -1), *spans], strict=False):
        word = line[begin:end]
        if begin == before and is_unspaced(word) and is_unspaced(found[-1][0]):
            found[-1] += (word,)
        else:
            found.append((word,))
    return found


def _sort(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if character.isspace():
        return _SPACE
    if category[0] == "M" or category == "Cf" or character in _FOLLOWERS or 0x1F3FB <= code <= 0x1F3FF:
        return _MARK
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _FLAG
    if category == "Nd":
        return _DIGIT
    if category[0] in "LN":
        return _UNSPACED if any(first <= code <= last for first, last in _UNSPACED_RANGES) else _LETTER
    return _SYMBOL if category == "So" else _SIGN


def successive(numbers: Iterable[int]) -> list[Span]:
    """Finds the runs of successive numbers in rising ones, such as indices of words: the first number of each run, and
    the one after its last."""
    runs: list[Span] = []
    for number in numbers:
        begin = runs.pop()[0] if runs and runs[-1][1] == number else number
        runs.append((begin, number + 1))
    return runs
