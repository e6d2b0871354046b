"""Blocks of text whose parts have formats, as in word processors.

There, each part of a text is in a run, an element that gives it its format. A translation has other parts. Therefore
runs are written anew: the tags of a block say which words have another format than most, and everything between the
words (images, links, bookmarks) is a tag too. A tag remembers the run before it and the run after it, and the tags of
runs between two things are written where they differ.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nmt.extras.documents.files.document import Block, Span
from nmt.extras.documents.files.inline import SPACES, Fragment, has_words, numbered, stripped
from nmt.extras.documents.markup import partners_of

_TAG = re.compile(r"(<[^<>]*>)")
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML has not."""


@dataclass(frozen=True)
class TextRun:
    """The tags around a text that give it a format.

    Attributes:
        format: The format; runs of one format are equal.
        begin, end: The tags at both ends.
        text: The tags around the text inside.
        is_hidden: True if the text is not shown; it stays.
    """

    format: str = ""
    begin: str = field(default="", compare=False)
    end: str = field(default="", compare=False)
    text: tuple[str, str] = field(default=("", ""), compare=False)
    is_hidden: bool = field(default=False, compare=False)


NO_RUN = TextRun()


@dataclass(frozen=True)
class RunPiece(Fragment):
    """A piece of a block.

    Attributes:
        before, after: The runs in which it begins and ends in the file.
        run: The run of a text; for a tag, the run of most of the text inside.
        divides: True if it ends a block, should its partner be in another one.
    """

    before: TextRun = NO_RUN
    after: TextRun = NO_RUN
    run: TextRun = NO_RUN
    divides: bool = False


def run_spans(pieces: Sequence[RunPiece], place: str, is_apart: bool = False) -> Iterator[Span]:
    """Yields the spans of blocks; where there is no letter or digit, there is none."""
    partners, begin = partners_of((piece.kind, piece.name) for piece in pieces), 0
    borders = [index for index, piece in enumerate(pieces) if piece.divides and index not in partners]
    for border in [*borders, len(pieces)]:
        yield from _block(stripped(pieces[begin:border]), place, is_apart)
        begin = border + 1


def _block(pieces: Sequence[RunPiece], place: str, is_apart: bool) -> Iterator[Span]:
    if not has_words(pieces):
        return
    usual, pieces = _with_formats(pieces)
    text, tags = numbered(pieces)
    begin, end = pieces[0].text, pieces[-1].text
    spaces = (begin[: len(begin) - len(begin.lstrip(SPACES))], end[len(end.rstrip(SPACES)) :])
    # a format at an end has no characters of its own
    first = next(piece for piece in pieces if piece.end > piece.begin)
    last = next(piece for piece in reversed(pieces) if piece.end > piece.begin)
    yield Span(
        first.begin,
        last.end,
        Block(text, place, is_apart),
        {tag: (piece.begin, piece.end) for tag, piece in tags.items() if piece.end > piece.begin},
        lambda translation: _written(spaces[0] + translation + spaces[1], tags, usual, first.before, last.after),
    )


def _with_formats(pieces: Sequence[RunPiece]) -> tuple[TextRun, list[RunPiece]]:
    """Returns the usual run of a block, and the pieces with a pair of tags around each text in a run that is not the
    usual one of the element in which the text stands."""
    partners = partners_of((piece.kind, piece.name) for piece in pieces)
    levels, opened, counts = list[int](), [-1], defaultdict[int, Counter[TextRun]](Counter)
    for index, piece in enumerate(pieces):
        if partners.get(index, -1) > index:
            opened.append(index)
        elif index in partners:
            opened.pop()
        levels.append(opened[-1])  # the element around each piece
        if piece.kind == "text":
            counts[opened[-1]][piece.run] += sum(map(str.isalnum, piece.text))
    usual = {level: count.most_common(1)[0][0] for level, count in counts.items()}
    # where there is no text now, a translation may have some
    other = next(piece.run for piece in pieces if piece.kind == "text")

    formatted, current = list[RunPiece](), None
    for index, piece in enumerate(pieces):
        is_tag, is_blank = index in partners, not piece.text.strip(SPACES)
        is_other = not is_blank and piece.run != current
        if current is not None and (is_tag or is_other):
            formatted.append(RunPiece("close", piece.begin, piece.begin, name="format"))
            current = None
        if is_other and piece.run != usual[levels[index]]:
            current = piece.run
            formatted.append(RunPiece("open", piece.begin, piece.begin, name="format", run=current))
        formatted.append(replace(piece, run=usual.get(index, other)) if is_tag else piece)
    if current is not None:
        formatted.append(RunPiece("close", pieces[-1].end, pieces[-1].end, name="format"))
    return usual.get(-1, other), formatted


def _written(text: str, tags: Mapping[str, RunPiece], usual: TextRun, before: TextRun, after: TextRun) -> str:
    """Writes a translation: its texts in runs, and the tags that stand for characters of the file."""
    runs, current, parts = [usual], before, list[str]()
    for part in filter(None, _TAG.split(text)):
        piece = tags.get(part)
        if piece is None:
            if runs[-1] != current:
                parts += [current.end, runs[-1].begin]
                current = runs[-1]
            parts += [current.text[0], _CONTROL.sub("", part), current.text[1]]
            continue
        if part.startswith("</"):
            runs.pop()
        elif not part.endswith("/>"):
            runs.append(piece.run)
        if piece.end > piece.begin:
            parts += [*_step(current, piece.before), part]
            current = piece.after
    return "".join([*parts, *_step(current, after)])


def _step(current: TextRun, other: TextRun) -> tuple[str, ...]:
    """Returns the tags between two runs. Two of one format may have other tags, in which the file goes on."""
    return () if current.begin == other.begin else (current.end, other.begin)
