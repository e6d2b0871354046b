"""Hidden Markov models of alignment against sums over all alignments."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from nmt.extras.aligner import hmm
from nmt.extras.aligner.hmm import EMPTY_PROBABILITY, PRIOR, Hmm, HmmPair, learn, posterior

REACH = 2


Sides = tuple[list[np.ndarray], list[np.ndarray]]
TOKENS: dict[str, Any] = {"source_tokens": 30, "target_tokens": 30}


def _direction(seed: int) -> Hmm:
    random = np.random.default_rng(seed)
    draw = lambda size: random.random(size, np.float32) + np.float32(0.05)  # noqa: E731
    return Hmm(draw(1), draw(4), draw(4), draw(4), draw(2 * REACH + 1), draw(REACH + 1))


@pytest.fixture(params=[True, False], ids=["kernel", "numpy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once by the kernel and once by numpy."""
    if not request.param:
        monkeypatch.setattr(hmm, "_kernels", lambda: None)
    elif hmm._kernels() is None:
        pytest.skip("no C++ compiler: numpy is used")


def _by_enumeration(
    direction: Hmm, link_ST: list[list[float]], empty_T: list[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The posterior of links, of the empty word, of jumps and of first positions, from every alignment: each token has
    a position or the empty word. A jump counts from the last token that has a position; the first that has one draws it
    from ``first``."""
    S, T = len(link_ST), len(empty_T)
    jump, first = direction.jump_J.tolist(), direction.first_W1.tolist()
    capped = lambda distance: max(-REACH, min(REACH, distance)) + REACH  # noqa: E731
    start = [first[min(i, REACH)] for i in range(S)]
    links, empties = np.zeros((S, T)), np.zeros(T)
    jumps, firsts = np.zeros(2 * REACH + 1), np.zeros(REACH + 1)
    total = 0.0
    for alignment in product([None, *range(S)], repeat=T):
        p, last = 1.0, None
        for time, here in enumerate(alignment):
            if here is None:
                p *= EMPTY_PROBABILITY * empty_T[time]
                continue
            p *= (1 - EMPTY_PROBABILITY) * link_ST[here][time]
            if last is None:
                p *= start[here] / sum(start)
            else:
                p *= jump[capped(here - last)] / sum(jump[capped(to - last)] for to in range(S))
            last = here
        total += p
        linked = [(time, here) for time, here in enumerate(alignment) if here is not None]
        for time, here in linked:
            links[here, time] += p
        for time in set(range(T)) - {time for time, _ in linked}:
            empties[time] += p
        for (_, before), (_, here) in pairwise(linked):
            jumps[capped(here - before)] += p
        for _, here in linked[:1]:
            firsts[min(here, REACH)] += p
    return links / total, empties / total, jumps / total, firsts / total


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (4, 3), (2, 4)])
def test_posterior_is_the_sum_over_all_alignments(shape: tuple[int, int]) -> None:
    S, T = shape
    direction = _direction(S + 10 * T)
    random = np.random.default_rng(S * T)
    link_ST, empty_T = random.random((S, T)) + 0.01, random.random(T) + 0.01
    batch = link_ST[None].astype(np.float32), empty_T[None].astype(np.float32)
    found = posterior(direction, *batch, np.array([S]), np.array([T]))
    expected = _by_enumeration(direction, link_ST.tolist(), empty_T.tolist())
    for one, other in zip((found.link_BST[0], found.empty_BT[0], found.jump_J, found.first_W1), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.usefixtures("way")
def test_what_cannot_be_explained_is_no_number_less() -> None:
    """Tokens whose every probability is 0 leave finite counts."""
    nothing = np.zeros((1, 3, 2), np.float32)
    found = posterior(_direction(4), nothing, nothing[:, 0], np.array([3]), np.array([2]))
    assert all(np.isfinite(each).all() for each in found)


@pytest.mark.usefixtures("way")
def test_padding_changes_nothing() -> None:
    direction = _direction(3)
    random = np.random.default_rng(5)
    link_BST, empty_BT = random.random((3, 5, 6), np.float32), random.random((3, 6), np.float32)
    lengths = np.array([5, 2, 1]), np.array([2, 6, 1])
    together = posterior(direction, link_BST, empty_BT, *lengths)
    counts = np.zeros(2 * REACH + 1), np.zeros(REACH + 1)
    for row, (S, T) in enumerate(zip(*(each.tolist() for each in lengths), strict=True)):
        one = np.s_[row : row + 1]
        of_one = (each[one] for each in lengths)
        alone = posterior(direction, link_BST[one, :S, :T], empty_BT[one, :T], *of_one)
        np.testing.assert_allclose(together.link_BST[one, :S, :T], alone.link_BST, atol=1e-5)
        assert together.link_BST[row].sum().item() == pytest.approx(alone.link_BST.sum().item(), abs=1e-5)
        np.testing.assert_allclose(together.empty_BT[one, :T], alone.empty_BT, atol=1e-5)
        assert not together.empty_BT[row, T:].any()
        for count, other in zip(counts, alone[2:], strict=True):
            count += other
    for count, other in zip(counts, together[2:], strict=True):
        np.testing.assert_allclose(count, other, atol=1e-5)


def _flat(sources: list[list[int]], targets: list[list[int]], iterations: int) -> list[np.ndarray]:
    """p(t | s) and p(s | t) of four tokens on each side by IBM model 1 of both directions with the empty word and a
    Dirichlet prior, each link without its own contribution. Axis 0 is the source: the forward direction sums over it,
    and the backward one over axis 1."""
    own = [np.zeros((len(source), len(target))) for source, target in zip(sources, targets, strict=True)]
    count, totals, empties = np.ones((4, 4)), [np.full(4, 4.0)] * 2, [np.full(4, 1 / 5)] * 2
    for _ in range(iterations):
        new_count, new_empties = np.zeros((4, 4)), [np.full(4, 0.01), np.full(4, 0.01)]
        for n, (source, target) in enumerate(zip(sources, targets, strict=True)):
            links, rest = [], np.maximum(count[np.ix_(source, target)] - own[n], 0) + PRIOR
            for axis, (condition, generated) in enumerate(((source, target), (target, source))):
                total = np.expand_dims(totals[axis][condition], 1 - axis) - own[n] + 4 * PRIOR
                link = (1 - EMPTY_PROBABILITY) / len(condition) * rest / total
                empty = EMPTY_PROBABILITY * empties[axis][generated]
                scale = link.sum(axis=axis) + empty
                links.append(link / np.expand_dims(scale, axis))
                np.add.at(new_empties[axis], generated, empty / scale)
            own[n] = sum(links) / 2
            np.add.at(new_count, np.ix_(source, target), own[n])
        count, totals = new_count, [new_count.sum(axis=1), new_count.sum(axis=0)]
        empties = [each / (each.sum() + 0.01) for each in new_empties]
    return [(count + PRIOR) / (np.expand_dims(total, 1 - axis) + 4 * PRIOR) for axis, total in enumerate(totals)]


@pytest.mark.usefixtures("way")
def test_flat_iterations_are_ibm_model_1_with_a_prior() -> None:
    sources, targets = [[0, 1], [0, 2, 3], [1, 3], [2]], [[0, 1, 1], [2, 0], [3, 1], [2, 2]]
    sides = ([np.array(each) for each in side] for side in (sources, targets))
    models = learn(*sides, source_tokens=4, target_tokens=4, flat_iterations=3, iterations=0)
    p, q = _flat(sources, targets, 3)
    assert len(models.pair_E) > 4
    for direction, expected in ((models.forward, p), (models.backward, q)):
        np.testing.assert_allclose(direction.link_E, expected.ravel()[models.pair_E], rtol=5e-3)


def posteriors(
    models: HmmPair, sources: list[np.ndarray], targets: list[np.ndarray], spelt_alike_X: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The forward and the backward matrix (T, S) of each pair of sentences."""
    found = [(np.zeros((len(target), len(source))),) * 2 for source, target in zip(sources, targets, strict=True)]
    not_learnt = np.zeros(len(sources), np.bool_)
    for rows, one_BTS, other_BTS in models.in_batches(sources, targets, spelt_alike_X, not_learnt):
        for row, one_TS, other_TS in zip(rows, one_BTS, other_BTS, strict=True):
            T, S = found[row][0].shape
            found[row] = (one_TS[:T, :S], other_TS[:T, :S])
    return found


@pytest.fixture(scope="module")
def reversal() -> Sides:
    """The target is the source turned round, each word another one."""
    random = np.random.default_rng(1)
    sources = [random.integers(0, 30, size=random.integers(1, 9)) for _ in range(400)]
    return sources, [(source[::-1] * 7 + 3) % 30 for source in sources]


def test_learns_which_words_belong_together(reversal: Sides) -> None:
    sources, targets = reversal
    models = learn(sources, targets, **TOKENS)
    source = np.array([4, 9, 9, 20])
    ((forward_TS, backward_TS),) = posteriors(models, [source], [(source[::-1] * 7 + 3) % 30], np.full(30, -1))
    for matrix_TS in (forward_TS, backward_TS):
        np.testing.assert_allclose(matrix_TS, np.eye(4)[::-1], atol=0.05)
    assert (models.forward.jump_J.argmax().item() - hmm.FARTHEST_JUMP) == -1


def test_further_pairs_are_learnt_from_as_if_all_had_been_together(
    reversal: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, targets = reversal
    whole = learn(sources, targets, **TOKENS)
    # A token is numbered when it comes first, so the first half has 20 of each side.
    few = [all((source < 20) & (target < 20)) for source, target in zip(sources, targets, strict=True)]
    first = [[sentence for sentence, is_few in zip(side, few, strict=True) if is_few] for side in reversal]
    rest = [[sentence for sentence, is_few in zip(side, few, strict=True) if not is_few] for side in reversal]
    before = learn(*first, source_tokens=20, target_tokens=20)
    both = learn(*rest, **TOKENS, before=before, flat_iterations=0)
    for one, other in ((both.forward, whole.forward), (both.backward, whole.backward)):
        # a / (n + aV): the expected numbers of links of each token, those of the first half too
        np.testing.assert_allclose(PRIOR / one.unseen_U1[:-1], PRIOR / other.unseen_U1[:-1], rtol=0.05)
        assert one.jump_J.argmax() == other.jump_J.argmax() == hmm.FARTHEST_JUMP - 1
    likely = both.pair_E[both.forward.link_E > 0.5]
    assert [(s * 7 + 3) % 30 for s in likely // 30] == (likely % 30).tolist()
    assert len(likely) == 30
    monkeypatch.setattr(hmm, "MOST_PAIRS", 30)
    bounded = learn(*rest, **TOKENS, before=before, flat_iterations=0)
    assert np.array_equal(bounded.pair_E, likely)


def test_tokens_without_pairs_are_forgotten_as_if_never_seen(reversal: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmm, "MOST_PAIRS", 20)
    whole = learn(*reversal, **TOKENS)
    known, source_U, target_V = whole.of_linked_tokens()
    assert (known.source_tokens, known.target_tokens) == (len(source_U), len(target_V)) == (20, 20)
    pairs = list(zip(source_U[known.pair_E // 20], target_V[known.pair_E % 20], strict=True))
    assert pairs == list(zip(*np.divmod(whole.pair_E, 30), strict=True))
    forward, backward = (known.forward, whole.forward, source_U), (known.backward, whole.backward, target_V)
    for (now, before, kept), own_E in zip((forward, backward), np.divmod(known.pair_E, 20), strict=True):
        # (n + a) / (n + aV) of a pair, a / (n + aV) of what was never seen: V was 30, and n stays.
        total, old = PRIOR / now.unseen_U1[:-1].astype(float), PRIOR / before.unseen_U1[kept].astype(float)
        np.testing.assert_allclose(total, old - 10 * PRIOR, rtol=1e-5)
        np.testing.assert_allclose(now.link_E * total[own_E], before.link_E * old[own_E], rtol=1e-5)
        assert np.array_equal(now.empty_V1[:-1], before.empty_V1[target_V if now is known.forward else source_U])


def test_unknown_words_go_where_their_neighbours_leave_room(reversal: Sides) -> None:
    models = learn(*reversal, **TOKENS)
    known = np.array([4, 99, 20])
    target = np.array([(20 * 7 + 3) % 30, 77, (4 * 7 + 3) % 30])
    ((forward_TS, _),) = posteriors(models, [known], [target], np.full(100, -1))
    assert forward_TS.argmax(axis=1).tolist() == [2, 1, 0]
    # Of two unknown words the one that is spelt alike.
    alike = np.full(100, -1)
    alike[98] = 77
    ((forward_TS, _),) = posteriors(models, [np.array([98, 99])], [np.array([77, 78])], alike)
    assert forward_TS[0].argmax() == 0


def test_pairs_of_tokens_may_be_gathered_in_parts(reversal: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [side[:20] for side in reversal]
    whole = learn(*sides, **TOKENS)
    monkeypatch.setattr(hmm, "_NEW_PAIRS", 40)
    parts = learn(*sides, **TOKENS)
    assert np.array_equal(parts.pair_E, whole.pair_E)


def test_empty_sides_and_batches(reversal: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets = reversal
    nothing = np.zeros(0, np.int64)
    models = learn([*sources, nothing], [*targets, targets[0]], **TOKENS)
    sides = [*sources[:20], nothing, sources[0]], [*targets[:20], targets[0], nothing]
    together = posteriors(models, *sides, np.arange(30))
    assert [each[0].shape for each in together[20:]] == [(len(targets[0]), 0), (0, len(sources[0]))]
    monkeypatch.setattr(hmm, "_CELLS", 1)
    for row in range(20):
        (alone,) = posteriors(models, [sources[row]], [targets[row]], np.arange(30))
        np.testing.assert_allclose(np.stack(alone), np.stack(together[row]), atol=1e-5)
    assert (together[3][0].sum(axis=1) <= 1 + 1e-5).all()
    assert (together[3][1].sum(axis=0) <= 1 + 1e-5).all()


def test_nothing_to_learn_from() -> None:
    models = learn([], [], source_tokens=0, target_tokens=0)
    ((forward_TS, _),) = posteriors(models, [np.array([0])], [np.array([0, 1])], np.array([-1]))
    assert forward_TS.shape == (2, 1)
    assert np.isfinite(forward_TS).all()
