"""Tags, entities, URLs, e-mail addresses, numbers and placeholders: what of a text is not translated.

Tags are taken out, for a model that never saw any; the rest stays, for the model to see and copy.
``nmt.alignment.transfer`` puts all of it into the translation.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    r"(?P<alone><!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<![A-Za-z][^<>]*>)"
    rf"|(?P<tag><(?P<slash>/?)(?P<name>[A-Za-z_][\w:.-]*)(?:{_ATTRIBUTE})*\s*(?P<empty>/?)>)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<url>(?<!\w)(?:(?:https?|ftp)://|www\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]»«“”’…])"
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
        begin, end: Where it stands in the plain text; for all but words no wider than a gap.
        partner: Of a tag of a pair the index of the other one; else -1.
        space_before, space_after: Whether there is white space, or nothing, beside it and the tags around it.
        divides: Whether words beside it are apart even without white space, as beside ``<br>``.
    """

    text: str
    kind: Kind
    begin: int
    end: int
    partner: int = -1
    space_before: bool = True
    space_after: bool = True
    divides: bool = False

    @property
    def leans(self) -> Literal["left", "right", "not"]:
        """On the word before it, the one after it, or on none."""
        if self.divides or (self.space_before and self.space_after):
            return "not"
        return "right" if self.space_before else "left"


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


def extract(text: str) -> Marked:
    """Takes a text apart. An entity that stands for a letter or digit is spelling: it becomes that character. An
    opening tag without its end, and an end without its beginning, stand alone."""
    plain = _Plain()
    items: list[Item] = []
    found: list[re.Match[str]] = []
    borders: list[int] = []
    last = 0
    for match in _ITEM.finditer(text):
        plain.add(text[last : match.start()], after_tag=bool(items) and items[-1].kind != "word")
        last = match.end()
        kind, seen, divides = _read(match)
        if kind is not None:
            items.append(Item(match.group(), kind, plain.length, plain.length + len(seen), divides=divides))
            found.append(match)
        if _is_block(match):
            borders.append(plain.length)
        plain.add(seen)
        if divides and _is_glued(text, match):
            plain.add(" ")
    plain.add(text[last:], after_tag=bool(items) and items[-1].kind != "word")
    spaced = _with_spaces(_paired(items, found), found, text)
    return Marked("".join(plain.parts), spaced, tuple(dict.fromkeys(borders)))


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


def _read(match: re.Match[str]) -> tuple[Kind | None, str, bool]:
    """Of what was found its kind, None for text, what the model sees of it, and whether it divides words."""
    if match["entity"]:
        meant = html.unescape(match["entity"])
        if meant.isalnum():
            return None, meant, False
        if meant.isspace():
            return "alone", "", True
        if len(meant) == 1 and unicodedata.category(meant) in ("Cf", "Cc"):
            return "alone", "", False
        return "word", meant, False
    if match["tag"]:
        paired: Kind = "close" if match["slash"] else "open"
        name = match["name"].lower()
        return ("alone" if match["empty"] else paired), "", name in _LINE_BREAKS
    if match["alone"]:
        return "alone", "", False
    return "word", match.group(), False


def _is_block(match: re.Match[str]) -> bool:
    return match["tag"] is not None and match["name"].lower() in _BLOCKS


def _is_glued(text: str, match: re.Match[str]) -> bool:
    """Whether there is neither white space nor an end of the text on either side."""
    around = text[max(match.start() - 1, 0) : match.start()], text[match.end() : match.end() + 1]
    return all(side and not side.isspace() for side in around)


def _paired(items: Sequence[Item], found: Sequence[re.Match[str]]) -> list[Item]:
    """Each end with the last open beginning of its name; what is left over stands alone."""
    paired = list(items)
    opened: list[int] = []
    for place, item in enumerate(items):
        if item.kind == "open":
            opened.append(place)
        elif item.kind == "close":
            name = found[place]["name"].lower()
            beginning = next((each for each in reversed(opened) if found[each]["name"].lower() == name), None)
            if beginning is not None:
                del opened[opened.index(beginning) :]
                paired[beginning] = replace(items[beginning], partner=place)
                paired[place] = replace(item, partner=beginning)
    return [
        replace(item, kind="alone") if item.kind in ("open", "close") and item.partner < 0 else item for item in paired
    ]


def _with_spaces(items: Sequence[Item], found: Sequence[re.Match[str]], text: str) -> tuple[Item, ...]:
    """The items with what stands beside them and the tags of pairs around them; a block's border is white space."""
    before = [match.start() == 0 or text[match.start() - 1].isspace() for match in found]
    after = [match.end() == len(text) or text[match.end()].isspace() for match in found]
    for place in range(1, len(items)):
        if found[place - 1].end() == found[place].start() and items[place - 1].kind in ("open", "close"):
            before[place] = before[place - 1] or _is_block(found[place - 1])
    for place in reversed(range(len(items) - 1)):
        if found[place].end() == found[place + 1].start() and items[place + 1].kind in ("open", "close"):
            after[place] = after[place + 1] or _is_block(found[place + 1])
    return tuple(
        replace(item, space_before=left, space_after=right)
        for item, left, right in zip(items, before, after, strict=True)
    )
