"""The best validation so far, patience and plateaus."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nmt.training.validation import BestValidation, rank


def after(
    best: BestValidation, update: int, patience: int | None = None, metric: str = "bleu", **figures: float
) -> Any:
    return best.after(figures, update, metric=metric, patience=patience)


def test_standing_counts_gains_patience_and_plateaus() -> None:
    standing = BestValidation()
    seen = []
    for update, value in enumerate([5.0, 4.0, 4.5, 4.0, 4.1, 3.0, 3.5], 1):
        standing = after(standing, update, 2, "loss", loss=value)
        seen.append((standing.best_update, standing.without_gain, standing.plateaus))
    assert seen == [(1, 0, 0), (2, 0, 0), (2, 1, 0), (2, 2, 1), (2, 3, 1), (6, 0, 1), (6, 1, 1)]


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_higher_is_better_for_bleu_and_chrf(metric: str) -> None:
    standing = after(BestValidation(), 1, metric=metric, loss=2.0, **{metric: 10.0})
    assert after(standing, 2, metric=metric, loss=3.0, **{metric: 11.0}).best_update == 2
    assert after(standing, 2, metric=metric, loss=1.0, **{metric: 9.0}).best_update == 1


def test_of_bleu_0_chrf_decides_and_then_the_loss() -> None:
    """BLEU is 0 for lines of one word, for example. The same score counts neither as a gain nor against patience, if
    its loss is lower."""
    standing, seen = BestValidation(), []
    bleus, chrfs = [0, 0, 0, 0, 0, 0, 0.1, 0], [11, 39, 38, 39, 39, 40, 20, 99]
    losses = [5.0, 6.0, 4.0, 5.5, 5.8, 6.0, 9.0, 1.0]
    for update, values in enumerate(zip(bleus, chrfs, losses, strict=True), 1):
        figures = dict(zip(("bleu", "chrf", "loss"), values, strict=True))
        tie = standing.tie_break(figures, "bleu")
        standing = after(standing, update, 2, **figures)
        seen.append((tie, standing.best_update, standing.without_gain, standing.plateaus))
    assert seen == [
        (None, 1, 0, 0), ("chrf", 2, 0, 0), ("chrf", 2, 1, 0), ("loss", 4, 1, 0), ("loss", 4, 2, 1), ("chrf", 6, 0, 1),
        (None, 7, 0, 1), (None, 7, 1, 1),
    ]  # fmt: skip


def recomputed(validations: Sequence[Mapping[str, float]], metric: str, patience: int) -> tuple[int, int, int, int]:
    """Best, validations without gain, plateaus and the end by a patience of 3, by a plain loop over all of them."""
    sign = -1.0 if metric == "loss" else 1.0

    def better(one: Mapping[str, float], other: Mapping[str, float]) -> bool | None:
        """Returns True if the first is better, None if the scores are equal."""
        if one[metric] != other[metric]:
            return sign * one[metric] > sign * other[metric]
        if metric == "bleu" and one["bleu"] == 0.0 and one["chrf"] != other["chrf"]:
            return one["chrf"] > other["chrf"]
        return None

    best, waited, since, plateaus, end = 0, 0, 0, 0, len(validations)
    for place in range(1, len(validations)):
        found = better(validations[place], validations[best])
        if found is None and validations[place]["loss"] < validations[best]["loss"]:
            best = place
        elif found:
            best, waited, since = place, 0, 0
        else:
            waited, since = waited + 1, since + 1
            if since == patience:
                since, plateaus = 0, plateaus + 1
        if waited == 3:
            end = min(end, place)
    return best, waited, plateaus, end


CHOICES = {"loss": [1.0, 2.0, 3.0], "bleu": [0.0, 0.0, 0.0, 5.0, 6.0], "chrf": [0.0, 20.0, 30.0]}


@pytest.mark.parametrize("metric", ["loss", "bleu", "chrf"])
def test_the_best_and_patience_are_those_of_a_plain_loop(metric: str) -> None:
    """On drawn figures of few values, so that ties are frequent."""
    ties = 0
    for seed in range(200):
        draw = random.Random(seed)
        validations = [
            {name: draw.choice(choices) for name, choices in CHOICES.items()} for _ in range(draw.randrange(1, 15))
        ]
        standing, end = BestValidation(), len(validations)
        for place, figures in enumerate(validations):
            ties += standing.tie_break(figures, metric) is not None
            standing = standing.after(figures, place, metric=metric, patience=2)
            if standing.without_gain == 3:
                end = min(end, place)
        found = standing.best_update, standing.without_gain, standing.plateaus, end
        assert found == recomputed(validations, metric, 2), (metric, validations)
        assert standing.best == validations[standing.best_update][metric]
    assert ties > 100


def test_the_best_of_an_older_release_is_known_by_its_metric_alone() -> None:
    old = BestValidation(best=20.0, best_update=4, without_gain=1, figures={"bleu": 20.0})
    worse = after(old, 5, bleu=19.0, chrf=50.0, loss=1.0)
    assert (worse.best_update, worse.without_gain, worse.figures) == (4, 2, {"bleu": 20.0})
    assert after(old, 5, bleu=20.0, chrf=50.0, loss=1.0).best_update == 5
    assert after(old, 5, bleu=21.0, chrf=50.0, loss=1.0).without_gain == 0
    nothing = BestValidation(best=0.0, best_update=4, without_gain=1, figures={"bleu": 0.0})
    assert after(nothing, 5, bleu=0.0, chrf=1.0, loss=9.0).best_update == 5


def test_a_figure_that_is_not_there_is_worse_than_any() -> None:
    assert rank({}, "bleu") < rank({"bleu": 0.0}, "bleu") < rank({"bleu": 0.0, "chrf": 1.0, "loss": 9.0}, "bleu")
    assert rank({"loss": None}, "loss") < rank({"loss": 1e9}, "loss")
