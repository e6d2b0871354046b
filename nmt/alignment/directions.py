"""Joins two alignments of the same sentence pair, by models of both directions.

With p_ts the weights of the forward model, which translates source to target, and q_st those of the backward one, which
translates target to source, rows of p being distributions over the source and rows of q over the target:

    a heuristic   the links of both, joined as `nmt.alignment.symmetrize` says; the matrix is that of soft-mean
    soft-mean     link where (p_ts + q_st) / 2 is at least a threshold, 0.25 by default
    soft-product  link where p_ts q_st         is at least a threshold, 0.05 by default

Liang, Taskar and Klein 2006 ("Alignment by Agreement") multiply the posteriors of two directions: a link needs both,
where the mean lets one that is certain decide. Both matrices lie between 0 and 1, but their rows need not sum to 1. A
word of either side whose joined weights are all equal gets no soft link, unless the other side has only one word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

import numpy as np

from nmt.alignment.extract import Threshold
from nmt.alignment.formats import Alignment
from nmt.alignment.symmetrize import HEURISTICS, Heuristic, swapped, symmetrize
from nmt.core.errors import InputError

Symmetrization: TypeAlias = Heuristic | Literal["soft-mean", "soft-product"]

SOFT = {"soft-mean": 0.25, "soft-product": 0.05}
"""Default thresholds of the symmetrizations that join matrices."""

SYMMETRIZATIONS: tuple[str, ...] = (*HEURISTICS, *SOFT)

DEFAULT: Symmetrization = "grow-diag-final-and"


@dataclass(frozen=True)
class Join:
    """Joins two alignments into one by a symmetrization."""

    name: str
    threshold: float | None = None
    """Smallest joined weight of a link; None for a heuristic."""

    @property
    def is_soft(self) -> bool:
        """True if links come from the joined matrix, and not from the links of both."""
        return self.threshold is not None

    @property
    def explanation(self) -> str:
        """The rule in a sentence, for users."""
        if self.threshold is None:
            return f"The links of the two directions are joined by {self.name}; the weights are the mean."
        weight = self.name.removeprefix("soft-")
        return f"A link is a {weight} of the weights of both directions of at least {self.threshold:.0%}."

    def __call__(self, forward: Alignment, backward: Alignment) -> Alignment:
        """Joins a forward and a backward alignment of a pair; the source of the backward one is the pair's target.
        Links of both are sure. If one of them is blank, the result is blank. Raises ValueError unless both are at level
        "word" and have the same words."""
        if (forward.level, backward.level) != ("word", "word"):
            raise ValueError("two directions are joined between words")
        for each in (forward, backward):  # blank if the pair is too long for a model
            if not (each.source_words or each.target_words):
                return each
        if (backward.target_words, backward.source_words) != (forward.source_words, forward.target_words):
            raise ValueError("the two directions are not of the same sentence pair")
        p_TS, q_TS = np.asarray(forward.weights_TS), np.asarray(backward.weights_TS).T
        weights_TS = p_TS * q_TS if self.name == "soft-product" else (p_TS + q_TS) / 2
        backward_links = swapped(backward.links)
        if self.threshold is None:
            links = symmetrize(forward.links, backward_links, cast(Heuristic, self.name))
        else:
            # the rule is applied from both sides: a word of equal weights, on either side, gets no link
            rule = Threshold(threshold=self.threshold)
            links = symmetrize(rule.links(weights_TS), swapped(rule.links(weights_TS.T)), "intersection")
        sure = frozenset(links) & frozenset(forward.links) & frozenset(backward_links)
        return replace(forward, links=links, weights_TS=weights_TS, scores=None, sure=sure, magnitude="relative")


def join(name: str = DEFAULT, threshold: float | None = None) -> Join:
    """Returns the symmetrization of a name. Raises InputError if the name is unknown, if a threshold is given to one
    that has none, and if the threshold is not above 0 and at most 1."""
    if name not in SYMMETRIZATIONS:
        raise InputError(f"unknown symmetrization {name!r}: choose one of {', '.join(SYMMETRIZATIONS)}")
    if name not in SOFT and threshold is not None:
        raise InputError(f"threshold: is for {' and '.join(SOFT)}, not for {name}; leave it out")
    threshold = SOFT.get(name) if threshold is None else threshold
    if threshold is not None and not 0 < threshold <= 1:
        raise InputError(f"threshold {threshold:g}: give one above 0 and at most 1")
    return Join(name, threshold)
