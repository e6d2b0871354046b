"""PO files of GNU gettext.

A message without a translation gets one: as many plural forms as the header says. Translations that are there,
comments, flags and obsolete messages stay, and a message that is fuzzy stays fuzzy. A file whose encoding lacks a
character of a translation becomes UTF-8, and its header says so.
"""

from __future__ import annotations

import gettext
import re
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from nmt.extras.documents.files.bilingual import BilingualDocument, Unit, message_spans
from nmt.extras.documents.files.document import DamagedFile, Document, TextDocument, spell_as
from nmt.extras.documents.files.inline import Piece
from nmt.extras.documents.markup import placeholders

WIDTH = 79
"""Columns of a line; a file that has longer ones does not break lines."""

_LEXEME = re.compile(
    r'#[^\n]*|\s+|(?P<word>msgctxt|msgid_plural|msgid|msgstr|domain)(?:\s*\[(?P<form>\d{1,3})\])?'
    r'|(?P<string>"(?:[^"\\\n]|\\[^\n])*")'
)  # fmt: skip
_CHARSET = re.compile(r"(Content-Type:[^\"\n]*charset=)([\w.:-]+)")
_PLURALS = re.compile(r"^Plural-Forms:\s*nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;\n]+)", re.MULTILINE)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,8}|.)")
_ESCAPES = {"\n": "n", "\t": "t", "\r": "r", "\a": "a", "\b": "b", "\f": "f", "\v": "v", "\\": "\\", '"': '"'}
_CHARACTERS = {letter: character for character, letter in _ESCAPES.items()}


@dataclass
class _Strings:
    """A keyword and the strings after it, by their characters in the file."""

    begin: int
    end: int
    strings: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.strings)


@dataclass
class _Message:
    """The strings of a message by their keywords, and its translations by their plural forms."""

    parts: dict[str, _Strings] = field(default_factory=dict)
    forms: dict[int, _Strings] = field(default_factory=dict)


@dataclass(frozen=True)
class _Plurals:
    """The number of plural forms, and the one of them for a single thing, which may be for other numbers, too."""

    forms: int
    single: int
    is_only_one: bool


class _PoDocument(BilingualDocument):
    """A file whose encoding may have to change."""

    def write(self, translations: Sequence[str]) -> bytes:
        text = self.text(translations)
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError:
            return _CHARSET.sub(r"\1UTF-8", text, count=1).encode()


def read(data: bytes) -> Document:
    """Reads a file in the encoding that its header names, by default UTF-8. Raises DamagedFile."""
    named = _CHARSET.search(data.decode("latin-1"))
    encoding = "ascii" if data.isascii() else "utf-8"
    if named and named[2] != "CHARSET":
        encoding = named[2]
    try:
        text = data.decode(encoding)
        is_same = text.encode(encoding) == data
    except LookupError:
        raise DamagedFile(f"names an encoding that is not known, {encoding}") from None
    except UnicodeError:
        is_same = False
    if not is_same:
        raise DamagedFile(f"is not text in {encoding}")
    messages = _messages(text)
    headers = [form.text for message in messages if not message.parts["msgid"].text for form in message.forms.values()]
    plurals = _plurals("\n".join(headers[:1]))
    newlines = [match.start() for match in re.finditer("\n", text)]
    is_wrapped = all(len(line) <= WIDTH + 1 for line in text.splitlines() if '"' in line and line[0] != "#")
    newline = "\r\n" if "\r\n" in text else "\n"
    quote = _quoting(WIDTH if is_wrapped else None, newline)
    units = list[Unit]()
    for message in messages:
        line = bisect_right(newlines, message.parts["msgid"].begin) + 1
        units += _unit(text, message, f"line {line}", plurals, quote, newline)
    return _PoDocument(text, units, encoding)


def _messages(text: str) -> list[_Message]:
    """Reads the messages of a file. Raises DamagedFile."""
    messages, strings, offset = list[_Message](), None, int(text.startswith("\ufeff"))
    while offset < len(text):
        found = _LEXEME.match(text, offset)
        if found is None or (found["string"] and strings is None):
            line = text.count("\n", 0, offset) + 1
            raise DamagedFile(f"is not a PO file, line {line}: {text[offset : offset + 20].splitlines()[0]!r}")
        offset = found.end()
        if found["word"]:
            strings = _Strings(found.start(), found.end())
            name = found["word"]
            if not messages or (name in ("msgctxt", "msgid") and messages[-1].forms):
                messages.append(_Message())
            if name == "msgstr":
                messages[-1].forms[int(found["form"] or 0)] = strings
            elif name != "domain":
                messages[-1].parts[name] = strings
        elif found["string"] and strings:
            strings.end = found.end()
            strings.strings.append(_ESCAPE.sub(_character, found["string"][1:-1]))
    messages = [message for message in messages if message.parts or message.forms]
    if not all("msgid" in message.parts and message.forms for message in messages):
        raise DamagedFile("is not a whole PO file: a message lacks its msgid or msgstr")
    return messages


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8) & 255)
    return chr(int(code[1:], 16) & 255) if code[0] == "x" and len(code) > 1 else _CHARACTERS.get(code, code)


def _plurals(header: str) -> _Plurals | None:
    """Reads the plural forms of a header; None if it has none that can be read."""
    named = _PLURALS.search(header)
    try:
        function = gettext.c2py(named[2].strip()) if named else None
        forms = [function(number) for number in range(1000)] if function else []
    except (ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return None
    return _Plurals(int(named[1]), forms[1], forms.count(forms[1]) == 1) if named and int(named[1]) else None


def _quoting(width: int | None, newline: str) -> Callable[[str, str], str]:
    """Returns the function that writes a text after a keyword."""

    def quote(word: str, text: str) -> str:
        lines = re.findall(r"[^\n]*\n|[^\n]+", text)
        escaped = ["".join(f"\\{_ESCAPES[c]}" if c in _ESCAPES else c for c in line) for line in lines]
        if len(lines) == 1 and (width is None or len(word) + len(escaped[0]) + 3 <= width):
            return f'{word} "{escaped[0]}"'
        if width is not None:
            wrapper = textwrap.TextWrapper(
                width - 2, expand_tabs=False, replace_whitespace=False, drop_whitespace=False,
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
            escaped = [part for line in escaped for part in wrapper.wrap(line)]
        return newline.join([f'{word} ""', *(f'"{line}"' for line in escaped)])

    return quote


def _unit(
    text: str, message: _Message, place: str, plurals: _Plurals | None, quote: Callable[[str, str], str], newline: str
) -> Iterator[Unit]:
    """Yields the unit of a message, if it has no translation."""
    forms = message.forms
    begin, end = min(form.begin for form in forms.values()), max(form.end for form in forms.values())
    # a comment between the forms would be lost
    has_comment = re.search(r"^\s*#", text[begin:end], re.MULTILINE)
    if has_comment or any(form.text for form in forms.values()):
        return
    texts = [message.parts[name].text for name in ("msgid", "msgid_plural") if name in message.parts]
    sources = [_source(each, place) for each in texts]
    if not any(source.blocks for source in sources):
        return
    # without a header, as in a template, the first form is for one thing
    plurals = plurals or _Plurals(max(forms) + 1, 0, True)
    # "one file" is not for 21 files, where these have the same form
    has_single = plurals.forms > 1 and (
        plurals.is_only_one or len({tuple(sorted(placeholders(each))) for each in texts}) == 1
    )

    def spell(translations: Sequence[str]) -> str:
        if len(translations) == 1:
            return quote("msgstr", translations[0])
        return newline.join(
            quote(f"msgstr[{form}]", translations[0 if has_single and form == plurals.single else 1])
            for form in range(plurals.forms)
        )

    yield Unit(begin, end, sources, spell)


def _source(text: str, place: str) -> TextDocument:
    found = message_spans(text, [Piece("text", 0, len(text))], place, has_tags=True, spell_text=spell_as(text))
    return TextDocument(text, [replace(span, block=replace(span.block, is_apart=True)) for span in found])
