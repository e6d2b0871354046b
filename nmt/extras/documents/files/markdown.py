"""Markdown: CommonMark with tables, strikethrough, footnotes, task lists and front matter.

A block is the text of a heading, a paragraph or a cell; a hard line break ends it. Emphasis, links, images with their
alternative texts and inline HTML are its elements, and titles are blocks of their own. Code, blocks of HTML, addresses,
footnote marks, formulas, environments of LaTeX and front matter keep their bytes, and so does every block that is not
changed; one that is has lines of the same width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token as MarkdownToken

from nmt.extras.documents.files.document import Block, DamagedFile, Span, TextDocument, as_markup, decoded, line_names
from nmt.extras.documents.files.inline import Fragment, Kind, fragments, spans_of, with_lines

MOST_BYTES = 4 << 20
"""Maximum size of a file: a thousand pages, in half a gigabyte of memory."""

_LINE_END = r"(?:\r\n?|\n)"
_BREAK = rf"[ \\]*{_LINE_END}[ \t>]*"
_FRONT_MATTER = re.compile(
    rf"\ufeff?(---|\+\+\+)[ \t]*{_LINE_END}(?:(?!\1|\.\.\.)[^\r\n]*{_LINE_END})*+(?:\1|\.\.\.)[ \t]*(?:{_LINE_END}|\Z)"
)
_DESTINATION = r"(?:<(?:\\.|[^<>\\\n])*+>|(?:\\.|[^\s()\\]|\((?:\\.|[^\s()\\]|\((?:\\.|[^\s()\\])*+\))*+\))*+)"
_TITLE = r"""(?P<title>"(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+'|\((?:\\.|[^()\\])*+\))"""
_PATTERNS: Mapping[str, str] = {
    "softbreak": _BREAK,
    "hardbreak": _BREAK,
    "link_open": r"!?\[",
    "link_close": rf"\](?:\([\s>]*+{_DESTINATION}(?:[\s>]+{_TITLE})?[\s>]*\)|\[(?:\\.|[^\]\\])*+\])?",
}
_THING = re.compile(
    r"\[\^[^\[\]\s]+\]|<[A-Za-z][\w.+-]*+[:@][^<>\s]*+>|<(code|kbd|samp|var)\b(?:(?!</?\1\b).)*+</\1\s*+>", re.DOTALL
)
"""Footnote marks, addresses and elements of code, which have tokens inside."""

_KEPT = re.compile(
    # footnote marks, alerts, boxes of task lists, formulas, templates, attributes, names of emoji, containers, bars
    r"\[[\^!][^\[\]\s]+\]:?|(?<=[-*+.)] )\[[ xX]\](?= )|(?<![\\$\w])\$(?![\s$])(?:[^$\n\\]|\\.)*+(?<![\s\\])\$(?![\w$])"
    r"|\{\{[^{}\n]*+\}\}|\{[#.:%][^{}\n]*+\}|(?<![\w:]):[a-z0-9_+-]++:(?!\w)|:::.*|\\\|"
    r"|(?<![^\n])(?:!!!|\?\?\?\+?) [\w-]+|(?<=\n):(?=\s)"  # admonitions, definitions
    r"|</(?P<close>[A-Za-z][\w-]*+)\s*+>|<(?P<open>[A-Za-z][\w-]*+)(?:\s[^<>]*+)?/?>"
    r"|<!--(?:(?!<!--|-->)[\s\S])*+-->|<[!?][^<>]*+>"
)
_FORMULA = re.compile(
    r"(?<![\\$])\$\$(?!\$)(?:(?!\$\$|`|\n[ \t>]*+\r?\n)[\s\S])++\$\$(?!\$)"
    r"|(?<![^\s>])\\begin\{(?P<name>\w+\*?)\}(?:(?!\\(?:begin|end)\{(?P=name)\})[\s\S]){0,9999}+\\end\{(?P=name)\}(?!\S)"
)
"""Displayed formulas, in one paragraph, and environments of LaTeX."""

_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_ESCAPE = re.compile(rf"\\({_PUNCTUATION})")
_SPECIAL = re.compile(
    rf"(?P<tag><[^<>]*>)|\\(?={_PUNCTUATION}|\Z)|[`\[\]]|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~)|(?<=~)~"
    r"|!(?=<x\d+>)|#\Z|^(?:[#+=-]|&gt;)|&lt;(?=[A-Za-z/!?]|\Z)|&amp;(?=#?\w+;)"
)
"""What may begin or end something in a line of text."""

_NUMBER = re.compile(r"^(\d{1,9})(?=[.)](?:\s|\Z))")
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")


def read(data: bytes) -> TextDocument:
    """Reads a file. Raises DamagedFile if it is not text in UTF-8 or UTF-16."""
    if len(data) > MOST_BYTES:
        raise DamagedFile("is too long to be translated at once; divide it")
    text, encoding = decoded(data)
    front_matter, line_of, spans = _FRONT_MATTER.match(text), line_names(text), list[Span]()
    offset = front_matter.end() if front_matter else int(text.startswith("\ufeff"))
    begins = [offset, *(match.end() for match in re.compile(_LINE_END).finditer(text, offset)), len(text)]
    seen = _FORMULA.sub(_as_code, text)
    for before, token in pairwise(_PARSER.parse(seen[offset:])):
        if token.type != "inline" or token.map is None:
            continue
        is_cell, words = before.type in ("th_open", "td_open"), token.content.split("\n")[0]
        offset = max(offset, begins[token.map[0]])
        begin = seen.find(words.replace("|", "\\|") if is_cell else words, offset, begins[token.map[0] + 1])
        located = _located(seen, token.children or [], begin) if words and begin >= 0 else []
        if located:
            offset = located[-1][1].end()
            spans += _spans(seen, located, line_of(begin), is_cell)
    return TextDocument(text, spans, encoding)


def _as_code(formula: re.Match[str]) -> str:
    """Writes a formula as code of the same length, or as a processing instruction if it may have blank lines."""
    inside = re.sub(r"[^\s>]", "x", formula[0][2:-2])
    return f"<?{inside}?>" if formula["name"] else f"``{inside}``"


def _located(text: str, tokens: Sequence[MarkdownToken], offset: int) -> list[tuple[MarkdownToken, re.Match[str]]]:
    """Finds the inline tokens of a block, which follow each other from an offset of the file on. Returns none of them
    if there is something else between them."""
    located, rest = list[tuple[MarkdownToken, re.Match[str]]](), _flat(tokens)
    for token in rest:
        match = _THING.match(text, offset) if token.type in ("link_open", "html_inline") else None
        if match is None:
            match = re.compile(_pattern(token), re.DOTALL | re.ASCII).match(text, offset)
            if match is None:
                return []
            located.append((token, match))
        else:  # skips the tokens inside
            next((inner for inner in rest if inner.type == "link_close" or inner.content.startswith("</")), None)
            located.append((MarkdownToken("thing", "", 0), match))
        offset = match.end()
    return located


def _flat(tokens: Sequence[MarkdownToken]) -> Iterator[MarkdownToken]:
    """Yields tokens, and those of an alternative text between the beginning and the end of its image."""
    for token in tokens:
        if token.type == "image":
            yield MarkdownToken("link_open", "img", 1)
            yield from _flat(token.children or [])
            yield MarkdownToken("link_close", "img", -1)
        else:
            yield token


def _pattern(token: MarkdownToken) -> str:
    """Returns a pattern of the characters that a token stands for."""
    if token.type in _PATTERNS:
        return _PATTERNS[token.type]
    if token.type == "code_inline":
        return rf"{token.markup}(?!`).*?(?<!`){token.markup}(?!`)"
    literal = token.content if token.type in ("text", "html_inline") else token.markup
    return _BREAK.join(re.escape(line).replace(r"\|", r"\\?\|") for line in literal.split("\n"))


def _spans(
    text: str, located: Sequence[tuple[MarkdownToken, re.Match[str]]], place: str, is_cell: bool
) -> Iterator[Span]:
    """Yields the spans of a block, and of the titles in it."""
    groups, opened, labels = [list[Fragment]()], list[int](), dict[int, tuple[int, int]]()
    for token, match in located:
        begin, end = match.span()
        line = text[text.rfind("\n", 0, begin) + 1 : begin].lstrip()
        # an admonition, or the definition of a term
        is_other = token.type == "softbreak" and (line.startswith(("!!!", "???")) or text.startswith(": ", end))
        if token.type == "hardbreak" or is_other or (token.type == "html_inline" and match.group().startswith("<br")):
            groups.append([])
        elif token.type == "softbreak":
            groups[-1].append(Fragment("text", begin, end, " ", "break"))
        elif token.type == "text_special":
            groups[-1].append(Fragment("text", begin, end, as_markup(token.content)))
        elif token.type in ("text", "html_inline"):
            groups[-1] += fragments(text, begin, end, _KEPT)
        else:
            kind: Kind = "open" if token.nesting > 0 else "close" if token.nesting < 0 else "alone"
            groups[-1].append(Fragment(kind, begin, end, name=token.tag))
        if token.type == "link_open":
            opened.append(end - 1)
        elif token.type == "link_close":
            label = (opened.pop(), begin + 1)
            if match.group() in ("]", "][]"):  # the text of the link is the name of its address
                labels[begin] = label
            elif match["title"]:
                yield from _title(text, match.start("title"), match.end("title"), place)
    for group in groups:
        for span in spans_of(group, place):
            if not any(begin < span.begin and span.end < end for begin, end in labels.values()):
                yield _spelt(text, span, group, labels, is_cell)


def _title(text: str, begin: int, end: int, place: str) -> Iterator[Span]:
    """Yields the span of a title, which has marks at both ends."""
    words, escapes = text[begin + 1 : end - 1], {ord(mark): f"\\{mark}" for mark in (text[begin], text[end - 1], "\\")}
    if "\n" not in words and any(map(str.isalpha, words)):
        block = Block(as_markup(_ESCAPE.sub(r"\1", words)), f"{place}, title", is_apart=True)
        yield Span(begin + 1, end - 1, block, spell=lambda title: title.translate(escapes), spell_text=unescape)


def _spelt(
    text: str, span: Span, group: Sequence[Fragment], labels: Mapping[int, tuple[int, int]], is_cell: bool
) -> Span:
    """Adds how a translation is written."""
    # a link whose text is the name of its address gets a text of its own before that name
    tags = dict(span.tags)
    named = {tag: f"<label{begin}/>" for tag, (begin, _) in span.tags.items() if begin in labels}
    for tag, label in named.items():
        begin = span.tags[tag][0]
        tags |= {tag: (begin, begin + 1), label: labels[begin]}
    marks = {tag: text[begin] for tag, (begin, end) in span.tags.items() if not text[begin:end].strip("*_~")}
    marks |= {tag: "`" for tag, (begin, _) in span.tags.items() if text[begin] == "`"}
    around = (text[max(span.begin - 1, 0) : span.begin], text[span.end : span.end + 1])

    def escape(match: re.Match[str]) -> str:
        tag = match["tag"]
        return tag + named.get(tag, "") if tag else f"\\{match.group()}"

    def spell(line: str) -> str:
        line = _NUMBER.sub(r"\1\\", _SPECIAL.sub(escape, _with_marks(line, marks, *around)))
        return line.replace("|", "\\|") if is_cell else line

    return replace(with_lines(span, text, group, spell), tags=tags, spell_text=unescape)


def _with_marks(line: str, marks: Mapping[str, str], first: str, last: str) -> str:
    """Makes room for the marks of emphasis and code in a line between two characters: removes pairs around nothing, and
    puts a space where a mark would not be read as such beside a letter or another one."""
    written = [first]
    for part, after in pairwise([*filter(None, re.split("(<[^<>]*>)", line)), last]):
        mark, is_end, before = marks.get(part, ""), part.startswith("</"), written[-1]
        inside, outside = (before[-1:], after[:1]) if is_end else (after[:1], before[-1:])
        if mark and is_end and before.strip() == f"<{part[2:]}":
            written.pop()
        elif mark == "`":
            written += [" "] * (mark in (before, marks.get(before))) + [part] + [" "] * (mark == after)
        elif mark and (
            (is_end and after in marks and after[1] != "/")
            or (outside.isalnum() and (mark == "_" or not inside.isalnum()))
        ):
            written.append(f"{part} " if is_end else f" {part}")
        else:
            written.append(part)
    return "".join(written[1:])
