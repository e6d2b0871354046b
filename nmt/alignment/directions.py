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

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from nmt.alignment import Links, Weights
from nmt.alignment.extract import Threshold
from nmt.alignment.formats import Alignment
from nmt.alignment.symmetrize import HEURISTICS, Heuristic, symmetrize
from nmt.core.errors import InputError

Symmetrization: TypeAlias = Heuristic | Literal["soft-mean", "soft-product"]

SOFT = {"soft-mean": 0.25, "soft-product": 0.05}
"""Default thresholds of the symmetrizations that join matrices."""

SYMMETRIZATIONS: tuple[str, ...] = (*HEURISTICS, *SOFT)

DEFAULT: Symmetrization = "grow-diag-final-and"


class Join(ABC):
    """Joins two alignments into one."""

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
        weights_TS = self._weights(np.asarray(forward.weights_TS), np.asarray(backward.weights_TS).T)
        swapped = _swapped(backward.links)
        links = self._links(forward.links, swapped, weights_TS)
        return Alignment(
            forward.source_words,
            forward.target_words,
            links,
            weights_TS,
            source_spans=forward.source_spans,
            target_spans=forward.target_spans,
            sure=frozenset(links) & frozenset(forward.links) & frozenset(swapped),
        )

    @property
    @abstractmethod
    def explanation(self) -> str:
        """The rule in a sentence, for users."""

    @abstractmethod
    def _weights(self, forward_TS: Weights, backward_TS: Weights) -> Weights: ...

    @abstractmethod
    def _links(self, forward: Links, backward: Links, weights_TS: Weights) -> Links: ...


@dataclass(frozen=True)
class JoinLinks(Join):
    """Joins the links of both by a heuristic; the weights are the mean of both."""

    heuristic: Heuristic

    @property
    def explanation(self) -> str:
        return f"The links of the two directions are joined by {self.heuristic}; the weights are the mean."

    def _weights(self, forward_TS: Weights, backward_TS: Weights) -> Weights:
        return _mean(forward_TS, backward_TS)

    def _links(self, forward: Links, backward: Links, weights_TS: Weights) -> Links:
        return symmetrize(forward, backward, self.heuristic)


@dataclass(frozen=True)
class _JoinWeights(Join):
    """Links words whose joined weights are at least a threshold, independently of the links of each direction."""

    threshold: float

    def _links(self, forward: Links, backward: Links, weights_TS: Weights) -> Links:
        # the rule is applied from both sides: a word of equal weights, on either side, gets no link
        rule = Threshold(threshold=self.threshold)
        return symmetrize(rule.links(weights_TS), _swapped(rule.links(weights_TS.T)), "intersection")


class SoftMean(_JoinWeights):
    """Joins weights by their mean."""

    @property
    def explanation(self) -> str:
        return f"A link is a mean of the weights of both directions of at least {self.threshold:.0%}."

    def _weights(self, forward_TS: Weights, backward_TS: Weights) -> Weights:
        return _mean(forward_TS, backward_TS)


class SoftProduct(_JoinWeights):
    """Joins weights by their product."""

    @property
    def explanation(self) -> str:
        return f"A link is a product of the weights of both directions of at least {self.threshold:.0%}."

    def _weights(self, forward_TS: Weights, backward_TS: Weights) -> Weights:
        product_TS: NDArray[np.floating] = forward_TS * backward_TS
        return product_TS


def join(name: str = DEFAULT, threshold: float | None = None) -> Join:
    """Returns the symmetrization of a name. Raises InputError if the name is unknown, if a threshold is given to one
    that has none, and if the threshold is not above 0 and at most 1."""
    if name not in SYMMETRIZATIONS:
        raise InputError(f"unknown symmetrization {name!r}: choose one of {', '.join(SYMMETRIZATIONS)}")
    if name not in SOFT:
        if threshold is not None:
            raise InputError(f"threshold: is for {' and '.join(SOFT)}, not for {name}; leave it out")
        return JoinLinks(cast(Heuristic, name))
    threshold = SOFT[name] if threshold is None else threshold
    if not 0 < threshold <= 1:
        raise InputError(f"threshold {threshold:g}: give one above 0 and at most 1")
    return SoftMean(threshold) if name == "soft-mean" else SoftProduct(threshold)


def _swapped(links: Links) -> Links:
    return tuple(sorted((source, target) for target, source in links))


def _mean(forward_TS: Weights, backward_TS: Weights) -> Weights:
    mean_TS: NDArray[np.floating] = (forward_TS + backward_TS) / 2
    return mean_TS
