"""HTML and XHTML.

A block is the text between the borders of block elements, with the inline elements in it; a line break ends it.
Attributes that are text are blocks of their own. Scripts, code and what ``translate="no"`` or the class ``notranslate``
encloses stay as they are. Everything outside of the blocks keeps its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from operator import methodcaller

from nmt.extras.documents.files.document import Block, DamagedFile, Span, TextDocument, as_markup, decoded, line_names
from nmt.extras.documents.files.inline import Fragment, fragments, spans_of
from nmt.extras.documents.files.xml_tokens import Kind, Token
from nmt.extras.documents.markup import BLOCKS

_BORDERS = BLOCKS | frozenset(
    """
    audio base br button canvas center col colgroup details dialog dir frame frameset hgroup iframe link menu meta
    noscript object optgroup param search select source summary template textarea track video
    """.split()  # noqa: SIM905
)
"""Elements whose borders sentences of a page do not cross."""

_KEPT = frozenset("code kbd math pre rp rt samp script style svg textarea var".split())  # noqa: SIM905
"""Elements whose content is not translated."""

_VOID = frozenset(
    "area base br col embed frame hr img input link meta param source track wbr".split()  # noqa: SIM905
)

_TEXT_ATTRIBUTES = frozenset(("abbr", "alt", "aria-label", "aria-description", "label", "placeholder", "title"))
_DESCRIPTIONS = re.compile(r"(?:og:|twitter:)?(?:description|title)|keywords", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""(?<![^\s"'<>/=])([^\s"'<>/=]++)\s*=\s*(?:(?P<mark>["'])(?P<text>.*?)(?P=mark)|[^\s"'=<>`]+)""", re.DOTALL
)
_QUOTES = {'"': "&quot;", "'": "&#39;"}
_UNCLOSED = re.compile(r"<[A-Za-z/!?][^<>]*\Z")
_SCRIPT = re.compile(r"<%(?:(?!<%|%>).)*+(?P<thing>%>)", re.DOTALL)
_CHARSET = re.compile(rb"""<\?xml[^<>]*encoding\s*=\s*["']([\w.:-]+)|<meta[^<>]*charset\s*=\s*["']?([\w.:-]+)""", re.I)


class _Tokenizer(HTMLParser):
    """Collects the tokens of a file, without their ends: each ends where the next one begins. Comments and declarations
    are of the kind "other"."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.tokens: list[Token] = []
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.feed(text)
        self.close()

    def _add(self, kind: Kind, name: str = "", attributes: Sequence[tuple[str, str | None]] = ()) -> None:
        line, column = self.getpos()
        if kind != "text" or not self.tokens or self.tokens[-1].kind != "text":  # one text may come in parts
            values = {key: value or "" for key, value in attributes}
            self.tokens.append(Token(kind, self._lines[line - 1] + column, name=name, attributes=values))

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._add("alone" if tag in _VOID else "open", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._add("alone", tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._add("close", tag)

    def handle_data(self, data: str) -> None:
        self._add("text")

    def handle_comment(self, data: str) -> None:
        self._add("other")

    handle_entityref = handle_charref = handle_data  # type: ignore[assignment]
    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


def read(data: bytes) -> TextDocument:
    """Reads a page. Raises DamagedFile if it is not in the encoding that it names, by default UTF-8."""
    text, encoding = decoded(data, _CHARSET)
    return TextDocument(text, list(spans(text)), encoding)


def spans(text: str) -> Iterator[Span]:
    """Yields the blocks of a page. Raises DamagedFile."""
    # Python's parser takes quadratic time for these
    if text.rfind("<!--") > text.rfind("-->") or _UNCLOSED.search(text):
        raise DamagedFile("has a tag or a comment without an end")
    try:
        tokens = _Tokenizer(text).tokens
    except AssertionError:  # at <![…]> of unknown kind
        raise DamagedFile("is not HTML") from None
    ends = [*(token.begin for token in tokens), len(text)][1:]  # an empty page has no token
    line_of, pieces, kept, depth = line_names(text), list[Fragment](), "", 0
    kept_from = 0
    for token, end in zip(tokens, ends, strict=False):  # an empty file has no token
        if kept:  # inside an element that is not translated
            depth += (token.kind == "open") - (token.kind == "close") if token.name == kept else 0
            if depth == 0:
                if kept not in _BORDERS:
                    pieces.append(Fragment("alone", kept_from, end, name=kept))
                kept = ""
            continue
        raw = text[token.begin : end]
        if token.kind in ("open", "alone"):
            yield from _attributes(token, raw, line_of(token.begin))
        is_border = token.name in _BORDERS
        if is_border and pieces:
            yield from spans_of(pieces, line_of(pieces[0].begin))
            pieces = []
        if token.kind == "open" and _is_kept(token):
            kept, depth, kept_from = token.name, 1, token.begin
        elif token.kind == "text":
            pieces += fragments(text, token.begin, end, _SCRIPT)
        elif not is_border:
            kind = token.kind if token.kind in ("open", "close") else "alone"
            pieces.append(Fragment(kind, token.begin, end, name=token.name))
    yield from spans_of(pieces, "the end")


def _is_kept(token: Token) -> bool:
    values = token.attributes
    if values.get("translate") == "no" or "notranslate" in values.get("class", "").split():
        return True
    return token.name in _KEPT and values.get("translate") != "yes"


def _attributes(token: Token, raw: str, place: str) -> Iterator[Span]:
    """Yields the attributes of a tag that are text."""
    if _is_kept(token) and token.name not in _KEPT:
        return
    names, values = set(_TEXT_ATTRIBUTES), token.attributes
    if token.name == "meta" and _DESCRIPTIONS.fullmatch(values.get("name", values.get("property", ""))):
        names.add("content")
    if token.name == "input" and values.get("type", "").lower() in ("button", "submit", "reset"):
        names.add("value")
    for match in _ATTRIBUTE.finditer(raw):
        text = match["text"] or ""  # one without quotation marks stays
        if match[1].lower() in names and any(map(str.isalpha, text)):
            begin, end = (token.begin + offset for offset in match.span("text"))
            block = Block(as_markup(text), f"{place}, {match[1]}", is_apart=True)
            spell = methodcaller("replace", match["mark"], _QUOTES[match["mark"]])
            yield Span(begin, end, block, spell=spell)
