"""Files that have a text and its translation side by side, as programs use them for their messages."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from nmt.extras.documents.files.document import MARKUP, Document, Span, TextDocument, as_markup
from nmt.extras.documents.files.inline import SPACES, Kind, Piece, cut, spans_of
from nmt.extras.documents.markup import placeholders

MOST_NESTED = 20
"""Maximum depth of the arguments of an ICU message."""

LONG_LINE = 50
"""Number of characters from which on a line without a full stop is one that was broken."""

_HELD_OR_TAG = re.compile(
    # marks of keys such as "_File", placeholders that ``placeholders`` does not know, and options of commands
    r"(?<!\w)(?:&amp;|_|&)(?=[A-Za-z])(?!\w+;)|"
    r"%<\w+>\w?|\{\s*[\w.]+(?:\s*,[^{}]*|\s+)\}|\{\s+[\w.]+\}|(?<!\S)--[A-Za-z][\w-]*(?:=\w+)?"
    r"|<(?P<slash>/?)(?P<name>[A-Za-z][\w:-]*)(?:\s[^<>]*)?>|<!--[^<>]*-->"
)

_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?P<kind>plural|select|selectordinal)\s*,(?:\s*offset:\d+)?\s*")
_SELECTOR = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
_SPECIAL = re.compile(r"[{}#]|''|'[{}#|]")
_BREAK = re.compile(r"\r?\n[ \t]*")
_ENDS = re.compile(r"[^\w,\-–—/&)]\s*\Z")


@dataclass(frozen=True)
class Unit:
    """A text and where its translation stands.

    Attributes:
        begin, end: The characters of the file that the translation replaces.
        sources: The text; its singular and its plural, if it has both.
        spell: Function that spells the translations of the sources as the format needs it.
    """

    begin: int
    end: int
    sources: Sequence[TextDocument]
    spell: Callable[[Sequence[str]], str]


class BilingualDocument(Document):
    """A file of units. One of which nothing was translated, or whose translation lacks a placeholder, stays as it is:
    without a translation."""

    def __init__(self, text: str, units: Sequence[Unit], encoding: str) -> None:
        """``encoding`` is how the text is written."""
        self._text, self._units, self._encoding = text, units, encoding
        self.blocks = [block for unit in units for source in unit.sources for block in source.blocks]

    def write(self, translations: Sequence[str]) -> bytes:
        """See ``Document.write``. A character that the encoding lacks is written as a reference of XML."""
        return self.text(translations).encode(self._encoding, "xmlcharrefreplace")

    def text(self, translations: Sequence[str]) -> str:
        """Returns the text of the file with its translations."""
        parts, begin, remaining = list[str](), 0, iter(translations)
        for unit in self._units:
            texts = [list(islice(remaining, len(source.blocks))) for source in unit.sources]
            pairs = [
                (block.text, translation)
                for source, found in zip(unit.sources, texts, strict=True)
                for block, translation in zip(source.blocks, found, strict=True)
            ]
            parts.append(self._text[begin : unit.begin])
            if any(text != found for text, found in pairs) and all(
                _held(text) == _held(found) for text, found in pairs
            ):
                written = [source.text(found) for source, found in zip(unit.sources, texts, strict=True)]
                parts.append(unit.spell(written))
            else:
                parts.append(self._text[unit.begin : unit.end])
            begin = unit.end
        return "".join([*parts, self._text[begin:]])


def _held(marked: str) -> list[str]:
    """Returns what a translation has as often as its source."""
    return sorted([*placeholders(marked), *re.findall("[{}]", marked)])


def message_spans(
    text: str,
    pieces: Sequence[Piece],
    place: str,
    *,
    has_lines: bool = True,
    has_tags: bool = False,
    spell_text: Callable[[str], str] = str,
) -> list[Span]:
    """Returns the spans of a message: those of its branches and of what is around them if it is one of ICU, and those
    of its lines if ``has_lines``. A message of ICU that is not well-formed has none. If ``has_tags``, tags of HTML are
    in the text."""
    if not pieces:
        return []
    # what is not text has no braces
    seen = "".join(
        text[piece.begin : piece.end] if piece.kind == "text" else "\0" * (piece.end - piece.begin) for piece in pieces
    )
    begin, is_icu, found = pieces[0].begin, bool(_CHOICE.search(seen)), list[Span]()
    try:
        branches = _branches(seen) if is_icu else [_Branch(0, len(seen), [])]
    except ValueError:
        return []
    begins = [piece.begin for piece in pieces]
    for branch in branches:
        clipped = list[Piece]()
        borders = [branch.begin, *(border for held in branch.held for border in held), branch.end]
        for index, (first, last) in enumerate(pairwise(border + begin for border in borders)):
            if index % 2:
                clipped.append(Piece("alone", first, last))
                continue
            for piece in pieces[max(bisect_right(begins, first) - 1, 0) : bisect_left(begins, last)]:
                if piece.kind != "text":
                    clipped.append(piece)
                else:
                    clipped += _text_pieces(text, max(piece.begin, first), min(piece.end, last), has_tags)
        for group in _paragraphs(text, clipped, has_lines):
            for span in filter(_has_words, spans_of(group, place)):
                breaks = [
                    _BREAK.match(text, piece.begin)[0]  # type: ignore[index]
                    for piece in group
                    if piece.name == "break" and span.begin < piece.begin < span.end
                ]
                block = replace(span.block, is_apart=bool(found))
                found.append(replace(span, block=block, spell=_spelling(breaks, is_icu), spell_text=spell_text))
    return found


def _has_words(span: Span) -> bool:
    words = MARKUP.sub("", span.block.text)
    for placeholder in placeholders(words):
        words = words.replace(placeholder, "", 1)
    return any(map(str.isalnum, words))


def _text_pieces(text: str, begin: int, end: int, has_tags: bool) -> Iterator[Piece]:
    """Divides a part of a text into text and what is not translated."""
    for match in [*_HELD_OR_TAG.finditer(text, begin, end), None]:
        if match and match.group()[0] == "<" and not has_tags:
            continue
        last = match.start() if match else end
        if begin < last:
            yield Piece("text", begin, last, as_markup(text[begin:last]))
        if match:
            kind: Kind = "alone" if not match["name"] else "close" if match["slash"] else "open"
            yield Piece(kind, *match.span(), name=match["name"] or "")
            begin = match.end()


def _paragraphs(text: str, pieces: Sequence[Piece], has_lines: bool) -> Iterator[list[Piece]]:
    """Divides pieces into lines. Those of a paragraph that was broken stay together."""
    if not has_lines:
        yield list(pieces)
        return
    lines, breaks = [list[Piece]()], list[Piece]()
    for piece in pieces:
        if piece.kind != "text":
            lines[-1].append(piece)
            continue
        for match in re.compile(r"\n|[^\n]+").finditer(text, piece.begin, piece.end):
            if match.group() == "\n":
                breaks.append(Piece("text", *match.span(), "\n", "break"))
                lines.append([])
            else:
                lines[-1].append(Piece("text", *match.span(), as_markup(match.group())))
    group = lines[0]
    for line, after, broken in zip(lines, lines[1:], breaks, strict=False):
        # a thing may end a line that goes on, but begins one of its own
        texts = ("".join(piece.text or thing for piece in each) for each, thing in ((line, "x"), (after, "*")))
        if _goes_on(*(each.strip(SPACES) for each in texts)):
            group += [broken, *after]
        else:
            yield group
            group = after
    yield group


def _goes_on(line: str, after: str) -> bool:
    """Returns True if a line was broken before the next one, which has a sentence's rest."""
    is_long = len(line) >= LONG_LINE and after[:1].isalnum()
    return bool(line) and not _ENDS.search(line) and (is_long or after[:1].islower())


def _spelling(breaks: Sequence[str], is_icu: bool) -> Callable[[str], str]:
    """Returns the function that puts line breaks into a translation, and writes no apostrophe with which ICU quotes."""

    def spell(translation: str) -> str:
        text = re.sub(r"'(?=[<{}#|]|\Z)", "’", translation) if is_icu else translation
        lines = cut(text, [1] * (len(breaks) + 1)) if breaks else [text]
        return "".join(part for pair in zip(["", *breaks], lines, strict=True) for part in pair)

    return spell


@dataclass(frozen=True)
class _Branch:
    """A text in a message of ICU: its characters, and those in it that are not translated."""

    begin: int
    end: int
    held: list[tuple[int, int]]


def _branches(text: str) -> list[_Branch]:
    """Reads a message of ICU. Raises ValueError if it is not well-formed."""
    found = list[_Branch]()
    if _read_branch(text, 0, 0, False, found) != len(text):
        raise ValueError
    return sorted(found, key=lambda branch: branch.begin)


def _read_branch(text: str, begin: int, depth: int, is_plural: bool, found: list[_Branch]) -> int:
    """Reads a text up to its closing brace, whose offset is returned, or to the end."""
    branch, offset = list[tuple[int, int]](), begin
    while (match := _SPECIAL.search(text, offset)) and match.group() != "}":
        offset = match.end()
        if match.group() == "{":
            offset = _read_argument(text, match.start(), depth, is_plural, found, branch)
        elif match.group() != "''" and match.group()[0] == "'":  # up to the next single apostrophe
            closing = re.compile(r"(?:[^']|'')*'?").match(text, offset)
            offset = closing.end() if closing else offset
            branch.append((match.start(), offset))
        elif match.group() == "#" and is_plural:
            branch.append(match.span())
    end = match.start() if match else len(text)
    if bool(depth) != bool(match):
        raise ValueError
    found.append(_Branch(begin, end, branch))
    return end


def _read_argument(
    text: str, begin: int, depth: int, is_plural: bool, found: list[_Branch], held: list[tuple[int, int]]
) -> int:
    """Reads an argument and its branches, and returns where it ends."""
    choice = _CHOICE.match(text, begin)
    if choice is None:
        simple = re.compile(r"\{[^{}]*\}").match(text, begin)
        if simple is None:
            raise ValueError
        return simple.end()
    if depth == MOST_NESTED:
        raise ValueError
    offset = choice.end()
    while selector := _SELECTOR.match(text, offset):
        is_number = choice["kind"] != "select" or is_plural
        offset = _read_branch(text, selector.end(), depth + 1, is_number, found) + 1
    closing = re.compile(r"\s*\}").match(text, offset)
    if closing is None:
        raise ValueError
    held.append((begin, closing.end()))
    return closing.end()
