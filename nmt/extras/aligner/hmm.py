"""Word alignment by hidden Markov models of both directions that learn to agree.

A model of one direction generates each target token from the source token it stands for, or from the empty word (Vogel,
Ney and Tillmann 1996, "HMM-Based Word Alignment in Statistical Translation"):

    p(t_1 ... t_T, a_1 ... a_T | s_1 ... s_S) = prod over j of p(a_j | a_j-1) p(t_j | s_a_j)

    p(a_j = i | a_j-1 = i')      (1 - p_0) jump(i - i') / sum over i'' of jump(i'' - i')
    p(empty word | a_j-1 = i')   p_0; the next jump starts from i' still (Och and Ney 2003, section 2.2.1)

The first link of a sentence jumps to i with probability first(i) / sum over i'' of first(i''). An empty word keeps the
position before it. After an empty word at the start of a sentence, the first link still draws its position from
``first``: jumps are counted between words only. Vogel et al. have no empty word.

Both directions share the expected numbers n(s, t) of links between two tokens:

    p(t | s) = (n(s, t) - q + a) / (n(s) - q + a V_t)      p(s | t) = (n(s, t) - q + a) / (n(t) - q + a V_s)

a is the weight of a Dirichlet prior, V the number of different tokens, and q the contribution of this link to n in the
iteration before: a token that occurs once must not be its own evidence. This is the expectation of a collapsed Gibbs
sampler (Asuncion, Welling, Smyth and Teh 2009, "On Smoothing and Inference for Topic Models", CVB0); eflomal draws
samples of such a model (Östling and Tiedemann 2016, "Efficient Word Alignment with Markov Chain Monte Carlo").

At first all jumps are equally probable (IBM model 1), and a link counts by the mean of both directions' posteriors;
then jumps are learnt, and it counts by their product (Liang, Taskar and Klein 2006, "Alignment by Agreement", section
3.2). Each direction has its own jumps and empty word.

Shapes: B sentence pairs, S source and T target positions, E pairs of a source and a target token seen together, D such
pairs of one batch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from nmt.core.cpu import thread_count
from nmt.core.memory import malloc_trim
from nmt.extras.speed.compiled import compiled

A = TypeVar("A")
B = TypeVar("B")

Tokens = npt.NDArray[np.signedinteger[Any]]
"""Numbers of the tokens of a sentence."""

Floats = npt.NDArray[np.float32]

Bools = npt.NDArray[np.bool_]

Indices = npt.NDArray[np.integer]
"""Indices among the distinct pairs of tokens of a batch, in as few bits as possible."""

EMPTY_PROBABILITY = 0.1
"""p_0. If it were learnt from counts, it would grow with every rare word."""

PRIOR = 1e-3
"""a, with the value of eflomal."""

FARTHEST_JUMP = 50
"""W: each longer jump is as probable as one of this length. Their expected numbers are summed, so W must be so large
that they are rare: a long sentence, which has many far positions, would get far too many of them."""

UNKNOWN = 1e-4
"""Maximum of p(t | s) if the training text lacks one of the two, so that the neighbours decide."""

SAME_SPELLING = 0.5
"""p(t | s) of tokens that were never seen together but are spelt alike, such as names."""

MOST_PAIRS = 200_000
"""Maximum number of pairs of tokens that models hold. With much more text, rare pairs are forgotten, and tokens that
only they had."""

_JUMP_SMOOTHING = 1e-4
_EMPTY_SMOOTHING = 0.01

_NEW_PAIRS = 1 << 20

_CELLS = 1 << 16
"""Maximum number of pairs of positions in a batch, padding included: few enough for a CPU's cache, and for indices of
16 bits."""

_STEPS = 65535
"""Steps of contributions to counts, which are stored in 16 bits."""

_OWN_DAMPING = (1.0, 0.5)
"""Damping of the iterations that compute contributions again, because models do not store them: q = f(n - q), f the
product of both posteriors."""

_TINY = 1e-30
_NO_TOKEN = -1


@dataclass(frozen=True)
class Hmm:
    """p(target tokens | source tokens); U source tokens, V target tokens, W the farthest jump."""

    link_E: Floats
    """p(t | s) of each pair of tokens."""
    unseen_U1: Floats
    """p(t | s) of a known t that was never seen with s; the last entry is for an unknown s."""
    unknown_U1: Floats
    """p(t | s) of an unknown t."""
    empty_V1: Floats
    """p(t | empty word); the last entry is for unknown tokens."""
    jump_J: Floats
    """Probabilities of the 2W + 1 jumps from -W to W, up to a factor."""
    first_W1: Floats
    """Probabilities of the first link at position 0, 1, ... W and later, up to a factor."""
    empty_probability: float = EMPTY_PROBABILITY
    """p_0, the probability of the empty word."""

    def widened(self, target_tokens: int) -> Hmm:
        """Adds target tokens to the direction, which are as probable after the empty word as unknown ones."""
        new = target_tokens + 1 - len(self.empty_V1)
        return replace(self, empty_V1=np.append(self.empty_V1, np.repeat(self.empty_V1[-1:], new)))

    def only(self, source_U: Tokens, target_V: Tokens, source_E: Tokens) -> Hmm:
        """Keeps only these tokens, which include the source token of each pair."""
        forgotten = np.float32(len(self.empty_V1) - 1 - len(target_V))
        factor_U1: Floats = np.append(1 / (1 - forgotten * self.unseen_U1[:-1]), np.float32(1))  # a V_t shrinks
        unseen_U1 = (self.unseen_U1 * factor_U1)[np.append(source_U, -1)]
        unknown_U1 = np.minimum(unseen_U1, np.float32(UNKNOWN))
        link_E, empty_V1 = self.link_E * factor_U1[source_E], self.empty_V1[np.append(target_V, -1)]
        return replace(self, link_E=link_E, unseen_U1=unseen_U1, unknown_U1=unknown_U1, empty_V1=empty_V1)

    def probabilities(
        self, batch: _Batch, index_D: Indices, local_BST: Indices, is_unseen_BST: Bools, is_alike_BST: Bools
    ) -> Floats:
        """Computes p(t | s) of all cells of a batch, (B, S, T)."""
        source_BS1 = batch.source_BS.clip(max=len(self.unseen_U1) - 1)[:, :, None]
        is_unknown_B1T = (batch.target_BT >= len(self.empty_V1) - 1)[:, None]
        rest_BST = np.where(is_unknown_B1T, self.unknown_U1[source_BS1], self.unseen_U1[source_BS1])
        link_BST: Floats = np.append(self.link_E, np.float32(0))[index_D][local_BST]
        np.copyto(link_BST, rest_BST, where=is_unseen_BST)
        link_BST[is_alike_BST] = SAME_SPELLING
        return link_BST

    def without(self, source_BS: Tokens, own_BST: Floats, link_BST: Floats) -> Floats:
        """Computes p(t | s) without the contributions of the links themselves to n."""
        # it is q / (n(s) + a V_t) less, and the probability of an unseen pair is a / (n(s) + a V_t)
        unseen_BS1 = self.unseen_U1[source_BS.clip(max=len(self.unseen_U1) - 1)][:, :, None]
        less_BST = link_BST - own_BST * (unseen_BS1 / np.float32(PRIOR))
        capped_BST: Floats = np.maximum(less_BST, np.minimum(unseen_BS1, link_BST))
        return capped_BST


class Posterior(NamedTuple):
    """The posterior of a batch by one direction."""

    link_BST: Floats
    """p(a_t = s | both sentences); 0 at padding."""
    empty_BT: Floats
    """p(a_t = empty word | both sentences); 0 at padding."""
    jump_J: npt.NDArray[np.float64]
    """Expected numbers of jumps."""
    first_W1: npt.NDArray[np.float64]
    """Expected numbers of first positions."""


def posterior(
    direction: Hmm, link_BST: Floats, empty_BT: Floats, source_length_B: Tokens, target_length_B: Tokens
) -> Posterior:
    """Computes the posterior by the forward-backward algorithm, scaled at each target position. ``link_BST`` and
    ``empty_BT`` are emission probabilities; their values at padding do not matter. Lengths are at least 1."""
    kernels = _kernels()
    if kernels is not None:
        return _by_kernel(kernels.hmm_posterior, direction, link_BST, empty_BT, source_length_B, target_length_B)
    B, S, T = link_BST.shape
    reach, p0 = len(direction.first_W1) - 1, np.float32(direction.empty_probability)
    position_S = np.arange(S)
    is_source_BS, is_target_BT = _within(source_length_B, S), _within(target_length_B, T)
    distance_SS = (position_S - position_S[:, None]).clip(-reach, reach) + reach
    # the jumps of all sentences are the same except for the sum at each position; X = S + 1 states: S positions and the
    # start of the sentence
    jump_XS = np.concatenate([direction.jump_J[distance_SS], direction.first_W1[position_S.clip(max=reach)][None]])
    share_BX = 1 / (is_source_BS.astype(np.float32) @ jump_XS.T)
    # target padding belongs to the empty word with certainty, so that it changes nothing
    is_cell_BST = is_source_BS[:, :, None] & is_target_BT[:, None]
    link_TBS = np.ascontiguousarray(np.where(is_cell_BST, link_BST * (1 - p0), np.float32(0)).transpose(2, 0, 1))
    empty_TB1 = np.where(is_target_BT, empty_BT * p0, np.float32(1)).T[:, :, None]

    jumped_TBS, before_TBX = np.empty((T, B, S), np.float32), np.zeros((T + 1, B, S + 1), np.float32)
    scale_TB1 = np.empty((T, B, 1), np.float32)
    before_TBX[0, :, S] = 1
    for time in range(T):
        np.matmul(before_TBX[time] * share_BX, jump_XS, out=jumped_TBS[time])
        here_BX = before_TBX[time] * empty_TB1[time]
        here_BX[:, :S] += jumped_TBS[time] * link_TBS[time]
        scale_TB1[time] = here_BX.sum(axis=1, keepdims=True).clip(min=_TINY)
        before_TBX[time + 1] = here_BX / scale_TB1[time]
    link_TBS /= scale_TB1
    empty_TB1 = empty_TB1 / scale_TB1

    # the rest depends only on the state, no matter if its position was linked or an empty word followed it
    rest_BX, landed_TBS = np.ones((B, S + 1), np.float32), np.empty((T, B, S), np.float32)
    empty_TB = np.empty((T, B), np.float32)
    for time in range(T - 1, -1, -1):
        landed_BS = np.multiply(link_TBS[time], rest_BX[:, :S], out=landed_TBS[time])
        stayed_BX = rest_BX * empty_TB1[time]
        empty_TB[time] = (before_TBX[time] * stayed_BX).sum(axis=1)
        rest_BX = stayed_BX + landed_BS @ jump_XS.T * share_BX

    times_XS = (before_TBX[:T] * share_BX).reshape(-1, S + 1).T @ landed_TBS.reshape(-1, S) * jump_XS
    jump_J = np.bincount(distance_SS.ravel(), times_XS[:S].ravel(), 2 * reach + 1).astype(np.float64)
    first_W1 = np.bincount(position_S.clip(max=reach), times_XS[S], reach + 1).astype(np.float64)
    return Posterior((jumped_TBS * landed_TBS).transpose(1, 2, 0), (empty_TB * is_target_BT.T).T, jump_J, first_W1)


@cache
def _kernels() -> Any:
    """Loads the functions in C++; returns None without them."""
    library = compiled()
    if library is None or not hasattr(library, "hmm_posterior"):
        return None
    pointer, count, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    library.hmm_posterior.argtypes = [*[pointer] * 4, *[count] * 5, *[pointer] * 2, count, real, *[pointer] * 4]
    library.hmm_posterior.restype = None
    library.distinct.argtypes = [pointer, count, pointer, count, pointer, pointer]
    library.distinct.restype = count
    return library


def _by_kernel(
    kernel: Any, direction: Hmm, link_BST: Floats, empty_BT: Floats, source_length_B: Tokens, target_length_B: Tokens
) -> Posterior:
    B, _, T = link_BST.shape
    empty_BT = np.ascontiguousarray(empty_BT, np.float32)
    link = np.zeros_like(link_BST, np.float32)
    if link.strides != link_BST.strides:
        link = np.zeros(link_BST.shape, np.float32)
        link_BST = np.ascontiguousarray(link_BST)
    assert link_BST.dtype == np.float32
    emptied_BT = np.zeros((B, T), np.float32)
    reach = len(direction.first_W1) - 1
    jump_J, first_W1 = np.zeros(2 * reach + 1), np.zeros(reach + 1)
    lengths = [np.ascontiguousarray(length_B, np.int64) for length_B in (source_length_B, target_length_B)]
    arrays: list[npt.NDArray[Any]] = [link_BST, empty_BT, *lengths, direction.jump_J, direction.first_W1]
    pointers = [array.ctypes.data for array in [*arrays, link, emptied_BT, jump_J, first_W1]]
    strides = [stride // 4 for stride in link_BST.strides]
    kernel(*pointers[:4], B, *strides, T, *pointers[4:6], reach, direction.empty_probability, *pointers[6:])
    return Posterior(link, emptied_BT, jump_J, first_W1)


@dataclass(frozen=True)
class HmmPair:
    """A model of each direction over the same tokens."""

    forward: Hmm
    backward: Hmm
    pair_E: Tokens
    """Pairs of tokens that have a probability, sorted, each as source x (target tokens) + target."""

    @property
    def source_tokens(self) -> int:
        """Number of known source tokens, which are numbered from 0; unknown ones have higher numbers."""
        return len(self.backward.empty_V1) - 1

    @property
    def target_tokens(self) -> int:
        """Number of known target tokens; see ``source_tokens``."""
        return len(self.forward.empty_V1) - 1

    def of_linked_tokens(self) -> tuple[HmmPair, Tokens, Tokens]:
        """Removes tokens that have no pair from the models, and returns them with the old numbers of the others."""
        source_E, target_E = _sides(self.pair_E, self.target_tokens)
        source_U, target_V = np.unique(source_E), np.unique(target_E)
        forward = self.forward.only(source_U, target_V, source_E)
        backward = self.backward.only(target_V, source_U, target_E)
        pair_E = np.searchsorted(source_U, source_E) * len(target_V) + np.searchsorted(target_V, target_E)
        return HmmPair(forward, backward, pair_E), source_U, target_V

    def in_batches(
        self, sources: Sequence[Tokens], targets: Sequence[Tokens], spelt_alike_X: Tokens, is_learnt_R: Bools
    ) -> Iterator[tuple[tuple[int, ...], Floats, Floats]]:
        """Yields batches of sentence pairs: their rows; the probability that a target token stands for a source token,
        (B, T, S), whose rows sum to 1 minus that of the empty word; and the reverse, whose columns do so. They are 0 at
        padding. Pairs with an empty side are left out.

        ``spelt_alike_X`` holds for each source token, unknown ones included, the target token with the same spelling,
        or -1. In pairs that the models have learnt from, ``is_learnt_R``, each link is judged by the contributions of
        the others."""
        alike_X = np.append(spelt_alike_X, _NO_TOKEN)
        for batch in _batches(sources, targets, self.source_tokens, self.target_tokens):
            pair_D, local_BST = batch.token_pairs(self.source_tokens, self.target_tokens)
            index_D = _indices(self.pair_E, pair_D)
            is_unseen_BST = (index_D == len(self.pair_E))[local_BST]
            alike_BS1 = alike_X[batch.source_BS][:, :, None]
            is_alike_BST = is_unseen_BST & (alike_BS1 == batch.target_BT[:, None]) & (alike_BS1 >= 0)
            link_BST = self.forward.probabilities(batch, index_D, local_BST, is_unseen_BST, is_alike_BST)
            turned: list[Any] = [each.swapaxes(1, 2) for each in (local_BST, is_unseen_BST, is_alike_BST)]
            back_BTS = self.backward.probabilities(batch.turned, index_D, *turned)
            one, other = batch.posteriors(self.forward, self.backward, link_BST, back_BTS)
            own_BST, is_learnt_B11 = np.zeros_like(one.link_BST), is_learnt_R[list(batch.rows), None, None]
            for damping in _OWN_DAMPING if is_learnt_B11.any() else ():
                product_BST = one.link_BST * other.link_BST.swapaxes(1, 2) * is_learnt_B11
                own_BST += np.float32(damping) * (product_BST - own_BST)
                less_BST = self.forward.without(batch.source_BS, own_BST, link_BST)
                less_BTS = self.backward.without(batch.target_BT, own_BST.swapaxes(1, 2), back_BTS)
                one, other = batch.posteriors(self.forward, self.backward, less_BST, less_BTS)
            yield batch.rows, one.link_BST.swapaxes(1, 2), other.link_BST


def learn(
    sources: Sequence[Tokens], targets: Sequence[Tokens], *, source_tokens: int, target_tokens: int,
    flat_iterations: int = 3, iterations: int = 5, before: HmmPair | None = None,
    after_iteration: Callable[[], object] = lambda: None,
) -> HmmPair:  # fmt: skip
    """Learns the models of sentence pairs from equal probabilities, with equal jumps and then with learnt ones.

    With ``before``, models of other sentence pairs whose tokens have the lowest numbers, learning continues from these,
    and their links count, too. The models keep the `MOST_PAIRS` pairs of tokens with the highest expected numbers of
    links. Pairs of sentences with an empty side are left out. It takes about 4 bytes for each pair of a source and a
    target position.
    """
    batches = list(_batches(sources, targets, source_tokens, target_tokens))
    cells = [batch.token_pairs(source_tokens, target_tokens) for batch in batches]
    pair_E = _distinct([pair_D for pair_D, _ in cells])
    old, pair_E = _counted(before, pair_E, source_tokens, target_tokens)
    known = []
    for batch in batches:
        pair_D, local_BST = cells.pop(0)  # so that memory does not hold the pairs of tokens of all batches
        known.append(_KnownBatch(batch, _indices(pair_E, pair_D), local_BST, np.zeros(local_BST.shape, np.uint16)))
    malloc_trim(0)
    links, first = old, (_equal(target_tokens), _equal(source_tokens))
    if before is None:
        # equal probabilities at first; cells of padding count 0
        pair_E1 = np.append(np.ones(len(pair_E), np.float32), np.float32(0))
        source_U1 = np.full(source_tokens + 1, target_tokens, np.float32)
        links = _Links(pair_E1, source_U1, np.full(target_tokens + 1, source_tokens, np.float32))
    else:
        first = before.forward.widened(target_tokens), before.backward.widened(source_tokens)
    forward, backward = first
    for number in range(flat_iterations + iterations):
        flat = number < flat_iterations
        expect = partial(_expected, links, forward, backward, flat=flat)
        sums = _Sums(target_tokens), _Sums(source_tokens)
        pair_E1 = np.zeros(len(pair_E) + 1, np.float32)
        for known_batch, (count_D, one, other) in zip(known, in_order(expect, known), strict=True):
            pair_E1[known_batch.index_D] += count_D  # the pairs of a batch are distinct
            sums[0].add(one, known_batch.sentences.target_BT)
            sums[1].add(other, known_batch.sentences.source_BS)
        links = old.plus(pair_E1, pair_E)
        share = float(old.source_U1.sum() / max(links.source_U1.sum(), _TINY))
        forward, backward = (
            one_sum.direction(one, share, with_jumps=not flat) for one_sum, one in zip(sums, first, strict=True)
        )
        after_iteration()
    return links.models(forward, backward, pair_E)


def _counted(before: HmmPair | None, pair_E: Tokens, source_tokens: int, target_tokens: int) -> tuple[_Links, Tokens]:
    """Reconstructs the expected numbers of links from which models were computed, with 0 for further pairs of tokens;
    also returns all these pairs."""
    source_U1, target_V1 = np.zeros(source_tokens + 1, np.float32), np.zeros(target_tokens + 1, np.float32)
    if before is None:
        return _Links(np.zeros(len(pair_E) + 1, np.float32), source_U1, target_V1), pair_E
    source_E, target_E = _sides(before.pair_E, before.target_tokens)
    old_E = source_E * target_tokens + target_E
    pair_E = _distinct([old_E, pair_E])
    for direction, total_U1 in ((before.forward, source_U1), (before.backward, target_V1)):
        prior = PRIOR * max(len(direction.empty_V1) - 1, 1)
        total_U1[: len(direction.unseen_U1) - 1] = np.maximum(PRIOR / direction.unseen_U1[:-1] - prior, 0)
    pair_E1 = np.zeros(len(pair_E) + 1, np.float32)
    count_E = before.forward.link_E * (np.float32(PRIOR) / before.forward.unseen_U1)[source_E] - np.float32(PRIOR)
    pair_E1[_indices(pair_E, old_E)] = np.maximum(count_E, 0)
    return _Links(pair_E1, source_U1, target_V1), pair_E


class _KnownBatch(NamedTuple):
    """A batch to learn from."""

    sentences: _Batch
    index_D: npt.NDArray[np.int32]
    """Indices, among all pairs, of the distinct pairs of tokens of the sentences."""
    local_BST: Indices
    """Index of each cell's pair among them."""
    contribution_BST: npt.NDArray[np.uint16]
    """Expected number of links of each cell in the preceding iteration, in steps of 1 / `_STEPS`."""


def _expected(
    links: _Links, forward: Hmm, backward: Hmm, batch: _KnownBatch, *, flat: bool
) -> tuple[Floats, Posterior, Posterior]:
    """Computes the expected number of links of each distinct pair of tokens, and the posterior of both directions;
    stores the contribution of each cell."""
    link_BST, back_BST = links.probabilities(batch)
    one, other = batch.sentences.posteriors(forward, backward, link_BST, back_BST.swapaxes(1, 2), flat=flat)
    other_BST = other.link_BST.swapaxes(1, 2)
    expected_BST = (one.link_BST + other_BST) / 2 if flat else one.link_BST * other_BST
    np.rint(expected_BST * _STEPS, out=batch.contribution_BST, casting="unsafe")
    count_D = np.bincount(batch.local_BST.ravel(), expected_BST.ravel(), len(batch.index_D)).astype(np.float32)
    return count_D, one, other


@dataclass(frozen=True)
class _Links:
    """Expected numbers of links; the last entry of each array is for tokens and pairs that were never seen."""

    pair_E1: Floats
    source_U1: Floats
    target_V1: Floats

    def plus(self, pair_E1: Floats, pair_E: Tokens) -> _Links:
        """Adds further numbers."""
        sides = zip(_sides(pair_E, len(self.target_V1) - 1), (self.source_U1, self.target_V1), strict=True)
        sums = (each + np.bincount(side_E, pair_E1[:-1], len(each)).astype(np.float32) for side_E, each in sides)
        return _Links(self.pair_E1 + pair_E1, *sums)

    def _priors(self) -> tuple[np.float32, np.float32]:
        """Computes a V_t and a V_s."""
        prior_t, prior_s = (np.float32(PRIOR * max(len(each) - 1, 1)) for each in (self.target_V1, self.source_U1))
        return prior_t, prior_s

    def probabilities(self, batch: _KnownBatch) -> tuple[Floats, Floats]:
        """Computes p(t | s) and p(s | t) from the contributions of the other links, both (B, S, T)."""
        own_BST = batch.contribution_BST * np.float32(1 / _STEPS)
        link_BST = self.pair_E1[batch.index_D][batch.local_BST]
        link_BST -= own_BST
        np.maximum(link_BST, 0, out=link_BST)
        link_BST += np.float32(PRIOR)
        prior_t, prior_s = self._priors()
        source_BS1 = (self.source_U1[batch.sentences.source_BS] + prior_t)[:, :, None]
        target_B1T = (self.target_V1[batch.sentences.target_BT] + prior_s)[:, None]
        back_BST = np.divide(link_BST, np.maximum(target_B1T - own_BST, prior_s), dtype=np.float32)
        link_BST /= np.maximum(source_BS1 - own_BST, prior_t)
        return link_BST, back_BST

    def models(self, forward: Hmm, backward: Hmm, pair_E: Tokens) -> HmmPair:
        """Builds the models, without pairs that are hardly more probable than unseen ones, and without the rarest ones
        if there are too many."""
        least = np.float32(PRIOR)
        if len(pair_E) > MOST_PAIRS:
            least = max(least, np.partition(self.pair_E1[:-1], -MOST_PAIRS)[-MOST_PAIRS])
        keeps_E = self.pair_E1[:-1] >= least
        count_E, pair_E = self.pair_E1[:-1][keeps_E] + np.float32(PRIOR), pair_E[keeps_E]
        sides_E = _sides(pair_E, len(self.target_V1) - 1)
        directions = []
        sides = zip((forward, backward), sides_E, (self.source_U1, self.target_V1), self._priors(), strict=True)
        for direction, side_E, total_U1, prior in sides:
            unseen_U1 = np.float32(PRIOR) / (total_U1 + prior)
            link_E = count_E / (total_U1 + prior)[side_E]
            unknown_U1 = np.minimum(unseen_U1, np.float32(UNKNOWN))
            unseen_U1[-1] = unknown_U1[-1]
            directions.append(replace(direction, link_E=link_E, unseen_U1=unseen_U1, unknown_U1=unknown_U1))
        return HmmPair(directions[0], directions[1], pair_E)


def _flat_posterior(
    direction: Hmm, link_BST: Floats, empty_BT: Floats, source_length_B: Tokens, target_length_B: Tokens
) -> Posterior:
    """Computes the posterior with equal jumps (IBM model 1), which are not counted."""
    _, S, T = link_BST.shape
    is_source_BS, is_target_BT = _within(source_length_B, S), _within(target_length_B, T)
    p0 = direction.empty_probability
    linked_BST = link_BST * (is_source_BS * ((1 - p0) / source_length_B[:, None])).astype(np.float32)[:, :, None]
    emptied_BT = empty_BT * np.float32(p0)
    share_BT = is_target_BT / np.maximum(linked_BST.sum(axis=1) + emptied_BT, np.float32(_TINY))
    linked_BST *= share_BT[:, None]
    no_jumps, no_first = np.zeros(len(direction.jump_J)), np.zeros(len(direction.first_W1))
    return Posterior(linked_BST, emptied_BT * share_BT, no_jumps, no_first)


def _equal(target_tokens: int) -> Hmm:
    """Creates an untrained direction; its probabilities of links are those of `_Links`."""
    none, reach = np.zeros(0, np.float32), FARTHEST_JUMP
    empty_V1 = np.full(target_tokens + 1, 1 / (target_tokens + 1), np.float32)
    return Hmm(none, none, none, empty_V1, np.ones(2 * reach + 1, np.float32), np.ones(reach + 1, np.float32))


class _Sums:
    """Expected numbers of empty words and jumps of one direction."""

    def __init__(self, target_tokens: int) -> None:
        self.empty_V1 = np.zeros(target_tokens + 1)
        self.jump_J, self.first_W1 = np.zeros(2 * FARTHEST_JUMP + 1), np.zeros(FARTHEST_JUMP + 1)

    def add(self, posterior: Posterior, target_BT: Tokens) -> None:
        """Adds the expected numbers of a batch."""
        self.empty_V1 += np.bincount(target_BT.ravel(), posterior.empty_BT.ravel(), len(self.empty_V1))
        self.jump_J += posterior.jump_J
        self.first_W1 += posterior.first_W1

    def direction(self, before: Hmm, share: float, *, with_jumps: bool) -> Hmm:
        """Estimates the most probable jumps and empty word, smoothed; a share of them comes from the direction
        ``before``."""

        def mixed(new: npt.NDArray[np.float64], old: Floats) -> Floats:
            return ((1 - share) * new + share * old).astype(np.float32)

        # one more entry for unseen tokens; the last entry also belongs to padding, whose count is 0
        empty_V1 = self.empty_V1 + _EMPTY_SMOOTHING
        learnt = replace(before, empty_V1=mixed(empty_V1 / empty_V1.sum(), before.empty_V1))
        if not with_jumps:
            return learnt
        jump_J, first_W1 = (
            mixed(count / max(count.sum(), _TINY) + _JUMP_SMOOTHING, old)
            for count, old in ((self.jump_J, before.jump_J), (self.first_W1, before.first_W1))
        )
        return replace(learnt, jump_J=jump_J, first_W1=first_W1)


@dataclass(frozen=True)
class _Batch:
    """Sentence pairs of similar lengths; padding has the number of the first unknown token."""

    rows: tuple[int, ...]
    source_BS: Tokens
    target_BT: Tokens
    source_length_B: Tokens
    target_length_B: Tokens

    @property
    def turned(self) -> _Batch:
        """Returns the pairs with source and target exchanged."""
        return _Batch(self.rows, self.target_BT, self.source_BS, self.target_length_B, self.source_length_B)

    def posteriors(
        self, forward: Hmm, backward: Hmm, link_BST: Floats, back_BTS: Floats, *, flat: bool = False
    ) -> list[Posterior]:
        """Computes the posterior of each direction from its emission probabilities; if ``flat``, with equal jumps."""
        compute, found = _flat_posterior if flat else posterior, []
        for batch, direction, emission_BST in ((self, forward, link_BST), (self.turned, backward, back_BTS)):
            empty_BT = direction.empty_V1[batch.target_BT.clip(max=len(direction.empty_V1) - 1)]
            found.append(compute(direction, emission_BST, empty_BT, batch.source_length_B, batch.target_length_B))
        return found

    def token_pairs(self, source_tokens: int, target_tokens: int) -> tuple[Tokens, Indices]:
        """Finds the distinct pairs of tokens, numbered as in ``HmmPair``, with -1 if one of the two is unknown, and the
        index of each cell's pair among them, (B, S, T)."""
        source_BS1, target_B1T = self.source_BS[:, :, None], self.target_BT[:, None]
        pair_BST = source_BS1.astype(np.int64) * target_tokens + target_B1T
        pair_BST[np.broadcast_to(source_BS1 >= source_tokens, pair_BST.shape)] = -1
        pair_BST[np.broadcast_to(target_B1T >= target_tokens, pair_BST.shape)] = -1
        kernels = _kernels()
        if kernels is None:
            pair_D, local_C = np.unique(pair_BST, return_inverse=True)
            return pair_D, _small(local_C.reshape(pair_BST.shape), len(pair_D))
        table = np.full(1 << (2 * pair_BST.size).bit_length(), -1, np.int32)
        pair_C, local_BST = np.empty(pair_BST.size, np.int64), np.empty(pair_BST.shape, np.int32)
        arrays = [array.ctypes.data for array in (pair_BST, table, pair_C, local_BST)]
        count = kernels.distinct(arrays[0], pair_BST.size, arrays[1], table.size, *arrays[2:])
        return pair_C[:count].copy(), _small(local_BST, count)


def _batches(
    sources: Sequence[Tokens], targets: Sequence[Tokens], source_tokens: int, target_tokens: int
) -> Iterator[_Batch]:
    """Yields all pairs with tokens on both sides in batches, the shortest first."""
    lengths = [(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    groups: list[list[int]] = [[]]
    longest = 0
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        S, T = lengths[row]
        if not S or not T:
            continue
        longest = max(longest, T)
        if groups[-1] and (len(groups[-1]) + 1) * S * longest > _CELLS:  # sorted, so no source is longer than S
            groups.append([])
            longest = T
        groups[-1].append(row)
    for rows in groups if groups[0] else ():
        (source_BS, source_length_B), (target_BT, target_length_B) = (
            _padded([side[row] for row in rows], tokens)
            for side, tokens in ((sources, source_tokens), (targets, target_tokens))
        )
        yield _Batch(tuple(rows), source_BS, target_BT, source_length_B, target_length_B)


def _padded(sentences: Sequence[Tokens], padding: int) -> tuple[Tokens, Tokens]:
    """Returns the sentences in one array, and their lengths."""
    length_B = np.array(list(map(len, sentences)))
    padded = np.full((len(sentences), length_B.max()), padding, np.int32)
    padded[_within(length_B, padded.shape[1])] = np.concatenate(sentences)
    return padded, length_B


def _small(index_BST: Indices, count: int) -> Indices:
    return index_BST.astype(np.uint16 if count <= 1 << 16 else np.int32)


def _distinct(parts: Sequence[Tokens]) -> Tokens:
    """Finds the distinct numbers from 0 on in all parts, sorted."""
    seen, count = [np.zeros(0, np.int64)], 0
    for part in parts:
        seen.append(part[part >= 0])
        count += seen[-1].size
        if count > _NEW_PAIRS:
            seen, count = [_sorted_distinct(seen)], 0
    return _sorted_distinct(seen)


def _sorted_distinct(parts: Sequence[Tokens]) -> Tokens:
    """See ``_distinct``. It is several times as fast as ``np.unique`` if most numbers are repeated."""
    array = np.concatenate(parts)
    array.sort()
    return array[np.append(True, array[1:] != array[:-1])] if len(array) else array


def _indices(pair_E: Tokens, pair_D: Tokens) -> npt.NDArray[np.int32]:
    """Finds the index of each pair among the sorted ones; E for a pair that is not among them."""
    index_D = np.searchsorted(pair_E, pair_D)
    known_E1 = np.append(pair_E, -2)
    return np.where(known_E1[index_D] == pair_D, index_D, len(pair_E)).astype(np.int32)


def _sides(pair_E: Tokens, target_tokens: int) -> tuple[Tokens, Tokens]:
    """Returns the source and the target tokens of pairs."""
    return np.divmod(pair_E, max(target_tokens, 1))


def _within(length_B: Tokens, width: int) -> npt.NDArray[np.bool_]:
    return np.arange(width) < length_B[:, None]


def in_order(call: Callable[[A], B], arguments: Sequence[A]) -> Iterator[B]:
    """Yields the results of calls in the order of the arguments; at most one result for each thread waits."""
    threads = thread_count()
    if threads == 1:
        yield from map(call, arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(arguments), threads):
            yield from pool.map(call, arguments[first : first + threads])
