"""Two directions joined, against plain loops over words."""

from __future__ import annotations

import numpy as np
import pytest

from nmt.alignment import Links
from nmt.alignment.directions import SYMMETRIZATIONS, join
from nmt.alignment.formats import Alignment
from nmt.alignment.symmetrize import HEURISTICS, symmetrize
from nmt.core.errors import InputError


def alignment(weights: np.ndarray, links: Links, sides: str = "st") -> Alignment:
    """Creates the alignment of a pair whose source words are s0 s1 …, target words t0 t1 …, or the other way round."""
    targets, sources = weights.shape
    words = [tuple(f"{side}{number}" for number in range(n)) for side, n in zip(sides, (sources, targets), strict=True)]
    return Alignment(words[0], words[1], links, weights)


def random_pair(random: np.random.Generator) -> tuple[Alignment, Alignment]:
    sources, targets = (int(n) for n in random.integers(1, 6, 2))
    forward, backward = (random.dirichlet(np.full(n, 0.3), m) for n, m in ((sources, targets), (targets, sources)))
    links = tuple((s, t) for s in range(sources) for t in range(targets) if random.random() < 0.3)
    swapped = tuple((t, s) for t in range(targets) for s in range(sources) if random.random() < 0.3)
    return alignment(forward, links), alignment(backward, swapped, "ts")


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_the_links_of_both_are_joined_by_the_heuristic(heuristic: str) -> None:
    random = np.random.default_rng(3)
    for _ in range(30):
        forward, backward = random_pair(random)
        found = join(heuristic)(forward, backward)
        assert (found.source_words, found.target_words) == (forward.source_words, forward.target_words)
        swapped = [(source, target) for target, source in backward.links]
        assert found.links == symmetrize(forward.links, swapped, heuristic)  # type: ignore[arg-type]
        assert found.sure == set(found.links) & set(forward.links) & set(swapped)
        np.testing.assert_allclose(found.weights_TS, (forward.weights_TS + backward.weights_TS.T) / 2)


@pytest.mark.parametrize(("name", "default"), [("soft-mean", 0.25), ("soft-product", 0.05)])
@pytest.mark.parametrize("threshold", [None, 0.1, 0.6, 1.0])
def test_soft_links_are_the_cells_that_reach_the_threshold(name: str, default: float, threshold: float | None) -> None:
    random = np.random.default_rng(4)
    numbers = np.zeros(2, np.int64)
    for _ in range(60):
        forward, backward = random_pair(random)
        found = join(name, threshold)(forward, backward)
        p, q = forward.weights_TS, backward.weights_TS.T
        joined = (p + q) / 2 if name == "soft-mean" else p * q
        np.testing.assert_allclose(found.weights_TS, joined)
        is_link = joined >= (default if threshold is None else threshold)
        assert found.links == tuple((int(s), int(t)) for s, t in np.argwhere(is_link.T))
        numbers += is_link.sum(), (~is_link).sum()
    assert (numbers > 0).all()


@pytest.mark.parametrize("name", ["soft-mean", "soft-product"])
def test_a_word_that_neither_model_can_see_gets_no_soft_link(name: str) -> None:
    # Nothing looks at it, so its column is 0 in the one matrix; it tells nothing, so its row is even in the other.
    seen, unseen = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    even = np.array([[0.7, 0.3], [0.5, 0.5]])
    assert join(name, 0.01)(alignment(unseen, ()), alignment(even, (), "ts")).links == ((0, 0), (0, 1))
    assert join(name, 0.01)(alignment(even, ()), alignment(unseen, (), "ts")).links == ((0, 0), (1, 0))
    assert len(join(name, 0.01)(alignment(seen, ()), alignment(seen, (), "ts")).links) == 4


@pytest.mark.parametrize("name", SYMMETRIZATIONS)
@pytest.mark.parametrize(("targets", "sources"), [(0, 3), (3, 0), (0, 0)])
def test_a_blank_side_gives_an_empty_alignment(name: str, targets: int, sources: int) -> None:
    sides = alignment(np.zeros((targets, sources)), ()), alignment(np.zeros((sources, targets)), (), "ts")
    found = join(name)(*sides)
    assert (found.links, found.weights_TS.shape) == ((), (targets, sources))


@pytest.mark.parametrize(
    ("name", "threshold", "message"),
    [
        ("soft", None, f"unknown symmetrization 'soft': choose one of {', '.join(SYMMETRIZATIONS)}"),
        ("union", 0.5, "threshold: is for soft-mean and soft-product, not for union; leave it out"),
        ("soft-mean", 0.0, "threshold 0: give one above 0 and at most 1"),
        ("soft-product", 1.5, "threshold 1.5: give one above 0 and at most 1"),
        ("soft-product", float("nan"), "threshold nan: give one above 0 and at most 1"),
    ],
)
def test_what_cannot_be_joined_so(name: str, threshold: float | None, message: str) -> None:
    with pytest.raises(InputError) as error:
        join(name, threshold)
    assert str(error.value) == message


def test_alignments_of_other_pairs_or_between_subwords_are_refused() -> None:
    forward = alignment(np.ones((2, 1)), ())
    with pytest.raises(ValueError, match="not of the same sentence pair"):
        join()(forward, alignment(np.ones((2, 1)), ()))
    pieces = Alignment(("t0", "t1"), ("s0",), (), np.ones((1, 2)), "subword", ("a", "b"), ("c",))
    with pytest.raises(ValueError, match="joined between words"):
        join()(forward, pieces)
