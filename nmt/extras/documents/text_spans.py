"""Words and punctuation marks as separate units, finer than the white-space words of an alignment, so that a tag that
moves with a word leaves the comma after it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nmt.alignment import Links
from nmt.data.words import Span
from nmt.extras.documents.markup import Marked
from nmt.translator.aligner import PieceWeights


def units(text: str, marked: Marked | None = None) -> list[Span]:
    """Finds the units of a text: words, and each punctuation mark and each Chinese or Japanese character. In
    the text of ``marked`` each item of kind "word" is one unit, and no unit crosses a tag."""
    borders = () if marked is None else {offset for item in marked.items for offset in (item.begin, item.end)}
    kept = set() if marked is None else set(marked.kept)
    sorts = text.translate(_SORTS)
    spans: list[Span] = []
    for first, last in pairwise([0, *sorted(cut for cut in borders if 0 < cut < len(text)), len(text)]):
        found = _UNIT.finditer(sorts, first, last)
        spans += [(first, last)] if (first, last) in kept else [match.span() for match in found]
    return spans


class _UnitSorts(dict[int, str]):
    """A letter for the class of each code point: w, a character of words; j, a mark that may join the parts of a word;
    s, a punctuation mark, a symbol or an ideograph; or a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isspace():
            return " "
        ideograph = 0x2E80 <= code <= 0xA4CF or 0xF900 <= code <= 0xFAFF or 0xFF66 <= code <= 0xFF9F or code >= 0x20000
        is_word = not (ideograph or unicodedata.category(character)[0] in "PS")
        return "j" if character in "-'’.·" else "w" if is_word else "s"


_SORTS = _UnitSorts()
_UNIT = re.compile(r"w+(?:jw+)*|[js]")

SOFT = 0.3
"""Weight of the soft alignment relative to links. On hand-aligned sentences this value puts the most tags in the right
place (see docs/measurements/translation.md)."""


def to_units(weights: PieceWeights, target_units: Sequence[Span], source_units: Sequence[Span]) -> NDArray[np.float64]:
    """Computes the alignment between units, `weights_JI`.

    A source piece's weight goes to the units that it covers, in proportion; the row of a target unit is the mean of the
    pieces that cover it. The weight of end-of-sentence is left out. Each row sums to 1, or to 0 if no piece has any
    weight."""
    target_JT = _covered(target_units, weights.target_spans)
    source_IS = _covered(source_units, weights.source_spans)
    weights_TS = weights.weights_TS[: len(weights.target_spans), : len(weights.source_spans)]
    share_IS = source_IS / np.maximum(source_IS.sum(axis=0, keepdims=True), 1)
    mass_JI: NDArray[np.float64] = target_JT @ weights_TS @ share_IS.T
    total_J1 = mass_JI.sum(axis=1, keepdims=True)
    weights_JI = np.zeros_like(mass_JI)
    np.divide(mass_JI, total_J1, out=weights_JI, where=total_J1 > 0)
    return weights_JI


def with_links(weights_JI: NDArray[np.float64], links: Links) -> NDArray[np.float64]:
    """Computes weights that follow links, and the soft alignment if a unit has no link or several: each link of a
    target unit adds 1 to its soft weights, which sum to ``SOFT``."""
    weights_JI = SOFT * weights_JI
    for source, target in links:
        weights_JI[target, source] += 1.0
    return weights_JI


def _covered(units: Sequence[Span], pieces: Sequence[Span]) -> NDArray[np.float64]:
    """Counts the characters of each unit that each piece covers."""
    (unit_begins, unit_ends), (piece_begins, piece_ends) = (np.array(of).reshape(-1, 2).T for of in (units, pieces))
    ends, begins = np.minimum.outer(unit_ends, piece_ends), np.maximum.outer(unit_begins, piece_begins)
    covered: NDArray[np.float64] = np.maximum(ends - begins, 0.0)
    return covered
