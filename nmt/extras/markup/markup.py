"""Tags, entities, URLs, e-mail addresses, numbers and placeholders: what of a text is not translated.

Tags are taken out, for a model that never saw any; the rest stays, for the model to see and copy.
``nmt.extras.markup.transfer`` puts all of it into the translation.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Literal

from nmt.data.sentences import Span

Kind = Literal["open", "close", "alone", "word"]
"""Of an item: a tag of a pair, a tag that stands alone, or what the model sees as part of the text."""

_ATTRIBUTE = (
    r"\s+(?:[^\s\"'<>/=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'=<>`]+)"
    r"|(?:async|autofocus|checked|controls|default|defer|disabled|hidden|loop|multiple|muted|open|readonly|required"
    r"|reversed|selected)(?![^\s/>]))"
)
_ITEM = re.compile(
    r"(?P<alone><!--.{0,2000}?-->|<!\[CDATA\[.{0,2000}?\]\]>|<\?.{0,2000}?\?>|<![A-Za-z][^<>]*>)"
    rf"|(?P<tag><(?P<slash>/?)(?P<name>[A-Za-z_][\w:.-]*)(?:{_ATTRIBUTE})*\s*(?P<empty>/?)>)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<url>(?<!\w)(?:(?:https?|ftp)://|www\.)(?:[^\s<>\"()&]|&amp;|&(?!\w+;)|\([^\s<>\"()]*\))*"
    r"(?:[^\s<>\"'.,;:!?()&\]»«“”’…]|\([^\s<>\"()]*\)))"
    r"|(?P<mail>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<placeholder>\{\{[^{}]*\}\}|[$%\#]?\{[^{}\s]*\}"
    r"|(?<![\w%])%(?:\(\w+\)|\d+\$)?[-+\#0]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa@](?![^\W_])|(?<!%)%%(?!%))"
    r"|(?P<number>(?<![\w.,])(?:(?<![^\s(])[-+−])?\d+(?:[.,:/'’\u00a0\u2009\u202f-]\d+)*(?![.,:/'’-]?\w)%?)",
    re.DOTALL,
)

_BLOCKS = frozenset(
    """
    address article aside blockquote body caption dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6
    head header hr html legend li main nav ol option p pre section table tbody td tfoot th thead title tr ul
    """.split()  # noqa: SIM905
)
"""Elements of HTML whose borders no sentence crosses."""

_LINE_BREAKS = frozenset(("br", "wbr"))


@dataclass(frozen=True)
class Item:
    """Something that is not translated.

    Attributes:
        text: As it is written.
        kind: What it is.
        begin, end: Where it stands in the plain text; for all but words the same place.
        partner: Of a tag of a pair the index of the other one; else -1.
        space_before, space_after: Whether there is white space, or nothing, beside it and the inline tags around it.
        leans: On the word before it, where it is next to one, or on the one after it.
        divides: Whether words beside it are apart even without white space, as beside ``<br>``.
    """

    text: str
    kind: Kind
    begin: int
    end: int
    partner: int = -1
    space_before: bool = True
    space_after: bool = True
    leans: Literal["left", "right", "not"] = "not"
    divides: bool = False


@dataclass(frozen=True)
class Marked:
    """A text without its markup.

    Attributes:
        text: What is left, for a model.
        items: What was taken out or is to be kept, in order.
        borders: Places in the text that no sentence crosses, in order.
    """

    text: str
    items: tuple[Item, ...]
    borders: tuple[int, ...] = ()

    @property
    def kept(self) -> tuple[Span, ...]:
        """The parts of the text that stay as they are."""
        return tuple((item.begin, item.end) for item in self.items if item.kind == "word")


def extract(text: str, stand_in: str | None = None) -> Marked:
    """Takes a text apart. An entity that stands for a letter or digit is spelling: it becomes that character. An
    opening tag without its end, and an end without its beginning, stand alone. Words kept that touch are one.

    ``stand_in`` is what a model sees for a URL, an e-mail address or a placeholder, with what touches them; for numbers
    but 1 it then sees 2, 3 and so on to 9, in turn. It sees what touches a letter or digit as it is, and so all where
    ``stand_in`` is None."""
    plain = _Plain()
    items: list[Item] = []
    borders: list[int] = []
    found = _found(text)
    digits = cycle("23456789")
    last = 0
    for each in found:
        plain.add(text[last : each.begin], after_tag=bool(items) and items[-1].kind != "word")
        last = each.end
        seen = each.seen
        if stand_in is not None and each.stands_for is not None and not _touches(text, each):
            seen = stand_in if each.stands_for == "name" else next(digits)
        if each.kind is not None:
            written = text[each.begin : each.end]
            items.append(Item(written, each.kind, plain.length, plain.length + len(seen), divides=each.divides))
        if each.name in _BLOCKS:
            borders.append(plain.length)
        plain.add(seen)
        if each.divides and _is_glued(text, each):
            plain.add(" ")
    plain.add(text[last:], after_tag=bool(items) and items[-1].kind != "word")
    found = [each for each in found if each.kind is not None]
    spaced = _with_spaces(_paired(items, found), found, text)
    return Marked("".join(plain.parts), spaced, tuple(dict.fromkeys(borders)))


@dataclass(frozen=True)
class _Found:
    """What is no plain text, as it was found in the text as written.

    Attributes:
        begin, end: Where.
        kind: None for a letter that is written as an entity.
        seen: What a model sees of it.
        name: Of a tag, in small letters.
        divides: See ``Item``.
        stands_for: What a model may see instead; None: nothing else.
    """

    begin: int
    end: int
    kind: Kind | None
    seen: str = ""
    name: str = ""
    divides: bool = False
    stands_for: Literal["name", "number"] | None = None


class _Plain:
    """Text that grows."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0

    def add(self, text: str, *, after_tag: bool = False) -> None:
        """White space on both sides of a tag is white space once."""
        if after_tag and self.parts and self.parts[-1][-1].isspace():
            text = text.lstrip()
        if text:
            self.parts.append(text)
            self.length += len(text)


def _found(text: str) -> list[_Found]:
    """All that is no plain text, in order; neighbouring words in one."""
    found: list[_Found] = []
    for match in _ITEM.finditer(text):
        each = _read(match)
        if found and each.kind == "word" == found[-1].kind and found[-1].end == each.begin:
            last = found.pop()
            is_name = "name" in (last.stands_for, each.stands_for)
            seen = last.seen + each.seen
            each = replace(each, begin=last.begin, seen=seen, stands_for="name" if is_name else None)
        found.append(each)
    return found


def _read(match: re.Match[str]) -> _Found:
    begin, end = match.span()
    if match["entity"]:
        meant = html.unescape(match["entity"])
        if meant.isalnum():
            return _Found(begin, end, None, meant)
        if meant.isspace():
            return _Found(begin, end, "alone", divides=True)
        if len(meant) == 1 and unicodedata.category(meant) in ("Cf", "Cc"):
            return _Found(begin, end, "alone")
        return _Found(begin, end, "word", meant)
    if match["tag"]:
        paired: Kind = "close" if match["slash"] else "open"
        name = match["name"].lower()
        return _Found(begin, end, "alone" if match["empty"] else paired, name=name, divides=name in _LINE_BREAKS)
    if match["alone"]:
        return _Found(begin, end, "alone")
    if match["number"]:
        return _Found(begin, end, "word", match.group(), stands_for=None if match.group() == "1" else "number")
    return _Found(begin, end, "word", match.group(), stands_for="name")


def _is_glued(text: str, each: _Found) -> bool:
    """Whether there is neither white space nor an end of the text on either side."""
    around = text[max(each.begin - 1, 0) : each.begin], text[each.end : each.end + 1]
    return all(side and not side.isspace() for side in around)


def _touches(text: str, each: _Found) -> bool:
    return text[max(each.begin - 1, 0) : each.begin].isalnum() or text[each.end : each.end + 1].isalnum()


def _paired(items: Sequence[Item], found: Sequence[_Found]) -> list[Item]:
    """Each end with the last open beginning of its name; what is left over stands alone."""
    paired = list(items)
    opened: list[int] = []
    for place, item in enumerate(items):
        if item.kind == "open":
            opened.append(place)
        elif item.kind == "close":
            name = found[place].name
            beginning = next((each for each in reversed(opened) if found[each].name == name), None)
            if beginning is not None:
                del opened[opened.index(beginning) :]
                paired[beginning] = replace(items[beginning], partner=place)
                paired[place] = replace(item, partner=beginning)
    return [
        replace(item, kind="alone") if item.kind in ("open", "close") and item.partner < 0 else item for item in paired
    ]


def _with_spaces(items: Sequence[Item], found: Sequence[_Found], text: str) -> tuple[Item, ...]:
    """The items with what stands beside them and the tags of pairs around them. None leans over a block's border."""
    before = [each.begin == 0 or text[each.begin - 1].isspace() for each in found]
    after = [each.end == len(text) or text[each.end].isspace() for each in found]
    alone_before, alone_after = before.copy(), after.copy()
    for place in range(1, len(items)):
        if found[place - 1].end == found[place].begin and items[place - 1].kind in ("open", "close"):
            is_border = found[place - 1].name in _BLOCKS
            before[place] = before[place - 1] and not is_border
            alone_before[place] = alone_before[place - 1] or is_border
    for place in reversed(range(len(items) - 1)):
        if found[place].end == found[place + 1].begin and items[place + 1].kind in ("open", "close"):
            is_border = found[place + 1].name in _BLOCKS
            after[place] = after[place + 1] and not is_border
            alone_after[place] = alone_after[place + 1] or is_border
    return tuple(
        replace(
            item,
            space_before=before[place],
            space_after=after[place],
            leans="not" if item.divides else _leaning(alone_before[place], alone_after[place]),
        )
        for place, item in enumerate(items)
    )


def _leaning(alone_before: bool, alone_after: bool) -> Literal["left", "right", "not"]:
    if alone_before:
        return "not" if alone_after else "right"
    return "left"
