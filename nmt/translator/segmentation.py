"""Segmentation of lines into segments that a model can translate, and joining of the segments' translations to lines.

A line has one segment, the line itself, unless it holds several sentences and the model was trained on single ones, or
it is running text (``search.document``), is too long (``search.split_longer_than``) or has markup (``search.markup``),
which is removed before and put back into the translation of the line. A line feed ends a segment. A segment without a
letter is copied.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from nmt.alignment.extract import Extraction
from nmt.data.context import Sentence
from nmt.data.segments import SourceLengths, split_long
from nmt.search.config import SearchConfig
from nmt.translator.loading import TrainedModel
from nmt.translator.translation import Translation

if TYPE_CHECKING:
    from nmt.data.casing import Case
    from nmt.data.words import Span
    from nmt.translator.aligner import Aligner, PieceWeights

T = TypeVar("T")


@dataclass(frozen=True)
class SegmentTranslation:
    """A segment of a line and its translation.

    Attributes:
        span: The span of the segment in the line without markup.
        begin: The offset of the translation in the translation of the line.
        text: The translation.
        is_translated: False if the text is the segment itself.
        weights: The soft alignment of the segment with its translation, or None.
    """

    span: Span
    begin: int
    text: str
    is_translated: bool
    weights: PieceWeights | None


@dataclass(frozen=True)
class MarkedLine:
    """A line without its markup, which can put the markup into a translation; here a line that has none.

    Attributes:
        text: The text for the model.
        kept: Spans of the text that do not change.
        borders: Offsets in the text that sentences do not cross, in order.
        has_markup: True if markup was removed or is kept.
    """

    text: str
    kept: Sequence[Span] = ()
    borders: Sequence[int] = ()
    has_markup: bool = False

    def restore(self, translation: str, segments: Sequence[SegmentTranslation], extraction: Extraction) -> str:
        """Puts the markup into the translation of the whole text, which consists of ``segments``; ``extraction`` finds
        the links between words."""
        return translation


Markup: TypeAlias = Callable[[str, str | None], MarkedLine]
"""Removes the markup of a line; the second argument is ``search.stand_in``."""


@dataclass(frozen=True)
class Segment:
    """A part of a line.

    Attributes:
        span: The span of the segment in the text without markup.
        text: The text for the model: the part in ordinary case.
        case: The case of the part.
        is_translated: False if nothing in the segment needs translation, so that the model does not get it.
    """

    span: Span
    text: str
    case: Case = "ordinary"
    is_translated: bool = True


@dataclass(frozen=True)
class SegmentedLine:
    """A line without markup, and its segments in order."""

    marked: MarkedLine
    segments: tuple[Segment, ...]


@dataclass
class Segmentation:
    """Divides lines into segments, and joins the translations of the segments to translations of the lines."""

    search: SearchConfig
    trained: TrainedModel
    count: Callable[[str], int]
    """Returns the number of subwords of a text."""
    markup: Markup | None
    lines: InitVar[Sequence[str]]
    whole: InitVar[Sequence[bool]]
    """Of each line, True if it should be translated as a whole: it then has one segment and keeps its case."""

    def __post_init__(self, lines: Sequence[str], whole: Sequence[bool]) -> None:
        search, trained, count = self.search, self.trained, self.count
        self._is_plain = not (search.markup or search.document)
        limit = search.split_longer_than
        lengths = trained.lengths if limit == "trained" else None if limit is None else SourceLengths(limit, limit)
        by_sentence = search.document or (limit == "trained" and trained.reads_single_sentences)
        language = trained.experiment.data.source_language
        self._spans = partial(split_long, count=count, lengths=lengths, language=language, by_sentence=by_sentence)
        self._lines = [self._segmented(line, is_whole) for line, is_whole in zip(lines, whole, strict=True)]
        self.texts = [segment.text for line in self._lines for segment in line.segments if segment.is_translated]
        """The texts to translate, line by line."""

    def per_segment(self, values: Sequence[T]) -> list[T]:
        """Returns for each of ``texts`` the value of its line."""
        pairs = zip(values, self._lines, strict=True)
        return [value for value, line in pairs for segment in line.segments if segment.is_translated]

    def join(
        self, translations: Sequence[Sequence[Translation]], aligner: Callable[[], Aligner]
    ) -> list[tuple[Translation, ...]]:
        """Joins the translations of ``texts`` to those of each line, best first. A line has as many translations as the
        segment with the most; a segment with fewer repeats its last one. ``aligner`` returns the aligner that finds the
        positions of markup."""
        remaining = iter(translations)
        joined: list[list[list[tuple[Segment, Translation]]]] = []
        for line in self._lines:
            lists = [
                (segment, next(remaining) if segment.is_translated else (Translation(segment.text, 0.0, 0.0),))
                for segment in line.segments
            ]
            ranks = range(max((len(ranked) for _, ranked in lists), default=1))
            joined.append([[(each, ranked[min(rank, len(ranked) - 1)]) for each, ranked in lists] for rank in ranks])
        to_align = [
            (segment, translation.text)
            for line, ranked in zip(self._lines, joined, strict=True)
            if line.marked.has_markup
            for pairs in ranked
            for segment, translation in pairs
            if segment.is_translated and segment.text.strip() and translation.text
        ]
        sources, targets = [segment.text for segment, _ in to_align], [target for _, target in to_align]
        aligned = aligner().piece_weights(sources, targets) if to_align else []
        weights = dict(zip([(id(segment), target) for segment, target in to_align], aligned, strict=True))
        return [
            tuple(self._line(line, pairs, weights, aligner) for pairs in ranked)
            for line, ranked in zip(self._lines, joined, strict=True)
        ]

    def _segmented(self, line: str, is_whole: bool) -> SegmentedLine:
        """Divides a line into segments; those of a sentence with context know the sentences before them, including
        those in the line."""
        segmented = self._cut(line, is_whole)
        if not isinstance(line, Sentence):
            return segmented
        # the segments of these lines that the model has read
        before = [segment.text for previous in line.previous for segment in self._cut(previous, False).segments]
        segments = []
        for segment in segmented.segments:
            segments.append(replace(segment, text=Sentence(segment.text, before)))
            before.append(str(segment.text))
        return SegmentedLine(segmented.marked, tuple(segments))

    def _cut(self, line: str, is_whole: bool) -> SegmentedLine:
        marked = MarkedLine(line) if self.markup is None else self.markup(line, self.search.stand_in)
        text = marked.text
        if is_whole:
            spans = [(0, len(text))] if self._is_plain else split_long(text, self.count, None)
            return SegmentedLine(marked, tuple(Segment(span, text[slice(*span)]) for span in spans))
        line_feeds = [match.start() for match in re.finditer("\n", text)]
        borders = [0, *sorted([*marked.borders, *line_feeds]), len(text)]  # sentences do not cross them
        spans = [
            (begin + first, begin + last)
            for begin, end in pairwise(borders)
            for first, last in self._spans(text[begin:end])
        ]
        if self._is_plain and len(spans) <= 1:
            spans = [(0, len(text))]  # with the white space around it
        return SegmentedLine(marked, tuple(self._segment(marked, span) for span in _unbroken(spans, marked.kept)))

    def _segment(self, marked: MarkedLine, span: Span) -> Segment:
        begin, end = span
        text = marked.text[begin:end]
        kept = [(first - begin, last - begin) for first, last in marked.kept if begin <= first and last <= end]
        borders = [0, *chain(*kept), len(text)]
        changing = "".join(text[first:last] for first, last in zip(borders[::2], borders[1::2], strict=True))
        # str.isalpha is true for Unicode's categories L: marks do not count, but they are always on letters, in
        # Devanagari too
        if not any(map(str.isalpha, changing)) and (kept or (text.strip() and self.trained.copies)):
            return Segment(span, text, is_translated=False)
        if not self.search.markup:
            return Segment(span, text)
        from nmt.data.casing import case_of, is_usual, to_ordinary

        case = case_of(text, kept)
        ordinary = text if case == "ordinary" else to_ordinary(text, self.count, kept)
        return Segment(span, text) if is_usual(text, ordinary) else Segment(span, ordinary, case)

    def _line(
        self,
        line: SegmentedLine,
        pairs: Sequence[tuple[Segment, Translation]],
        weights: Mapping[tuple[int, str], PieceWeights],
        aligner: Callable[[], Aligner],
    ) -> Translation:
        """Joins one translation of a line, with the sum of its segments' log-probabilities and the mean of their
        scores. LF and CR LF in the text of a record are kept; controls and other characters that some programs take
        for a line end become spaces."""
        if self._is_plain and len(pairs) == 1 and pairs[0][0].is_translated:
            return pairs[0][1]
        from nmt.data.casing import put_back
        from nmt.data.sentences import UNPRINTABLE

        texts = [put_back(translation.text, segment.case) for segment, translation in pairs]
        text, begins = self._concatenate(line, texts)
        segments = []
        for (segment, translation), begin in zip(pairs, begins, strict=True):
            own_weights, is_translated = weights.get((id(segment), translation.text)), segment.is_translated
            segments.append(SegmentTranslation(segment.span, begin, translation.text, is_translated, own_weights))
        translated = [(segment, translation) for segment, translation in pairs if segment.is_translated]
        return Translation(
            text=re.sub(f"(?!\r\n)[{UNPRINTABLE}]", " ", line.marked.restore(text, segments, aligner().extraction)),
            score=sum(translation.score for _, translation in translated) / max(len(translated), 1),
            log_prob=sum(translation.log_prob for _, translation in translated),
            cut=sum(translation.cut for _, translation in translated),
            tokens=tuple(token for _, translation in translated for token in translation.tokens),
            parts=tuple((segment.text, translation.text) for segment, translation in translated),
            longest=max((len(translation.tokens) for _, translation in translated), default=0),
        )

    def _concatenate(self, line: SegmentedLine, texts: Sequence[str]) -> tuple[str, list[int]]:
        """Joins translations of segments with the white space between the segments in the source, and returns the
        offset of each. Between sentences it puts a space if the language of the translation uses spaces, and none if
        it does not, as Chinese; it puts none between the segments of a word that was too long, such as an address."""
        source, borders = line.marked.text, line.marked.borders
        joined, begins, last = "", [], 0
        for segment, text in zip(line.segments, texts, strict=True):
            between = source[last : segment.span[0]]
            if last == 0 and not self.search.document:
                between = ""
            elif between in ("", " ") and last > 0 and last not in borders and joined:
                from nmt.data.words import is_unspaced

                is_in_word = unicodedata.category(source[last - 1])[0] in "LMNS" and not is_unspaced(source[last - 1])
                is_wide = unicodedata.east_asian_width(joined[-1]) in "WF" and not "가" <= joined[-1] <= "힣"
                is_solid = is_wide and unicodedata.category(joined[-1])[0] in "LP"  # no emoji
                between = "" if is_solid or (is_in_word and not between) else " "
            begins.append(len(joined) + len(between))
            joined += between + text
            last = segment.span[1]
        return joined + (source[last:] if self.search.document else ""), begins


def _unbroken(spans: Sequence[Span], kept: Sequence[Span]) -> list[Span]:
    """Joins successive spans if a kept span crosses the border between them."""
    whole: list[Span] = []
    for begin, end in spans:
        if whole and any(first < begin < last for first, last in kept):
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((begin, end))
    return whole
