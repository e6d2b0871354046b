"""Rules that extract links from a soft alignment.

Every rule is a frozen configuration with a method `links(weights_TS)`; its `kind` is its name in a config:

    argmax     each target word with its best source word
    share      each target word with every source word that has at least a share of the best one's weight
    threshold  every cell with at least a given weight
    mutual     cells that are the best of their row and of their column
    grow       mutual, grown towards all row and column maxima (grow-diag-final-and)

`argmax` lets one source word answer for several target words (a German compound for several English words), but never
several source words for one target word. `share` does both: for "Er steht früh auf" - "He gets up early" the rows of
"gets" and of "up" divide their weight between "steht" and "auf", and both halves of the verb are linked. `mutual` is
precise and gives one-to-one links only; `grow` recovers some of what it misses.

In all rules, a row whose weights are all equal, so that no source word stands out, gives no link, unless the source has
only one word; for column maxima the same is true of columns. If several maxima are equal, the first word wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from nmt.alignment import Links
from nmt.config.kinds import BareKind
from nmt.config.structure import Structure

Fraction: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A weight or a ratio of weights, from 0 to 1."""


class ExtractionRule(Structure):
    """Keys that every rule has."""

    sentence: ClassVar[str]
    """Describes the rule to users, with its keys in braces; ``at_least`` is the threshold."""

    heads: Annotated[str, Field(min_length=1)] = "*"
    """Pattern of the heads whose weights are averaged into the matrix: `layer3.*`, `*.head1`."""

    aligner_share: Fraction = 0.5
    """Weight of the aligner in `--method trained`; the model has the rest."""

    def explanation(self, heads: int = 1) -> str:
        """Describes the rule in a sentence and, if the weights are the mean of several heads, their number."""
        keys = self.model_dump()
        at_least = f", if it is at least {keys['threshold']:.0%}" if keys["threshold"] else ""
        mean = f" The weights are the mean of {heads} heads." if heads > 1 else ""
        return self.sentence.format(at_least=at_least, **keys) + mean


class BestSource(ExtractionRule):
    """Links each target word with the source word of the highest weight, if that is at least `threshold`."""

    sentence: ClassVar[str] = "Linked: the strongest weight of each target word{at_least}."
    kind: Literal["argmax"] = "argmax"
    threshold: Fraction = 0.0
    """Smallest weight of a link."""

    def links(self, weights_TS: ArrayLike) -> Links:
        """Extracts the links of one sentence pair."""
        weights_TS = _checked(weights_TS)
        return _links(_row_best(weights_TS) & (weights_TS >= self.threshold))


class Share(ExtractionRule):
    """Links each target word with every source word whose weight is at least `share` times the highest of the row.

    Rows whose highest weight is below `threshold` give no link: if the weight is spread over a long sentence, many
    words have a large share of a maximum that is meaningless. With `share` 1 only equal maxima are linked together.
    """

    sentence: ClassVar[str] = "Linked: of each target word, weights from {share:.0%} of its strongest one{at_least}."
    kind: Literal["share"] = "share"
    share: Annotated[float, Field(gt=0, le=1)] = 0.4
    """Smallest weight of a link, as a share of the highest weight of its row."""
    threshold: Fraction = 0.2
    """Smallest maximum of a row that gives links."""

    def links(self, weights_TS: ArrayLike) -> Links:
        """Extracts the links of one sentence pair."""
        weights_TS = _checked(weights_TS)
        best_T1 = weights_TS.max(axis=1, keepdims=True, initial=0)
        return _links(_stands_out(weights_TS) & (best_T1 >= self.threshold) & (weights_TS >= self.share * best_T1))


class Threshold(ExtractionRule):
    """Links the words of every cell whose weight is at least `threshold`; a target word may get any number of links."""

    sentence: ClassVar[str] = "Linked: every weight of at least {threshold:.0%}."
    kind: Literal["threshold"] = "threshold"
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Smallest weight of a link."""

    def links(self, weights_TS: ArrayLike) -> Links:
        """Extracts the links of one sentence pair."""
        weights_TS = _checked(weights_TS)
        return _links(_stands_out(weights_TS) & (weights_TS >= self.threshold))


class Mutual(ExtractionRule):
    """Links the words of cells that are the maximum of their row and of their column, with a weight of at least
    `threshold`."""

    sentence: ClassVar[str] = "Linked: the strongest weight of a row and of a column{at_least}."
    kind: Literal["mutual"] = "mutual"
    threshold: Fraction = 0.0
    """Smallest weight of a link."""

    def links(self, weights_TS: ArrayLike) -> Links:
        """Extracts the links of one sentence pair."""
        weights_TS = _checked(weights_TS)
        return _links(_row_best(weights_TS) & _row_best(weights_TS.T).T & (weights_TS >= self.threshold))


class Grow(ExtractionRule):
    """Symmetrizes the row maxima and the column maxima of one matrix like the two directions of a statistical aligner.

    The row maxima are the forward alignment and the column maxima the backward one; a maximum counts if it is at least
    `threshold`. See `nmt.alignment.symmetrize` for the rule, grow-diag-final-and.
    """

    sentence: ClassVar[str] = (
        "Linked: the strongest weight of a row and of a column{at_least}, then the strongest of either, beside a link "
        "or between words that have none."
    )
    kind: Literal["grow"] = "grow"
    threshold: Fraction = 0.0
    """Smallest weight of a link."""

    def links(self, weights_TS: ArrayLike) -> Links:
        """Extracts the links of one sentence pair."""
        return self.links_of([weights_TS])[0]

    def links_of(self, matrices: Sequence[ArrayLike]) -> list[Links]:
        """Extracts the links of several sentence pairs, faster than one by one, because matrices of one shape are
        computed together."""
        from nmt.alignment.symmetrize import symmetrize

        checked = [_checked(weights_TS) for weights_TS in matrices]
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for row, weights_TS in enumerate(checked):
            by_shape.setdefault(weights_TS.shape, []).append(row)
        links_B: list[Links] = [()] * len(checked)
        for rows in by_shape.values():
            weights_BTS = np.stack([checked[row] for row in rows])
            # A row of equal weights could still hold the maximum of a column.
            counts_BTS = (weights_BTS >= self.threshold) & _stands_out(weights_BTS)
            forward_BTS = _row_best(weights_BTS) & counts_BTS
            backward_BTS = _row_best(weights_BTS.swapaxes(1, 2)).swapaxes(1, 2) & counts_BTS
            differ_B = (forward_BTS != backward_BTS).any(axis=(1, 2)).tolist()
            both = zip(_links_of(forward_BTS), _links_of(backward_BTS), strict=True)
            for row, differ, (forward, backward) in zip(rows, differ_B, both, strict=True):
                links_B[row] = symmetrize(forward, backward, "grow-diag-final-and") if differ else forward
        return links_B


Extraction: TypeAlias = Annotated[BestSource | Share | Threshold | Mutual | Grow, Field(discriminator="kind"), BareKind]
"""Any of the rules, as a field of a configuration."""


def _checked(weights_TS: ArrayLike) -> NDArray[np.float64]:
    weights_TS = np.asarray(weights_TS, dtype=np.float64)
    if weights_TS.ndim != 2:
        raise ValueError(f"a soft alignment is a matrix, target x source, not of shape {weights_TS.shape}")
    if np.isnan(weights_TS).any():
        raise ValueError("a soft alignment must not hold NaN")
    return weights_TS


def _stands_out(weights_TS: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns a mask of the rows, (..., T, 1), in which some source word has more weight than another or is the only
    one."""
    *BT, S = weights_TS.shape
    if S <= 1:
        return np.ones((*BT, 1), dtype=np.bool_)
    distinct_T1: NDArray[np.bool_] = weights_TS.max(axis=-1, keepdims=True) > weights_TS.min(axis=-1, keepdims=True)
    return distinct_T1


def _row_best(weights_TS: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns a mask of the first maximum of each row, (..., T, S), without rows in which no word stands out."""
    if not weights_TS.size:
        return np.zeros(weights_TS.shape, dtype=np.bool_)
    best_TS: NDArray[np.bool_] = np.arange(weights_TS.shape[-1]) == weights_TS.argmax(axis=-1)[..., None]
    return best_TS & _stands_out(weights_TS)


def _links(chosen_TS: NDArray[np.bool_]) -> Links:
    return _links_of(chosen_TS[None])[0]


def _links_of(chosen_BTS: NDArray[np.bool_]) -> list[Links]:
    # Column-major order of a matrix is the sorted order of (source, target).
    _, source_N, target_N = np.nonzero(chosen_BTS.swapaxes(1, 2))
    links = list(zip(source_N.tolist(), target_N.tolist(), strict=True))
    end_B = chosen_BTS.sum(axis=(1, 2)).cumsum().tolist()
    return [tuple(links[begin:end]) for begin, end in pairwise([0, *end_B])]
