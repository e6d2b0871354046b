"""PO files of GNU gettext.

A message without a translation gets one: as many plural forms as the header says. Translations that are there,
comments, flags and obsolete messages stay, and a message that is fuzzy stays fuzzy. A file whose encoding lacks a
character of a translation becomes UTF-8, and its header says so.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from nmt.extras.documents.files.bilingual import BilingualDocument, TranslationUnit, message_spans
from nmt.extras.documents.files.document import DamagedFile, DocumentFile, TextDocument, decoded, line_names, spell_as
from nmt.extras.documents.files.inline import Fragment
from nmt.extras.documents.markup import tags_and_placeholders

_STRINGS = r'(?:\s*"(?:[^"\\\n]++|\\(?:[abfnrtv"\\0-7]|x[0-9a-fA-F]{2}))*+")++'
_STATEMENT = re.compile(
    rf"\s+|#.*|domain{_STRINGS}"
    rf"|(?:msgctxt{_STRINGS}\s*)?msgid(?P<single>{_STRINGS})(?:\s*msgid_plural(?P<several>{_STRINGS}))?"
    rf"\s*(?P<forms>msgstr(?:\[\d+\])?{_STRINGS}(?:\s*msgstr\[\d+\]{_STRINGS})*+)"
)
_STRING = re.compile(r'"((?:[^"\\]|\\.?)*+)(?:"|\Z)', re.DOTALL)
_CHARSET = re.compile(rb"Content-Type: *[\w/]++; *charset=(?!CHARSET)([\w.:-]+)")
_OTHER_CHARSET = re.compile(r"(Content-Type: *[\w/]++; *charset=)(?!utf-8)[\w.:-]+", re.IGNORECASE)
_PLURALS = re.compile(r"Plural-Forms:\s*nplurals\s*=\s*([1-9]\d?)\s*;\s*plural\s*=\s*([^;\n]+)")
_ESCAPES = {code: f"\\{code:03o}" for code in range(32)} | {
    ord(character): f"\\{letter}" for character, letter in zip('\n\t\r"\\', 'ntr"\\', strict=True)
}


class _PoDocument(BilingualDocument):
    """A file whose encoding may have to change."""

    def write(self, translations: Sequence[str]) -> bytes:
        text = self.text(translations)
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError:
            return _OTHER_CHARSET.sub(r"\1UTF-8", text, count=1).encode()


def read(data: bytes) -> DocumentFile:
    """Reads a file in the encoding that its header names, by default UTF-8. Raises DamagedFile."""
    text, encoding = decoded(data, _CHARSET)
    if b"charset=CHARSET" in data and data.isascii():  # a template
        encoding = "ascii"
    line_of, units, forms = line_names(text), list[TranslationUnit](), _plural_forms("")
    offset = int(text.startswith("\ufeff"))
    while offset < len(text):
        statement = _STATEMENT.match(text, offset)
        if statement is None:
            raise DamagedFile(f"is not a PO file, {line_of(offset)}: {text[offset : offset + 20].splitlines()[0]!r}")
        offset = statement.end()
        if statement["forms"] and not _unquoted(statement["single"]):
            forms = _plural_forms(_unquoted(statement["forms"]))
        elif statement["forms"] and not _unquoted(statement["forms"]):
            place = line_of(statement.start("single"))
            units.append(_unit(statement, place, forms, "\r\n" if "\r\n" in text else "\n"))
    return _PoDocument(text, units, encoding)


def _plural_forms(header: str) -> list[list[int]]:
    """Returns for each plural form the numbers up to 999 that take it; those of English if the header tells none."""
    if found := _PLURALS.search(header):
        with suppress(ValueError, ArithmeticError, RecursionError):
            form_of = gettext.c2py(found[2].strip())
            forms = [form_of(number) for number in range(1000)]
            return [[number for number, form in enumerate(forms) if form == each] for each in range(int(found[1]))]
    return [[1], [0, *range(2, 1000)]]


def _unit(statement: re.Match[str], place: str, forms: Sequence[Sequence[int]], newline: str) -> TranslationUnit:
    """Returns the unit of a message. The messages before it are no context to its text."""
    texts = [_unquoted(statement[name]) for name in ("single", "several") if statement[name]]
    text = "\0".join(texts)
    spans = [
        replace(span, block=replace(span.block, is_apart=True), spell_text=spell_as(text))
        for span in message_spans(text, [Fragment("text", 0, len(text))], place)
    ]

    def spell(translation: str) -> str:
        if len(texts) == 1:
            return _quoted("msgstr", translation, newline)
        single, _, several = translation.partition("\0")
        # "one file" is not for 21 files, where these have the same form
        is_for_all = len({tuple(sorted(tags_and_placeholders(each))) for each in texts}) == 1
        is_single = [numbers == [1] or (is_for_all and len(forms) > 1 and 1 in numbers) for numbers in forms]
        return newline.join(
            _quoted(f"msgstr[{form}]", single if is_one else several, newline) for form, is_one in enumerate(is_single)
        )

    return TranslationUnit(*statement.span("forms"), TextDocument(text, spans), spell)


def _unquoted(strings: str) -> str:
    """Returns the text of strings."""
    escaped = "".join(_STRING.findall(strings))
    return escaped.encode("latin-1", "backslashreplace").decode("unicode_escape")


def _quoted(word: str, text: str, newline: str) -> str:
    """Writes a text after a keyword: a string for each line."""
    strings = [f'"{line.translate(_ESCAPES)}"' for line in text.splitlines(keepends=True)]
    return f"{word} {newline.join(strings)}" if len(strings) == 1 else newline.join([f'{word} ""', *strings])
