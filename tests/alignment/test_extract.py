from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from nmt.alignment.extract import BestSource, Extraction, Grow, Mutual, Share, Threshold
from nmt.alignment.symmetrize import symmetrize

RULES = [BestSource(), Share(), Threshold(), Mutual(), Grow()]

# "Er steht früh auf" - "He gets up early"
SEPARABLE = [[0.9, 0.05, 0.03, 0.02], [0.05, 0.55, 0.05, 0.35], [0.02, 0.35, 0.03, 0.6], [0.02, 0.03, 0.9, 0.05]]
THIN = np.full((1, 20), 0.05) + np.linspace(0, 0.001, 20)
COMPOUND = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]]  # "Jeanskleid ." - "jean dress ."


def plain(rule: Any, weights: np.ndarray) -> list[tuple[int, int]]:
    """Each rule in plain loops over the matrix (grow is tested through its parts)."""
    links = []
    for t, s in np.ndindex(weights.shape):
        row, column = weights[t].tolist(), weights[:, s].tolist()
        is_best, is_enough = s == row.index(max(row)), row[s] >= rule.threshold
        is_best_target = t == column.index(max(column)) and (len(column) == 1 or len(set(column)) > 1)
        keep = {
            "argmax": is_best and is_enough,
            "share": max(row) >= rule.threshold and row[s] >= getattr(rule, "share", 1) * max(row),
            "threshold": is_enough,
            "mutual": is_best and is_best_target and is_enough,
        }
        if keep[rule.kind] and (len(row) == 1 or len(set(row)) > 1):
            links.append((s, t))
    return sorted(links)


@pytest.mark.parametrize(
    "rule", [*RULES[:3], BestSource(threshold=0.4), Share(share=0.7, threshold=0.3), Mutual(threshold=0.2)]
)
def test_equals_plain_loops(rule: Any) -> None:
    random = np.random.default_rng(3)
    for _ in range(60):
        # Few distinct values make many ties; few words make constant rows.
        weights = random.integers(0, 4, (random.integers(1, 6), random.integers(1, 6))) / 4
        assert list(rule.links(weights)) == plain(rule, weights)


@pytest.mark.parametrize(
    ("rule", "links"),
    [
        (BestSource(threshold=0.5), ((0, 0),)), (Share(share=0.5, threshold=0.5), ((0, 0), (1, 0), (2, 0))),
        (Share(share=0.75, threshold=0.5), ((0, 0),)), (Threshold(threshold=0.25), ((0, 0), (1, 0), (2, 0))),
        (Mutual(threshold=0.5), ((0, 0),)), (Grow(threshold=0.5), ((0, 0),)),
    ],
)  # fmt: skip
def test_a_weight_at_the_threshold_is_enough(rule: Any, links: Any) -> None:
    assert rule.links([[0.5, 0.25, 0.25]]) == links


@pytest.mark.parametrize(
    ("rule", "weights", "links"),
    [
        # one word answers for several target words
        (BestSource(), COMPOUND, ((0, 0), (0, 1), (1, 2))),
        (Mutual(), COMPOUND, ((0, 0), (1, 2))),
        # both parts of a separable verb are linked
        (Share(), SEPARABLE, ((0, 0), (1, 1), (1, 2), (2, 3), (3, 1), (3, 2))),
        (BestSource(), SEPARABLE, ((0, 0), (1, 1), (2, 3), (3, 2))),
        # what one direction alone knows is added to mutual
        (Grow(), COMPOUND, ((0, 0), (0, 1), (1, 2))),
        (Grow(threshold=0.85), COMPOUND, ((0, 0),)),
        # the weight is spread thin
        (Share(), THIN, ()),
        (Share(threshold=0), THIN, tuple((source, 0) for source in range(20))),
    ],
)
def test_examples(rule: Any, weights: Any, links: Any) -> None:
    assert rule.links(weights) == links


def test_grow_joins_row_maxima_and_column_maxima() -> None:
    """Checks, for each of several matrices, that they are joined like the two directions of an aligner."""
    random = np.random.default_rng(4)
    matrices = [random.dirichlet(np.ones(shape[1]), size=shape[0]) for shape in [(4, 3), (4, 3), (2, 6), (5, 5)] * 5]
    best = BestSource(threshold=0.3)
    expected = []
    for weights_TS in matrices:
        backward = tuple(sorted((source, target) for target, source in best.links(weights_TS.T)))
        expected.append(symmetrize(best.links(weights_TS), backward, "grow-diag-final-and"))
    assert expected != [best.links(weights_TS) for weights_TS in matrices]
    assert Grow(threshold=0.3).links_of(matrices) == expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_what_all_rules_have_in_common(rule: Any) -> None:
    for equal, expected in (([[0.5, 0.5]], ()), ([[0.5, 0.5], [0.9, 0.1]], ((0, 1),)), ([[1.0]], ((0, 0),))):
        assert rule.links(equal) == expected
    for shape in ((0, 0), (0, 3), (3, 0)):
        assert rule.links(np.zeros(shape)) == ()
    links = rule.links(np.random.default_rng(0).dirichlet(np.full(7, 0.2), size=9).astype(np.float32))
    assert links == tuple(sorted(set(links)))
    assert {type(index) for link in links for index in link} == {int}
    assert all(0 <= source < 7 and 0 <= target < 9 for source, target in links)


def test_the_kind_chooses_the_rule_in_a_configuration() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Extraction)
    assert adapter.validate_python({"kind": "share", "share": 0.5}) == Share(share=0.5)
    for wrong in ({"kind": "share", "treshold": 0.5}, {"kind": "argmax", "threshold": 2.0}, {"kind": "best"}):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)


def test_bad_matrices_raise() -> None:
    with pytest.raises(ValueError, match="NaN"):
        BestSource().links([[np.nan, 1]])
    with pytest.raises(ValueError, match="matrix"):
        BestSource().links([0.5, 0.5])
