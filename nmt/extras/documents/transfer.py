"""Transfers the items of a text into its translation, along the alignment.

A model that was trained without markup translates the plain text, and the alignment places the items (Müller 2017,
"Treatment of Markup in Statistical Machine Translation"; Hanneman & Dinu 2020, "How Should Markup Tags Be
Translated?"). The result has each item exactly once for any translation.

- A pair of tags encloses the interval of target units j that maximises sum_j (2 p_j - 1), where p_j is the share of
  unit j's alignment that falls on what the pair encloses in the source: the interval with most alignment inside it and
  least outside (after Zenkel et al. 2021, "Automatic Bilingual Markup Transfer"). It has at least one unit, as far as
  there are enough. Pairs stay nested as they were, and siblings never overlap.
- A tag without a partner follows the translation of the word before it, or precedes that of the word that it leans on.
- The model reads the text of the other items. Where the translation repeats it, the item stands there; else it replaces
  the target units with the most weight on it; where there are none, it is placed like a tag without a partner.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nmt.alignment.extract import Extraction
from nmt.data.words import Span, successive
from nmt.extras.documents.markup import DIGITS, Item, Marked, extract
from nmt.extras.documents.number_formats import read_formats, written
from nmt.extras.documents.text_spans import SOFT, to_units, units, with_links
from nmt.translator.segmentation import MarkedLine, SegmentTranslation

_NEARLY = 0.8
"""Share of the largest weight on an item from which on neighbours are replaced, too. With 0.5 or less, articles and
prepositions were lost more often."""


_FOREIGN = 0.05
"""Loss of a pair of tags by a punctuation mark inside it if the source has no mark of that kind inside; 0.05 and 0.3
place the same number of tags exactly on the validation part of LibreOffice's help, 1 places fewer."""

_NEAR = 8
"""Maximum number of units and items that may touch a word."""


@dataclass(frozen=True)
class UnitWeights:
    """The weights of a target unit, 0 or more, for source units from ``first`` on, and 0 for all others. ``first`` and
    ``end`` never decrease from one target unit to the next."""

    first: int
    weights_I: NDArray[np.floating]

    def sum(self, begin: int, end: int) -> float:
        """Computes the sum over the source units from ``begin`` to ``end``."""
        return float(self.weights_I[max(begin - self.first, 0) : max(end - self.first, 0)].sum())

    @property
    def end(self) -> int:
        """Returns the end of the source units that may have weight."""
        return self.first + len(self.weights_I)

    @property
    def best(self) -> int:
        """Returns the source unit with the most weight, or -1 if no unit stands out."""
        most = self.weights_I.max(initial=0.0)
        if most <= 0.0 or (len(self.weights_I) > 1 and most == self.weights_I.min()):
            return -1
        return self.first + int(self.weights_I.argmax())


@dataclass(frozen=True)
class Unit:
    """A word or punctuation mark of a translation."""

    begin: int
    end: int
    weights: UnitWeights
    held_by: int = -1
    """Index of the item that replaces the unit, or -1."""


@dataclass(frozen=True, kw_only=True)
class TransferredLine(MarkedLine):
    """A line whose markup goes into its translation."""

    marked: Marked

    def restore(self, translation: str, segments: Sequence[SegmentTranslation], extraction: Extraction) -> str:
        """Puts all items into the translation; see ``MarkedLine``."""
        if not self.has_markup:
            return translation
        source = units(self.text, self.marked)
        target = [unit for segment in segments for unit in _units(segment, source, extraction)]
        return restore(self.marked, source, translation, target)


def transfer_markup(line: str, stand_in: str | None, run: Path | None) -> TransferredLine:
    """Removes the markup of a line; see ``nmt.extras.documents.markup.extract``. Numbers will be written as in the
    training pairs of a run."""
    marked, formats = extract(line, stand_in), {} if run is None else read_formats(run)
    items = tuple(replace(item, text=written(item.text, formats)) for item in marked.items)
    marked = replace(marked, items=items)
    return TransferredLine(marked.text, marked.kept, marked.borders, bool(marked.items), marked=marked)


def _units(segment: SegmentTranslation, source: Sequence[Span], extraction: Extraction) -> list[Unit]:
    """Finds the units of a segment's translation, at their offsets in the translation of the line."""
    first_unit, last_unit = (bisect_left(source, (offset, 0)) for offset in segment.span)
    own = [(begin - segment.span[0], end - segment.span[0]) for begin, end in source[first_unit:last_unit]]
    if not segment.is_translated:
        spans, weights_JI = own, np.eye(len(own))
    else:
        spans = units(segment.text)
        weights_JI = np.zeros((len(spans), len(own)))
        if segment.weights is not None:
            weights_JI = to_units(segment.weights, spans, own)
            weights_JI = with_links(weights_JI, extraction.links(weights_JI))
    return [
        Unit(segment.begin + begin, segment.begin + end, UnitWeights(first_unit, row_I))
        for (begin, end), row_I in zip(spans, weights_JI, strict=True)
    ]


def restore(marked: Marked, source_units: Sequence[Span], target: str, target_units: Sequence[Unit]) -> str:
    """Puts all items of the source into a translation, each once, with tags nested as in the source.

    ``source_units`` are the units of ``marked.text`` by ``text_spans``; ``target_units`` are those of ``target``, which
    they cover except for white space.
    """
    number = {begin: unit for unit, (begin, _) in enumerate(source_units)}
    words = {index: number[item.begin] for index, item in enumerate(marked.items) if item.kind == "word"}
    units = _merged(_replaced(words, _cut(target_units, _repeats(marked, words, target, target_units))), words)
    root = _tree(marked, source_units, words.keys() - {unit.held_by for unit in units})
    writer = _Writer(marked, source_units, target, units)
    writer.write(root, 0, len(units))
    return writer.spelt()


# ------------------------------------------------------------------------------------- what stands for words kept


def _repeats(marked: Marked, words: Mapping[int, int], target: str, units: Sequence[Unit]) -> list[int]:
    """Finds the item that each character of a translation repeats, or -1; each item is repeated at most once, where its
    weight is largest."""
    candidates: list[tuple[float, int, Span]] = []
    for index, number in words.items():
        looking = units[slice(*_aligned_units(units, number, number + 1))]
        if not looking:
            continue
        pattern = _repetition(marked.text, marked.items[index])
        for match in pattern.finditer(target, looking[0].begin, looking[-1].end):
            inside = [unit for unit in looking if unit.begin < match.end() and match.start() < unit.end]
            weight = sum(unit.weights.sum(number, number + 1) for unit in inside) / max(len(inside), 1)
            candidates.append((-weight, index, match.span()))
    holders = [-1] * len(target)
    done: set[int] = set()
    for _, index, (begin, end) in sorted(candidates):
        if index not in done and max(holders[begin:end]) < 0:
            done.add(index)
            holders[begin:end] = [index] * (end - begin)
    return holders


def _repetition(text: str, item: Item) -> re.Pattern[str]:
    """Returns the pattern of a repetition, which is not within a longer word, unless the part of the source is. It
    includes what a model adds to a digit that stands for a number, as in 2,000 or 2:00."""
    begin, end = item.begin, item.end
    seen = text[begin:end]
    before = r"(?<![^\W_])" if seen[0].isalnum() and not text[max(begin - 1, 0) : begin].isalnum() else ""
    after = r"(?![.,:/'’-]?[^\W_])" if seen[-1].isalnum() and not text[end : end + 1].isalnum() else ""
    if seen != item.text and seen in {*DIGITS}:
        before, after = r"(?<![^\W_])(?<!\d[.,:])", r"(?:[.,:]\d++)*+(?![.,:/'’]?[^\W_])"
    return re.compile(before + r"\s*".join(map(re.escape, seen.split())) + after)


def _aligned_units(units: Sequence[Unit], begin: int, end: int) -> Span:
    """Finds the target units that may have weight on source units from ``begin`` to ``end``, and others between
    them."""
    first = bisect_left(units, begin + 1, key=lambda unit: unit.weights.end)
    return first, bisect_left(units, end, lo=first, key=lambda unit: unit.weights.first)


def _cut(units: Sequence[Unit], holders: Sequence[int]) -> list[Unit]:
    """Divides units where the repetition of an item begins and ends."""
    return [
        replace(unit, begin=unit.begin + begin, end=unit.begin + end, held_by=holders[unit.begin + begin])
        for unit in units
        for begin, end in _runs(holders[unit.begin : unit.end])
    ]


def _replaced(words: Mapping[int, int], units: Sequence[Unit]) -> list[Unit]:
    """Replaces, for each item, the run of neighbouring units with the most weight on it, in which each weight is nearly
    the largest."""
    held = {unit.held_by for unit in units}
    item_of = {number: index for index, number in words.items() if index not in held}
    weights_of = defaultdict[int, dict[int, float]](dict)  # by the source unit of an item, and by target units
    for row, unit in enumerate(units):
        if unit.held_by < 0 and (best := unit.weights.best) in item_of:
            weights_of[best][row] = unit.weights.sum(best, best + 1)
    holder: dict[int, int] = {}
    for number, weights in weights_of.items():
        least = _NEARLY * max(weights.values())
        near = [row for row, weight in weights.items() if weight >= least]
        run = max(successive(near), key=lambda run: sum(weights[row] for row in range(*run)))
        holder |= dict.fromkeys(range(*run), item_of[number])
    return [replace(unit, held_by=holder.get(row, unit.held_by)) for row, unit in enumerate(units)]


def _merged(units: Sequence[Unit], words: Mapping[int, int]) -> list[Unit]:
    """Merges the units that an item replaces into one, with weight on that item only."""
    merged: list[Unit] = []
    for unit in units:
        if unit.held_by < 0:
            merged.append(unit)
        elif merged and merged[-1].held_by == unit.held_by:
            merged[-1] = replace(merged[-1], end=unit.end)
        else:
            weights_I = np.zeros(len(unit.weights.weights_I))
            weights_I[words[unit.held_by] - unit.weights.first] = 1.0
            merged.append(replace(unit, weights=UnitWeights(unit.weights.first, weights_I)))
    return merged


def _runs(values: Sequence[int]) -> Iterator[Span]:
    """Yields begin and end of each run of equal values."""
    end = 0
    for _, run in groupby(values):
        begin, end = end, end + len(list(run))
        yield begin, end


# ---------------------------------------------------------------------------------------------- where tags stand


@dataclass(frozen=True)
class _Element:
    """A pair of tags, by the index of its opening tag (-1 for the whole text), and the source units that it
    encloses."""

    item: int
    begin: int
    end: int
    children: list[_Element | int] = field(default_factory=list)
    """Elements, and items to place among them, in the order of the source."""


def _tree(marked: Marked, source_units: Sequence[Span], loose: Iterable[int]) -> _Element:
    """Builds the tree of elements of a text, with the tags without a partner and the ``loose`` words to place."""
    begins = [begin for begin, _ in source_units]
    root = _Element(-1, 0, len(source_units))
    opened = [root]
    unplaced = set(loose)
    for index, item in enumerate(marked.items):
        if item.kind == "open":
            ends = marked.items[item.partner].begin
            element = _Element(index, bisect_left(begins, item.begin), bisect_left(begins, ends))
            opened[-1].children.append(element)
            opened.append(element)
        elif item.kind == "close":
            opened.pop()
        elif item.kind == "alone" or index in unplaced:
            opened[-1].children.append(index)
    return root


class _Writer:
    """Puts units and items in the order of the translation, and writes them as text."""

    def __init__(self, marked: Marked, source_units: Sequence[Span], target: str, units: Sequence[Unit]) -> None:
        self._items = marked.items
        self._source = marked.text
        self._has_dots = "…" in marked.text or "..." in marked.text
        self._source_begins = [begin for begin, _ in source_units]
        self._target = target
        self._units = units
        self._aligned_to = defaultdict[int, list[int]](list)
        """The target units with most of their weight on each source unit, without punctuation on a word."""
        for number, unit in enumerate(units):
            best, is_mark = unit.weights.best, unit.held_by < 0 and _sort(target[unit.begin]) != "word"
            if best >= 0 and not (is_mark and _sort(marked.text[source_units[best][0]]) == "word"):
                self._aligned_to[best].append(number)
        self._placed = defaultdict[int, list[Item]](list)
        """The items before each unit, and at the end, in order."""

    def write(self, element: _Element, begin: int, end: int) -> None:
        """Places the children of an element, which encloses the target units from ``begin`` to ``end``."""
        intervals = self._intervals(element, begin, end)
        positions: list[tuple[Span, int]] = []
        for order, child in enumerate(element.children):
            gap = begin if order in intervals else self._gap(element, child, begin, end)
            for other, (first, last) in intervals.items():
                if first < gap < last:  # out of the interval, to the side where it is in the source
                    gap = last if other < order else first
                    break
            positions.append((intervals.get(order, (gap, gap)), order))
        for (first, last), order in sorted(positions):
            child = element.children[order]
            if isinstance(child, int):
                self._placed[first].append(self._items[child])
            elif first == last and not any(map(self._has_word, child.children)):
                self._placed[first].append(self._collapsed(child))
            else:
                self._placed[first].append(self._items[child.item])
                self.write(child, first, last)
                self._placed[last].append(self._items[self._items[child.item].partner])

    def _has_word(self, child: _Element | int) -> bool:
        """Returns True if a kept word must be placed in a child."""
        if isinstance(child, int):
            return self._items[child].kind == "word"
        return any(map(self._has_word, child.children))

    def _collapsed(self, element: _Element) -> Item:
        """Turns a pair of tags that encloses only tags into one item without a partner."""
        opening = self._items[element.item]
        closing = self._items[opening.partner]
        inside = (item for item in self._items[element.item : opening.partner + 1] if item.kind != "word")
        text = "".join(item.text for item in inside)
        leans = _leaning_of(opening, closing)
        return replace(opening, text=text, kind="alone", partner=-1, space_after=closing.space_after, leans=leans)

    def _intervals(self, element: _Element, begin: int, end: int) -> dict[int, Span]:
        """Finds the target units that elements enclose, by the order of the elements among the children, without
        overlap; the largest gain is placed first. An element that encloses no source unit, or finds no free target
        unit, has no interval."""
        is_free = [True] * (end - begin)
        waiting: dict[int, tuple[int, list[float]]] = {}
        for order, child in enumerate(element.children):
            if isinstance(child, _Element) and child.begin < child.end:
                first, last = _aligned_units(self._units, child.begin, child.end)
                first, last = max(first, begin), min(last, end)
                waiting[order] = (first - begin, self._gains(element, child, first, last))
        intervals: dict[int, Span] = {}
        best = {order: _best_interval(*candidate, is_free) for order, candidate in waiting.items()}
        while best:
            order = max(best, key=lambda candidate: best[candidate][0])
            _, first, last = best.pop(order)
            if not all(is_free[first:last]):
                best[order] = _best_interval(*waiting[order], is_free)
            elif first < last:
                intervals[order] = (begin + first, begin + last)
                is_free[first:last] = [False] * (last - first)
        return intervals

    def _gains(self, element: _Element, child: _Element, begin: int, end: int) -> list[float]:
        """Computes 2 p - 1 of each target unit; p is the share of its weight on an element that falls on a child of it.
        A unit without a link, whose weights are small, counts accordingly less; punctuation of a kind that the child
        does not have in the source, like the full stop after a menu's `…`, counts a little against a place inside."""
        sorts = {"word", *(_sort(self._source[offset]) for offset in self._source_begins[child.begin : child.end])}
        gains: list[float] = []
        for unit in self._units[begin:end]:
            total, mark = unit.weights.sum(element.begin, element.end), self._target[unit.begin]
            gain = (2 * unit.weights.sum(child.begin, child.end) / (total or 1.0) - 1) * min(max(total, SOFT), 1.0)
            if gains and mark == "…" and not self._has_dots:  # added to a word, as in German menus
                gain = float(np.copysign(_FOREIGN, gains[-1]))
            elif _sort(mark) not in sorts:
                gain = min(gain, -_FOREIGN)
            gains.append(gain)
        return gains

    def _gap(self, element: _Element, child: _Element | int, begin: int, end: int) -> int:
        """Finds the target unit, from ``begin`` to ``end``, before which a child that encloses none is placed: after
        the translation of the preceding unit, or before that of the unit that it leans on."""
        opening = self._items[child.item if isinstance(child, _Element) else child]
        closing = self._items[opening.partner] if isinstance(child, _Element) else opening
        leans = _leaning_of(opening, closing)
        before, after = (bisect_left(self._source_begins, position) for position in (opening.begin, closing.end))
        if leans == "right":
            runs = (self._run(unit, begin, end) for unit in range(after, element.end))
            return next((run[0] for run in runs if run is not None), end)
        if leans == "not" and after >= element.end > element.begin:
            return end
        runs = (self._run(unit, begin, end) for unit in reversed(range(element.begin, before)))
        position = next((run[1] for run in runs if run is not None), begin)
        while leans == "not" and begin < position < end and not self._white_space(position):
            position += 1
        return position

    def _run(self, source_unit: int, begin: int, end: int) -> Span | None:
        """Finds the run of neighbouring target units with most of their weight on a source unit; if there are several,
        the one with the largest weight."""
        return max(
            successive(unit for unit in self._aligned_to[source_unit] if begin <= unit < end),
            key=lambda run: max(self._units[unit].weights.sum(source_unit, source_unit + 1) for unit in range(*run)),
            default=None,
        )

    # ------------------------------------------------------------------------------------------- white space

    def _white_space(self, unit: int) -> str:
        """Returns the white space of the translation before a unit, or at its end."""
        begin = self._units[unit - 1].end if unit > 0 else 0
        return self._target[begin : self._units[unit].begin if unit < len(self._units) else len(self._target)]

    def spelt(self) -> str:
        """Writes the text; white space at its ends stays outside of all items."""
        texts, gaps, kept = list[str](), list[str](), list[int]()  # gaps: the white space before each text
        last = len(self._units)
        for index in range(last + 1):
            items = self._placed[index]
            space = self._white_space(index) if 0 < index < last else ""
            spaced = _spaced(items, bool(space), is_first=index == 0, is_last=index == last)
            gaps += [(space or " ") if is_spaced else "" for is_spaced in spaced]
            kept += [len(texts) + offset for offset, item in enumerate(items) if item.kind == "word"]
            texts += [item.text for item in items]
            if index < last and (unit := self._units[index]).held_by >= 0:
                kept.append(len(texts))
                texts.append(self._items[unit.held_by].text)
            elif index < last:
                texts.append(self._target[unit.begin : unit.end])
        _set_apart(texts, gaps, kept)
        body = "".join(gap + text for gap, text in zip(gaps, texts, strict=False))
        return self._white_space(0) + body + (self._white_space(last) if last else "")


def _best_interval(start: int, gains: Sequence[float], is_free: Sequence[bool]) -> tuple[float, int, int]:
    """Computes the largest sum of gains, which begin at the unit ``start``, over one or more free neighbouring units,
    and the span of these units, which is empty if no unit is free."""
    best = (-np.inf, 0, 0)
    total, first = 0.0, start
    for index, gain in enumerate(gains, start):
        if total <= 0.0:
            total, first = 0.0, index
        if not is_free[index]:
            total, first = 0.0, index + 1
            continue
        total += gain
        if total > best[0] + 1e-9:
            best = (total, first, index + 1)
    return best


def _sort(character: str) -> str:
    """Returns the kind of a punctuation mark: brackets and quotation marks, dashes, marks at the end of a sentence;
    each other mark is a kind of its own. Any other character is a word."""
    category = unicodedata.category(character)
    if category == "Po" and character not in "\"'":
        return "stop" if character in ".!?。．！？।" else character
    return "word" if category[0] != "P" else "dash" if category == "Pd" else "bracket"


def _leaning_of(opening: Item, closing: Item) -> Literal["left", "right", "not"]:
    """Returns the side that a pair without content leans on."""
    if opening is closing or opening.leans == "left":
        return opening.leans
    return "right" if closing.leans == "right" else "not"


def _spaced(items: Sequence[Item], has_space: bool, *, is_first: bool, is_last: bool) -> list[bool]:
    """Tells for each item between two units, and for the second unit, if there is white space before it: around items
    that do not lean to the left, as in the source, or else after all items that do. The ends of the text
    have no unit and no white space."""
    spaced = [False] * (len(items) + 1)
    for index, item in enumerate(items):
        if item.kind in ("alone", "word") and item.leans != "left":
            left, right = index, index + 1
            while left > 0 and items[left - 1].kind == "open":
                left -= 1
            while right < len(items) and items[right].kind == "close":
                right += 1
            spaced[left] |= item.space_before
            spaced[right] |= item.space_after and (has_space or is_first or is_last or right < len(items))
    divided = any(item.divides and not item.space_before and not item.space_after for item in items)
    if has_space and not any(spaced) and not divided:
        leaning = (item.kind == "close" or (item.kind != "open" and item.leans == "left") for item in items)
        spaced[next((index for index, leans in enumerate(leaning) if not leans), len(items))] = True
    spaced[0] &= not is_first
    spaced[-1] &= not is_last
    return spaced


def _set_apart(texts: Sequence[str], gaps: list[str], kept: Sequence[int]) -> None:
    """Inserts white space where a kept word would not be recognized beside its new neighbours."""
    for index in kept:
        first, last = index, index + 1
        while first > 0 and not gaps[first] and index - first < _NEAR:
            first -= 1
        while last < len(texts) and not gaps[last] and last - index < _NEAR:
            last += 1
        before, after = "".join(texts[first:index]), "".join(texts[index + 1 : last])
        if _count(texts[index], before + texts[index]) != _count(texts[index], before) + 1:
            gaps[index] = " "
        if _count(texts[index], texts[index] + after) != _count(texts[index], after) + 1:
            gaps[index + 1] = " "


def _count(item: str, text: str) -> int:
    """Counts how often an item is recognized in a text."""
    return sum(other.text == item for other in extract(text).items)
