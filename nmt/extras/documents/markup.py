"""Tags, entities, URLs, e-mail addresses, numbers and placeholders: the parts of a text that are not translated.

Tags are removed, for models are trained without them; the rest stays, for the model to copy.
``nmt.extras.documents.transfer`` puts all of them into the translation.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Literal

from nmt.data.words import Span

Kind = Literal["open", "close", "alone", "word"]
"""Kinds of items: a tag of a pair, a tag without a partner, a part of the text that the model reads."""

DIGITS = "23456789"
"""The digits that may stand for a number; 1 is often an article in the translation."""

DEEPEST = 100
"""Maximum depth of tags in each other; tags within have no partner."""

_ATTRIBUTE = (
    r"\s+(?:[^\s\"'<>/=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|&quot;(?:(?!&quot;)[^\"<>])*+&quot;|(?:(?!&(?:amp;)?gt;)[^\s\"'=<>`])+)"
    r"|(?:async|autofocus|checked|controls|default|defer|disabled|hidden|loop|multiple|muted|open|readonly|required"
    r"|reversed|selected)(?![^\s/>]))"
)
_DIGITS = r"(?:(?:\d++\s?)?+[¼-¾⅐-⅞]|\d++(?:[.,:/'’\u066b\u066c-]\d++)*+)"
_SPACED = rf"{_DIGITS}(?:[\u00a0\u2009\u202f]{_DIGITS})*"
_PICTURE = r"[←-⇿⌀-➿⬀-⯿\U0001F000-\U0001FAFF][\uFE0E\uFE0F\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F]*+"
ITEM = re.compile(
    # each kind ends where the next one of its kind begins, so that reading does not take quadratic time
    r"(?P<alone><!--(?:(?!<!--|-->).)*+-->|<!\[CDATA\[(?:(?!<!\[CDATA\[|\]\]>).)*+\]\]>|<\?(?:(?!<\?|\?>).)*+\?>"
    r"|\{%(?:(?!\{%|%\}).)*+%\}|\{#(?:(?!\{#|#\}).)*+#\}|<%(?![=<])(?:(?!<%|%>).)*+%>"
    r"|&lt;%(?!=)(?:(?!&lt;%|%&gt;).)*+%&gt;|<![A-Za-z][^<>]*+>"
    r"|(?<=\w)<(?P<raised>su[bp])>[^\w<>]{0,3}\d{1,4}[^\w<>]{0,3}</(?P=raised)>(?!\w))"  # a note
    r"|(?P<formula>(?<!\w)[^\W_]{1,9}(?:<(?P<index>su[bp])>[\w+−-]{1,9}</(?P=index)>)+\w)"
    rf"|(?P<tag>(?:<|(?P<escaped>&(?:amp;)?lt;(?=/?[a-z])))(?P<slash>/?)(?P<name>[A-Za-z_][\w:.-]*)(?:{_ATTRIBUTE})*\s*(?P<empty>/?)"
    r"(?(escaped)&(?:amp;)?gt;|>))"
    r"|(?P<placeholder>\{\{\{[^{}]*\}\}\}|\{\{[^{}]*\}\}|\{\w++,\s*+\w++(?:,(?:[^{}]|\{[^{}]*\})*+)?\}"
    r"|<%=(?:(?!<%|%>).)*+%>|&lt;%=(?:(?!&lt;%|%&gt;).)*+%&gt;|[$%\#]?\{[^{}\s]*\}"
    r"|(?<![\w%])(?:%(?:\(\w+\)|\d++\$)?[-+\#0]*+(?:\d*+|\*)(?:\.(?:\d++|\*))?+(?:hh?|ll?|[jztL])?[A-Za-z@])++(?![^\W_])"
    r"|(?<![\w%])%L?\d{1,2}(?![\w%]|[.,]\d)|(?<!%)%%(?!%)"
    r"|(?<![\w%])%[A-Z_]{2,}+%(?![\w%])|(?<![\w$])\$[A-Za-z_]\w*+)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<url>(?<!\w)(?:(?:https?|ftp)://|www\.)(?:[^\s<>\"()&]|&amp;|&(?!\w+;)|\([^\s<>\"()]*\))*"
    r"(?:[^\s<>\"'.,;:!?()&\]»«“”’…]|\([^\s<>\"()]*\)))"
    r"|(?P<mail>(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]+)+)"
    r"|(?P<emoji>[\U0001F1E6-\U0001F1FF]{2}|[0-9#*]\uFE0F?\u20E3"
    rf"|{_PICTURE}(?:\u200D{_PICTURE})*+)"
    rf"|(?P<number>(?<![\w.,])(?:(?<![^\s(])[-+−])?{_SPACED}(?:–{_SPACED})?(?![.,:/'’–-]?\w)[%٪％]?)"
    r"|(?P<none>(?<![\w.,])(?:\d++[.,:/'’–-](?=\d))++)",  # digits before a letter, skipped at once
    re.DOTALL,
)

BLOCKS = frozenset(
    """
    address article aside blockquote body caption dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6
    head header hr html legend li main nav ol option p pre section table tbody td tfoot th thead title tr ul
    """.split()  # noqa: SIM905
)
"""Elements of HTML whose borders sentences do not cross."""

_LINE_BREAKS = frozenset(("br", "wbr"))


@dataclass(frozen=True)
class Item:
    """A part of a text that is not translated.

    Attributes:
        text: Its text.
        kind: Its kind.
        begin, end: Its span in the plain text, which is empty for all kinds but "word".
        partner: The index of the other tag of its pair, or -1.
        space_before, space_after: True if white space, or an end of the text, is beside it and the inline tags around
            it.
        leans: "left" if a word is directly before it, "right" if a word is only directly after it.
        divides: True if words beside it are separate even without white space, as beside ``<br>``.
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
        text: The plain text for a model.
        items: The parts that were removed or are kept, in order.
        borders: Offsets in the text that sentences do not cross, in order.
    """

    text: str
    items: tuple[Item, ...]
    borders: tuple[int, ...] = ()

    @property
    def kept(self) -> tuple[Span, ...]:
        """Spans of the text that do not change."""
        return tuple((item.begin, item.end) for item in self.items if item.kind == "word")


def extract(text: str, stand_in: str | None = None) -> Marked:
    """Separates a text from its markup. An entity for a letter or digit becomes that character. An opening tag without
    its closing tag, and the reverse, have no partner. Adjacent items of kind "word" become one.

    The model reads ``stand_in`` in place of a URL, an e-mail address or a placeholder, and of items adjacent to them;
    in place of numbers except 1 it reads 2, 3 and so on to 9, in turn. Items beside a letter or digit, and all items if
    ``stand_in`` is None, do not change."""
    plain, items, borders = _Plain(), list[Item](), list[int]()
    matches, digits, last = _matches(text), cycle(DIGITS), 0
    for match in matches:
        plain.add(text[last : match.begin])
        last = match.end
        seen, before, after = match.seen, text[max(match.begin - 1, 0) : match.begin], text[match.end : match.end + 1]
        if stand_in is not None and match.stands_for is not None and not (before.isalnum() or after.isalnum()):
            seen = stand_in if match.stands_for == "name" else next(digits)
        if match.kind is not None:
            written = text[match.begin : match.end]
            items.append(Item(written, match.kind, plain.length, plain.length + len(seen), divides=match.divides))
        if match.name in BLOCKS:
            borders.append(plain.length)
        plain.add(seen)
        if match.divides and before.strip() and after.strip():
            plain.add(" ")
    plain.add(text[last:])
    matches = [match for match in matches if match.kind is not None]
    return Marked("".join(plain.parts), _with_spaces(items, matches, text), tuple(dict.fromkeys(borders)))


def tags_and_placeholders(text: str) -> list[str]:
    """Finds the tags in a text, and the placeholders of programs such as ``%s`` and ``{name}``."""
    return [match.group() for match in ITEM.finditer(text) if match["tag"] or match["placeholder"]]


@dataclass(frozen=True)
class _Match:
    """A match of markup in the original text.

    Attributes:
        begin, end: Its span.
        kind: None for a letter that is written as an entity.
        seen: The text that the model reads.
        name: The name of a tag, in lower case.
        divides: See ``Item``.
        stands_for: The kind of stand-in that the model may read instead, or None.
    """

    begin: int
    end: int
    kind: Kind | None
    seen: str = ""
    name: str = ""
    divides: bool = False
    stands_for: Literal["name", "number"] | None = None


class _Plain:
    """The plain text while it is built."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0

    def add(self, text: str) -> None:
        """Appends text. If there is white space on both sides of a tag, which adds no text itself, it is kept once."""
        if self.parts and self.parts[-1][-1].isspace():
            text = text.lstrip()
        if text:
            self.parts.append(text)
            self.length += len(text)


def _matches(text: str) -> list[_Match]:
    """Yields all matches, in order; adjacent ones of kind "word" become one."""
    matches: list[_Match] = []
    for regex_match in (match for match in ITEM.finditer(text) if not match["none"]):
        current = _read(regex_match)
        if matches and current.kind == "word" == matches[-1].kind and matches[-1].end == current.begin:
            last = matches.pop()
            is_name = "name" in (last.stands_for, current.stands_for)
            seen = last.seen + current.seen
            current = replace(current, begin=last.begin, seen=seen, stands_for="name" if is_name else None)
        matches.append(current)
    return matches


def _read(match: re.Match[str]) -> _Match:
    begin, end = match.span()
    if match["entity"]:
        meant = html.unescape(match["entity"])
        if meant.isalnum():
            return _Match(begin, end, None, meant)
        if meant.isspace() or unicodedata.category(meant[0]) in ("Cf", "Cc"):
            return _Match(begin, end, "alone", divides=meant.isspace())
        return _Match(begin, end, "word", meant)
    if match["tag"]:
        paired: Kind = "close" if match["slash"] else "open"
        name = match["name"].lower()
        return _Match(begin, end, "alone" if match["empty"] else paired, name=name, divides=name in _LINE_BREAKS)
    if match["alone"]:
        return _Match(begin, end, "alone")
    if match["number"]:
        return _Match(begin, end, "word", match.group(), stands_for=None if match.group() == "1" else "number")
    return _Match(begin, end, "word", match.group(), stands_for="name")


def partners_of(tags: Iterable[tuple[str | None, str]]) -> dict[int, int]:
    """Pairs the end of each element with the last beginning of its name, and the reverse; the others have none. Tags
    are given by their kinds and names, as are other things that have no partner."""
    opened, names, partners = list[tuple[int, str]](), Counter[str](), dict[int, int]()
    for index, (kind, name) in enumerate(tags):
        if kind == "open":
            opened.append((index, name))
            names[name] += 1
        elif kind == "close" and names[name]:
            while (beginning := opened.pop())[1] != name:
                names[beginning[1]] -= 1
            names[name] -= 1
            partners |= {beginning[0]: index, index: beginning[0]}
    return partners


def _with_spaces(items: Sequence[Item], matches: Sequence[_Match], text: str) -> tuple[Item, ...]:
    """Adds the partners of tags, unless they are nested too deeply, and the white space beside items and their inline
    tags. No item leans over the border of a block."""
    partners, depth = dict[int, int](), 0
    for index, partner in sorted(partners_of((match.kind, match.name) for match in matches).items()):
        depth -= index > partner
        if depth < DEEPEST:
            partners[index] = partner
        depth += index < partner
    before = [match.begin == 0 or text[match.begin - 1].isspace() for match in matches]
    after = [match.end == len(text) or text[match.end].isspace() for match in matches]
    edge_before, edge_after = before.copy(), after.copy()
    adjacent = [(index - 1, index) for index in range(1, len(items)) if matches[index - 1].end == matches[index].begin]
    reverse = [(index, last) for last, index in reversed(adjacent)]
    for spaces, edges, pairs in ((before, edge_before, adjacent), (after, edge_after, reverse)):
        for tag, index in pairs:
            if tag in partners:
                is_border = matches[tag].name in BLOCKS
                spaces[index] = spaces[tag] and not is_border
                edges[index] = edges[tag] or is_border
    return tuple(
        replace(
            item,
            kind=item.kind if item.kind == "word" or index in partners else "alone",
            partner=partners.get(index, -1),
            space_before=before[index],
            space_after=after[index],
            leans="not" if item.divides else _leaning(edge_before[index], edge_after[index]),
        )
        for index, item in enumerate(items)
    )


def _leaning(edge_before: bool, edge_after: bool) -> Literal["left", "right", "not"]:
    return "left" if not edge_before else "not" if edge_after else "right"
