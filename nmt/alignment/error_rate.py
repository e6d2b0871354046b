"""Alignment error rate, precision and recall of links against sure and possible gold links.

Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models". With A the predicted links, S the
sure and P the possible gold links (P includes S), each summed over all sentence pairs before anything is divided:

    precision = |A ∩ P| / |A|
    recall    = |A ∩ S| / |S|
    AER       = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    F1        = 2 |A ∩ S| / (|A| + |S|)             on sure links only: a possible link counts as wrong

If a denominator is 0, precision is 1 without predicted links, recall is 1 without sure links, and without either AER is
0 and F1 is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from operator import add

from nmt.alignment import Link
from nmt.alignment.symmetrize import swapped
from nmt.core.errors import InputError

RATES = {"aer": "AER", "precision": "precision", "recall": "recall", "f1": "F1 (sure)"}
"""The rates of a score, and their names for users."""


@dataclass(frozen=True)
class Gold:
    """The reference links of one sentence pair. `possible` always includes `sure`, as in the formulas."""

    sure: frozenset[Link] = frozenset()
    possible: frozenset[Link] = frozenset()
    is_judged: bool = True
    """True if the pair is annotated; other pairs do not count."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.possible | self.sure)

    def turned(self) -> Gold:
        """Returns the links with source and target exchanged."""
        return Gold(frozenset(swapped(self.sure)), frozenset(swapped(self.possible)), self.is_judged)


@dataclass(frozen=True)
class AlignmentScore:
    """Counts over a corpus, and rates from 0 to 1. The scores of parts add up with `+`."""

    sentences: int = 0
    predicted: int = 0
    """|A|"""
    sure: int = 0
    """|S|"""
    predicted_sure: int = 0
    """|A ∩ S|"""
    predicted_possible: int = 0
    """|A ∩ P|"""

    def __add__(self, other: AlignmentScore) -> AlignmentScore:
        return AlignmentScore(*map(add, astuple(self), astuple(other)))

    @property
    def aer(self) -> float:
        """The alignment error rate; lower is better."""
        total = self.predicted + self.sure
        return 1 - (self.predicted_sure + self.predicted_possible) / total if total else 0.0

    @property
    def precision(self) -> float:
        """The share of the predicted links that are at least possible."""
        return self.predicted_possible / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """The share of the sure links that are predicted."""
        return self.predicted_sure / self.sure if self.sure else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall where both count sure links only."""
        total = self.predicted + self.sure
        return 2 * self.predicted_sure / total if total else 1.0

    def line(self) -> str:
        """Formats the rates in per cent on one line."""
        return (
            f"AER {100 * self.aer:.1f}  precision {100 * self.precision:.1f}  recall {100 * self.recall:.1f}  "
            f"F1 (sure) {100 * self.f1:.1f}  [{self.sentences} sentences, {self.predicted} links, {self.sure} sure]"
        )

    def as_dict(self) -> dict[str, float | int]:
        """Returns the rates (fractions, not rounded) and the counts for JSON; the keys are stable."""
        return {rate: getattr(self, rate) for rate in RATES} | asdict(self)


def score_pair(links: Iterable[Link], gold: Gold) -> AlignmentScore:
    """Counts the links of one sentence pair."""
    if not gold.is_judged:
        return AlignmentScore()
    predicted = frozenset(links)
    hits = len(predicted & gold.sure), len(predicted & gold.possible)
    return AlignmentScore(1, len(predicted), len(gold.sure), *hits)


def score(predicted: Sequence[Iterable[Link]], gold: Sequence[Gold]) -> AlignmentScore:
    """Computes the score of a corpus from one set of links and one gold record per sentence pair.

    Raises InputError when their numbers differ.
    """
    if len(predicted) != len(gold):
        raise InputError(
            f"{len(predicted)} aligned sentence pairs but {len(gold)} gold lines: "
            "give one gold line per pair, an empty one for a pair without links"
        )
    return sum(map(score_pair, predicted, gold), AlignmentScore())
