"""Lines in pieces that a model can translate, and the translations of pieces as lines again.

A line is a ``Passage``: its pieces, each translated by itself, with the white space between them. It has one piece,
the line as it stands, unless it is running text (``search.document``), too long (``search.split_longer_than``) or has
markup (``search.markup``), which is taken out before and put back into the whole.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from nmt.alignment.extract import Extraction
from nmt.data.casing import Case, case_of, is_usual, put_back, to_ordinary
from nmt.data.pieces import Lengths, halved, split_long
from nmt.data.sentences import Span, sentence_spans
from nmt.extras.markup.markup import Marked, extract
from nmt.extras.markup.text_spans import PieceWeights, to_units, units, with_links
from nmt.extras.markup.transfer import Look, Unit, restore
from nmt.search.config import SearchConfig
from nmt.translator.translation import Translation

T = TypeVar("T")

Weigh = Callable[[Sequence[str], Sequence[str]], list[PieceWeights]]
"""The alignments of sources with their targets."""


@dataclass(frozen=True)
class Piece:
    """A part of a passage.

    Attributes:
        span: Where it stands in the plain text.
        given: What the model is given: the same in ordinary case.
        case: Which case it is in.
        is_translated: Whether there is anything to translate, so that the model is asked at all.
    """

    span: Span
    given: str
    case: Case = "ordinary"
    is_translated: bool = True


@dataclass(frozen=True)
class Passage:
    """A line: what is left of it without markup, and the pieces of that, in order."""

    marked: Marked
    pieces: tuple[Piece, ...]


class Passages:
    """Lines as passages, and translations of their pieces as translations of lines."""

    def __init__(
        self,
        search: SearchConfig,
        extraction: Extraction,
        lengths: Lengths,
        count: Callable[[str], int],
        lines: Sequence[str],
        whole: Sequence[bool],
    ) -> None:
        """``count`` says how many subwords a text has. Lines that are to be translated as a ``whole`` are one piece
        each, and keep their case."""
        self._search = search
        self._extraction = extraction
        self._count = count
        limit = search.split_longer_than
        self._lengths = lengths if limit == "trained" else None if limit is None else Lengths(limit, limit)
        self._passages = [self._passage(line, each) for line, each in zip(lines, whole, strict=True)]
        self.pieces = [piece.given for passage in self._passages for piece in passage.pieces if piece.is_translated]
        """What is to be translated, line by line."""

    def of_line(self, values: Sequence[T]) -> list[T]:
        """For each of the pieces the value of its line."""
        return [
            value
            for value, passage in zip(values, self._passages, strict=True)
            for piece in passage.pieces
            if piece.is_translated
        ]

    def joined(self, found: Sequence[Sequence[Translation]], weigh: Weigh) -> list[tuple[Translation, ...]]:
        """The translations of each line, from those of ``pieces``: as many as the piece has that has most, the first of
        all pieces together, then the second. A piece that has fewer gives its last one again."""
        translations = iter(found)
        lines = []
        for passage in self._passages:
            of_pieces = [
                next(translations) if piece.is_translated else (Translation(piece.given, 0.0, 0.0),)
                for piece in passage.pieces
            ]
            ranks = max(map(len, of_pieces), default=1)
            lines.append([[each[min(rank, len(each) - 1)] for each in of_pieces] for rank in range(ranks)])
        return self._restored(lines, weigh)

    # ------------------------------------------------------------------------------------------- line to pieces

    def _passage(self, line: str, whole: bool) -> Passage:
        marked = extract(line, self._search.stand_in) if self._search.markup else Marked(line, ())
        if not (self._search.markup or self._search.document or self._is_long(line)):
            return Passage(marked, (Piece((0, len(line)), line),))
        if whole:
            return Passage(marked, tuple(Piece(span, marked.text[slice(*span)]) for span in _stripped(marked.text)))
        borders = [0, *marked.borders, len(marked.text)]
        spans = [span for begin, end in pairwise(borders) for span in self._spans(marked.text, begin, end)]
        return Passage(marked, tuple(self._piece(marked, span) for span in _unbroken(spans, marked.kept)))

    def _is_long(self, text: str) -> bool:
        return self._lengths is not None and self._count(text) > self._lengths.usual

    def _spans(self, text: str, begin: int, end: int) -> list[Span]:
        """The pieces of a part of a text that no sentence reaches over."""
        part = text[begin:end]
        if self._search.document:
            spans = sentence_spans(part)
            if self._lengths is not None:
                longest = self._lengths.longest
                spans = [piece for span in spans for piece in halved(part, span, self._count, longest)]
        elif self._lengths is not None:
            spans = split_long(part, self._count, self._lengths)
        else:
            spans = _stripped(part)
        return [(begin + first, begin + last) for first, last in spans]

    def _piece(self, marked: Marked, span: Span) -> Piece:
        begin, end = span
        text = marked.text[begin:end]
        if not self._search.markup:
            return Piece(span, text)
        kept = [(first - begin, last - begin) for first, last in marked.kept if begin <= first and last <= end]
        if kept and not any(character.isalpha() for character in _without(text, kept)):
            return Piece(span, text, is_translated=False)
        case = case_of(text, kept)
        given = text if case == "ordinary" else to_ordinary(text, self._count, kept)
        return Piece(span, text) if is_usual(text, given) else Piece(span, given, case)

    # ------------------------------------------------------------------------------------------- pieces to line

    def _restored(self, lines: Sequence[Sequence[list[Translation]]], weigh: Weigh) -> list[tuple[Translation, ...]]:
        """The translations of pieces together, with what was taken out of the lines."""
        pairs = [
            (piece.given, translation.text)
            for passage, ranks in zip(self._passages, lines, strict=True)
            if passage.marked.items
            for of_pieces in ranks
            for piece, translation in zip(passage.pieces, of_pieces, strict=True)
            if piece.is_translated and piece.given.strip() and translation.text
        ]
        found = weigh([one for one, _ in pairs], [other for _, other in pairs]) if pairs else []
        weights = dict(zip(pairs, found, strict=True))
        return [
            tuple(self._line(passage, of_pieces, weights) for of_pieces in ranks)
            for passage, ranks in zip(self._passages, lines, strict=True)
        ]

    def _line(
        self, passage: Passage, found: Sequence[Translation], weights: dict[tuple[str, str], PieceWeights]
    ) -> Translation:
        """One translation of a line: log-probabilities of pieces add up, their scores have a mean."""
        if not (self._search.markup or self._search.document) and len(found) == 1:  # nothing around it, nothing changed
            return found[0]
        texts = [put_back(each.text, piece.case) for each, piece in zip(found, passage.pieces, strict=True)]
        text, begins = self._together(passage, texts)
        if passage.marked.items:
            marked = passage.marked
            source = units(marked.text, 0, len(marked.text), marked)
            target = [
                unit
                for piece, each, begin in zip(passage.pieces, found, begins, strict=True)
                for unit in self._units(marked, piece, source, each.text, begin, weights.get((piece.given, each.text)))
            ]
            text = restore(marked, source, text, target)
        translated = [each for each, piece in zip(found, passage.pieces, strict=True) if piece.is_translated]
        return Translation(
            text,
            sum(each.score for each in translated) / max(len(translated), 1),
            sum(each.log_prob for each in translated),
            sum(each.cut for each in translated),
            tuple(token for each in translated for token in each.tokens),
            tuple(
                (piece.given, each.text)
                for piece, each in zip(passage.pieces, found, strict=True)
                if piece.is_translated
            ),
            max((len(each.tokens) for each in translated), default=0),
        )

    def _units(
        self, marked: Marked, piece: Piece, source: Sequence[Span], text: str, begin: int, weights: PieceWeights | None
    ) -> list[Unit]:
        """The units of a piece's translation, which begins at ``begin`` in that of its line."""
        first_unit, last_unit = (bisect_left(source, (place, 0)) for place in piece.span)
        own = source[first_unit:last_unit]
        if not piece.is_translated:
            return [
                Unit(begin + first - piece.span[0], begin + last - piece.span[0], Look(first_unit, row_I))
                for (first, last), row_I in zip(own, np.eye(len(own)), strict=True)
            ]
        spans = units(text, 0, len(text))
        weights_JI = np.zeros((len(spans), len(own)))
        if weights is not None:
            weights_JI = to_units(weights, spans, [(one - piece.span[0], other - piece.span[0]) for one, other in own])
            weights_JI = with_links(weights_JI, self._extraction.links(weights_JI))
        return [
            Unit(begin + first, begin + last, Look(first_unit, row_I))
            for (first, last), row_I in zip(spans, weights_JI, strict=True)
        ]

    def _together(self, passage: Passage, texts: Sequence[str]) -> tuple[str, list[int]]:
        """Pieces of a line with the white space that is between them in the source, and where each begins. Between
        sentences that need none, as Chinese ones, there is a space where the language of the translation has it."""
        source, borders = passage.marked.text, passage.marked.borders
        joined, begins, last = "", [], 0
        for piece, text in zip(passage.pieces, texts, strict=True):
            between = source[last : piece.span[0]]
            if last == 0 and not self._search.document:
                between = ""
            elif not between and last > 0 and last not in borders and joined and not _is_wide(joined[-1]):
                between = " "
            begins.append(len(joined) + len(between))
            joined += between + text
            last = piece.span[1]
        return joined + (source[last:] if self._search.document else ""), begins


def _stripped(text: str) -> list[Span]:
    """A text without the white space around it; nothing of a blank one."""
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    return [(begin, end)] if begin < end else []


def _unbroken(spans: Sequence[Span], kept: Sequence[Span]) -> list[Span]:
    """The spans, joined where something that is kept reaches from one to the next."""
    whole: list[Span] = []
    for begin, end in spans:
        if whole and any(first < begin < last for first, last in kept):
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((begin, end))
    return whole


def _without(text: str, kept: Sequence[Span]) -> str:
    places = [0, *(place for span in kept for place in span), len(text)]
    return "".join(text[begin:end] for begin, end in zip(places[::2], places[1::2], strict=True))


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"
