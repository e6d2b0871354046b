"""Files with a text and its translation side by side, as programs keep their messages in.

Each line of a message is a block, unless a sentence goes on in the next one. So is each branch of a message of ICU,
such as ``{n, plural, one {a dog} other {# dogs}}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from nmt.extras.documents.files.document import Span, TextDocument
from nmt.extras.documents.files.inline import Fragment, fragments, spans_of, with_lines

LONG_LINE = 50
"""Number of characters from which on a line without a full stop is one that was broken."""

_CHOICE = r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,\s*(?:offset:\d+\s*)?(?:=\d+|[\w-]+)\s*\{"
_CONVERSION = r"%(?:\d++\$)?[-+#0']*+(?:\d++|\*)?(?:\.(?:\d++|\*))?(?:hh?|ll?|[jztL])?[cdiouxXeEfFgGsSp]"
_KEPT = (
    r"\0|\r?\n[ \t]*+|\t++"
    # marks of keys such as "_File", options of commands, and entities and placeholders that are not copied as words
    r"|(?<!\w)(?:&amp;|[_&])(?=[A-Za-z])(?!\w+;)|(?<!\S)--?[A-Za-z][\w-]*+(?:=\w+)?,?"
    r"|&amp;#?\w+;|%<\w+>\w?|\{[^{}\s]*+\s[^{}]*+\}"
    rf"|(?<!\d\d)(?<![1-9])(?:(?<=[\w%]){_CONVERSION}|{_CONVERSION}(?=\w))"
    r"|</(?P<close>[A-Za-z][\w:-]*+)\s*+>|<(?P<open>[A-Za-z][\w:-]*+)(?:\s[^<>=]*+=[^<>]*+)?\s*/?>|<!--[^<>]*+-->"
)
_MESSAGE = re.compile(_KEPT)
_ICU_MESSAGE = re.compile(
    rf"{_CHOICE}|\}}\s*(?:=\d+|[\w-]+)\s*\{{|\}}\s*\}}|\{{[^{{}}]*+\}}|'[{{}}#|][^']*+'?|#|{_KEPT}"
)
_QUOTE = re.compile(r"'(?=[<{}#|]|\Z)")


@dataclass(frozen=True)
class TranslationUnit:
    """A text and where its translation stands.

    Attributes:
        begin, end: The characters of the file that the translation replaces.
        source: The text.
        spell: Function that spells the translated text as the format needs it.
    """

    begin: int
    end: int
    source: TextDocument
    spell: Callable[[str], str]


class BilingualDocument(TextDocument):
    """A file of units. One of which nothing was translated stays as it is: without a translation."""

    def __init__(self, text: str, units: Sequence[TranslationUnit], encoding: str) -> None:
        """``encoding`` is how the text is written."""
        super().__init__(text, (), encoding)
        self._units = units
        self.blocks = [block for unit in units for block in unit.source.blocks]

    def text(self, translations: Sequence[str]) -> str:
        """Returns the text of the file with its translations."""
        parts, begin, remaining = list[str](), 0, iter(translations)
        for unit in self._units:
            texts = list(islice(remaining, len(unit.source.blocks)))
            if texts != [block.text for block in unit.source.blocks]:
                parts += [self._text[begin : unit.begin], unit.spell(unit.source.text(texts))]
                begin = unit.end
        return "".join([*parts, self._text[begin:]])


def message_spans(text: str, pieces: Iterable[Fragment], place: str, has_lines: bool = True) -> list[Span]:
    """Returns the spans of a message: those of its branches if it is one of ICU, and those of its lines if
    ``has_lines``. A message of ICU that is not well-formed has none."""
    is_icu = bool(re.search(_CHOICE, text))
    pattern = _ICU_MESSAGE if is_icu else _MESSAGE
    parts = (fragments(text, piece.begin, piece.end, pattern) if piece.kind == "text" else [piece] for piece in pieces)
    groups, opened, begins = list[list[Fragment]](), [list[Fragment]()], list[int]()
    for part in chain.from_iterable(parts):
        raw = text[part.begin : part.end] if part.kind == "alone" else " "
        if raw[0] + raw[-1] == "{{":  # the beginning of a choice and of its first branch
            begins.append(part.begin)
            opened.append([])
        elif raw[0] == "}":  # the end of a branch, with the beginning of the next one or the end of the choice
            if not begins:
                return []
            groups.append(opened.pop())
            if raw[-1] == "{":
                opened.append([])
            else:
                opened[-1].append(Fragment("alone", begins.pop(), part.end))
        elif raw[0] == "\0" or (raw[0] in "\r\n" and has_lines and not _goes_on(text, part)):
            groups.append(opened.pop())
            opened.append([])
        elif raw[0] in "\r\n":
            opened[-1].append(Fragment("text", part.begin, part.end, " ", "break"))
        elif raw[0] == "{" and not re.search(r"\s", raw):  # a placeholder that the model copies as a word
            opened[-1].append(Fragment("text", part.begin, part.end, raw))
        else:
            opened[-1].append(part)
    if begins:
        return []

    spell = partial(_QUOTE.sub, "’") if is_icu else str
    return [with_lines(span, text, group, spell) for group in [*groups, *opened] for span in spans_of(group, place)]


def _goes_on(text: str, line_break: Fragment) -> bool:
    """Returns True if a line was broken before the next one, which has a sentence's rest."""
    before = text[text.rfind("\n", 0, line_break.begin) + 1 : line_break.begin].strip()
    after = text[line_break.end : line_break.end + 1]
    is_open = before[-1:].isalnum() or before.endswith((",", "-", "–", "—", "/", "&", ")", ">"))
    return is_open and (after.islower() or (len(before) >= LONG_LINE and after.isalnum()))
