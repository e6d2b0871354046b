"""Word alignment by hidden Markov models of both directions that learn to agree.

A model of one direction generates each target token from the source token it stands for, or from the empty word (Vogel,
Ney and Tillmann 1996, "HMM-Based Word Alignment in Statistical Translation"):

    p(t_1 ... t_T, a_1 ... a_T | s_1 ... s_S) = prod over j of p(a_j | a_j-1) p(t_j | s_a_j)

    p(a_j = i | a_j-1 = i')      (1 - p_0) jump(i - i') / sum over i'' of jump(i'' - i')
    p(empty word | a_j-1 = i')   p_0; the next jump starts from i' still (Och and Ney 2003, section 2.2.1)

The first link of a sentence jumps to i with probability first(i) / sum over i'' of first(i''). An empty word keeps the
position before it. After one at the start of a sentence the first link still draws its position from ``first``: jumps
are counted between words only. Vogel et al. have no empty word.

The expected links are products of both directions' posteriors (Liang, Taskar and Klein 2006, "Alignment by Agreement",
section 3.2), first with equal jumps (IBM model 1), then with learnt ones. Both directions learn the same counts of
links, but each its own jumps and empty word.

Shapes: B sentence pairs, S source and T target positions, E pairs of a source and a target token seen together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Tokens = npt.NDArray[np.int64]
"""Numbers of the tokens of a sentence."""

EMPTY_PROBABILITY = 0.02
"""p_0. Learnt from counts it would grow with every rare word; 0.1 and more lose a point of AER or two."""

FARTHEST_JUMP = 10
"""W: longer jumps are as probable as those of this length."""

NEVER_SEEN = 1e-6
"""p(t | s) of known tokens that were never seen together, and the minimum for any pair."""

UNKNOWN = 1e-4
"""p(t | s) where the training text lacks one of the two, so that the neighbours decide."""

SAME_SPELLING = 0.1
"""p(t | s) of tokens that were never seen together but are spelt alike, such as names."""

_JUMP_SMOOTHING = 1e-4
_EMPTY_SMOOTHING = 0.01

_NEW_PAIRS = 1 << 24

_CELLS = 1 << 18
"""Pairs of positions in a batch, padding included: few enough for a CPU's cache."""

_TINY = 1e-30
_NO_TOKEN = -1


@dataclass(frozen=True)
class Hmm:
    """p(target tokens | source tokens); V target tokens, W the farthest jump."""

    link_E: Tensor
    """p(t | s) of each pair of tokens."""
    empty_V1: Tensor
    """p(t | empty word); the last entry is for unknown tokens."""
    jump_J: Tensor
    """Probabilities of the 2W + 1 jumps from -W to W, up to a factor."""
    first_W1: Tensor
    """Probabilities of the first link at position 0, 1, ... W and later, up to a factor."""


class Posterior(NamedTuple):
    """The posterior of a batch by one direction."""

    link_BST: Tensor
    """p(a_t = s | both sentences); 0 at padding."""
    empty_BT: Tensor
    """p(a_t = empty word | both sentences); 0 at padding."""
    jump_J: Tensor
    """Expected numbers of jumps."""
    first_W1: Tensor
    """Expected numbers of first positions."""


def posterior(
    direction: Hmm, link_BST: Tensor, empty_BT: Tensor, source_length_B: Tensor, target_length_B: Tensor
) -> Posterior:
    """The posterior by the forward-backward algorithm, scaled at each target position. ``link_BST`` and ``empty_BT``
    are emission probabilities; their values at padding do not matter. Lengths are at least 1."""
    B, S, T = link_BST.shape
    reach = len(direction.first_W1) - 1
    position_S = torch.arange(S)
    is_source_BS, is_target_BT = _within(source_length_B), _within(target_length_B)
    distance_SS = (position_S - position_S[:, None]).clamp(-reach, reach) + reach
    # The jumps of all sentences are the same but for the sum at each position. X = S + 1 states: S positions and the
    # start of the sentence.
    jump_XS = torch.cat([direction.jump_J[distance_SS], direction.first_W1[position_S.clamp(max=reach)][None]])
    share_BX = 1 / (is_source_BS.float() @ jump_XS.T)
    # Target padding belongs to the empty word with certainty, so that nothing changes there.
    is_cell_BST = is_source_BS[:, :, None] & is_target_BT[:, None]
    link_TBS = (link_BST * is_cell_BST).permute(2, 0, 1).contiguous().mul_(1 - EMPTY_PROBABILITY)
    empty_TB1 = torch.where(is_target_BT, empty_BT * EMPTY_PROBABILITY, 1.0).T.contiguous()[:, :, None]

    jumped_TBS, before_TBX = torch.empty(T, B, S), torch.zeros(T + 1, B, S + 1)
    scale_TB1 = torch.empty(T, B, 1)
    before_TBX[0, :, S] = 1
    for time in range(T):
        jumped_BS = torch.matmul(before_TBX[time] * share_BX, jump_XS, out=jumped_TBS[time])
        here_BX = torch.mul(before_TBX[time], empty_TB1[time], out=before_TBX[time + 1])
        here_BX[:, :S].addcmul_(jumped_BS, link_TBS[time])
        here_BX /= torch.sum(here_BX, dim=1, keepdim=True, out=scale_TB1[time]).clamp_(min=_TINY)
    link_TBS /= scale_TB1
    empty_TB1 /= scale_TB1

    # The rest depends on the state only, whether its position was linked or an empty word followed it.
    rest_BX, landed_TBS = torch.ones(B, S + 1), torch.empty(T, B, S)
    empty_TB = torch.empty(T, B)
    for time in range(T - 1, -1, -1):
        landed_BS = torch.mul(link_TBS[time], rest_BX[:, :S], out=landed_TBS[time])
        stayed_BX = rest_BX * empty_TB1[time]
        torch.sum(before_TBX[time] * stayed_BX, dim=1, out=empty_TB[time])
        rest_BX = torch.addcmul(stayed_BX, landed_BS @ jump_XS.T, share_BX)

    times_XS = (before_TBX[:T] * share_BX).view(-1, S + 1).T @ landed_TBS.view(-1, S) * jump_XS
    return Posterior(
        jumped_TBS.mul_(landed_TBS).permute(1, 2, 0),
        (empty_TB * is_target_BT.T).T,
        torch.zeros_like(direction.jump_J).index_add_(0, distance_SS.flatten(), times_XS[:S].flatten()),
        torch.zeros_like(direction.first_W1).index_add_(0, position_S.clamp(max=reach), times_XS[S]),
    )


@dataclass(frozen=True)
class HmmPair:
    """A model of each direction over the same tokens."""

    forward: Hmm
    backward: Hmm
    pair_E: Tokens
    """The pairs of tokens that have a probability, sorted, each as source x (target tokens) + target."""

    @property
    def source_tokens(self) -> int:
        """The number of known source tokens, numbered from 0; unknown ones have higher numbers."""
        return len(self.backward.empty_V1) - 1

    @property
    def target_tokens(self) -> int:
        """See ``source_tokens``."""
        return len(self.forward.empty_V1) - 1

    def in_batches(
        self, sources: Sequence[Tokens], targets: Sequence[Tokens], spelt_alike_X: Tokens
    ) -> Iterator[tuple[tuple[int, ...], Tensor, Tensor]]:
        """Batches of sentence pairs: their rows, the probability that a target token stands for a source token, (B, T,
        S), whose rows sum to 1 less the empty word's, and the reverse, whose columns do; 0 at padding. Pairs with an
        empty side are left out.

        ``spelt_alike_X`` holds for each source token, unknown ones included, the target token with the same spelling,
        or -1."""
        E = len(self.pair_E)
        links = [
            torch.cat([direction.link_E.clamp(min=NEVER_SEEN), torch.tensor([NEVER_SEEN])])
            for direction in (self.forward, self.backward)
        ]
        alike_X = torch.from_numpy(np.append(spelt_alike_X, _NO_TOKEN))
        for batch in _batches(sources, targets, self.source_tokens, self.target_tokens):
            index_BST = batch.pair_indices(self.pair_E, self.source_tokens, self.target_tokens)
            link_BST, back_BST = (_at(index_BST, link_E1) for link_E1 in links)
            source_BS1, target_B1T = batch.source_BS[:, :, None], batch.target_BT[:, None]
            alike_BS1 = alike_X[source_BS1]
            unknown_BST = (source_BS1 >= self.source_tokens) | (target_B1T >= self.target_tokens)
            for is_so_BST, probability in (
                (unknown_BST, UNKNOWN),
                ((alike_BS1 == target_B1T) & (alike_BS1 >= 0), SAME_SPELLING),
            ):
                is_so_BST &= index_BST == E
                link_BST.masked_fill_(is_so_BST, probability)
                back_BST.masked_fill_(is_so_BST, probability)
            yield (
                batch.rows,
                posterior(*batch.seen_by(self.forward, link_BST)).link_BST.mT,
                posterior(*batch.turned.seen_by(self.backward, back_BST.mT)).link_BST,
            )


def learn(
    sources: Sequence[Tokens],
    targets: Sequence[Tokens],
    *,
    source_tokens: int,
    target_tokens: int,
    flat_iterations: int = 5,
    iterations: int = 5,
    after_iteration: Callable[[], object] = lambda: None,
) -> HmmPair:
    """Learns the models of sentence pairs by expectation maximisation from equal probabilities, with equal jumps and
    then with learnt ones.

    Pairs with an empty side are left out. Takes some 12 bytes for each pair of a source and a target position.
    """
    batches = list(_batches(sources, targets, source_tokens, target_tokens))
    pair_E = _seen_pairs(sources, targets, target_tokens)
    # Entries at padding are multiplied by 0.
    indices = [
        batch.pair_indices(pair_E, source_tokens, target_tokens).clamp(max=max(len(pair_E) - 1, 0)).to(torch.int32)
        for batch in batches
    ]
    source_E, target_E = (torch.from_numpy(side_E) for side_E in np.divmod(pair_E, max(target_tokens, 1)))
    models = HmmPair(_equal(len(pair_E), target_tokens), _equal(len(pair_E), source_tokens), pair_E)
    for number in range(flat_iterations + iterations):
        flat = number < flat_iterations
        find = _flat_posterior if flat else posterior
        forward, backward = _Counts(models.forward), _Counts(models.backward)
        agreed_E = torch.zeros(len(pair_E), dtype=torch.float64)
        for batch, index_BST in zip(batches, indices, strict=True):
            one = find(*batch.seen_by(models.forward, _at(index_BST, models.forward.link_E)))
            other = find(*batch.turned.seen_by(models.backward, _at(index_BST, models.backward.link_E).mT))
            agreed_BST = one.link_BST * other.link_BST.mT
            agreed_E.scatter_add_(0, index_BST.flatten().long(), agreed_BST.flatten().double())
            forward.add(one, batch.target_BT)
            backward.add(other, batch.source_BS)
        models = HmmPair(
            forward.direction(models.forward, agreed_E, source_E, source_tokens, with_jumps=not flat),
            backward.direction(models.backward, agreed_E, target_E, target_tokens, with_jumps=not flat),
            pair_E,
        )
        after_iteration()
    return _pruned(models)


def _flat_posterior(
    direction: Hmm, link_BST: Tensor, empty_BT: Tensor, source_length_B: Tensor, target_length_B: Tensor
) -> Posterior:
    """The posterior with equal jumps (IBM model 1), which are not counted."""
    is_source_BS, is_target_BT = (_within(length_B) for length_B in (source_length_B, target_length_B))
    linked_BST = link_BST * is_source_BS[:, :, None] * ((1 - EMPTY_PROBABILITY) / source_length_B[:, None, None])
    emptied_BT = empty_BT * EMPTY_PROBABILITY
    total_BT = (linked_BST.sum(dim=1) + emptied_BT).clamp(min=_TINY)
    return Posterior(
        linked_BST / total_BT[:, None] * is_target_BT[:, None],
        emptied_BT / total_BT * is_target_BT,
        torch.zeros_like(direction.jump_J),
        torch.zeros_like(direction.first_W1),
    )


def _equal(pairs: int, tokens: int) -> Hmm:
    """A model of equal probabilities, but for jumps: shorter ones forward are likelier."""
    jump_J = 1 / (1 + (torch.arange(-FARTHEST_JUMP, FARTHEST_JUMP + 1.0) - 1).abs())
    probability = 1 / max(tokens, 1)
    return Hmm(
        torch.full((pairs,), probability), torch.full((tokens + 1,), probability), jump_J, torch.ones(FARTHEST_JUMP + 1)
    )


class _Counts:
    """The expected numbers of the empty word and of jumps in one direction, summed over batches."""

    def __init__(self, direction: Hmm) -> None:
        self.empty_V1 = torch.zeros_like(direction.empty_V1, dtype=torch.float64)
        self.jump_J = torch.zeros_like(direction.jump_J)
        self.first_W1 = torch.zeros_like(direction.first_W1)

    def add(self, posterior: Posterior, target_BT: Tensor) -> None:
        """Adds the expected numbers of a batch."""
        self.empty_V1.index_add_(0, target_BT.flatten(), posterior.empty_BT.flatten().double())
        self.jump_J.add_(posterior.jump_J)
        self.first_W1.add_(posterior.first_W1)

    def direction(
        self, before: Hmm, agreed_E: Tensor, condition_E: Tensor, condition_tokens: int, *, with_jumps: bool
    ) -> Hmm:
        """The most probable model, with jumps and empty word smoothed; ``agreed_E`` are the expected numbers of links
        that both directions agree on, and ``condition_E`` is the token that a pair's other token is conditioned on."""
        total_V = torch.zeros(condition_tokens, dtype=torch.float64).scatter_add_(0, condition_E, agreed_E)
        link_E = agreed_E / total_V.clamp(min=_TINY).index_select(0, condition_E)
        # One more for unseen tokens; the last entry belongs to padding, too, whose count is 0.
        empty_V1 = self.empty_V1 + _EMPTY_SMOOTHING
        return Hmm(
            link_E.float(),
            (empty_V1 / empty_V1.sum()).float(),
            self.jump_J / self.jump_J.sum().clamp(min=_TINY) + _JUMP_SMOOTHING if with_jumps else before.jump_J,
            self.first_W1 / self.first_W1.sum().clamp(min=_TINY) + _JUMP_SMOOTHING if with_jumps else before.first_W1,
        )


def _pruned(models: HmmPair) -> HmmPair:
    """The models without pairs of tokens of negligible probability."""
    keeps_E = (models.forward.link_E >= NEVER_SEEN) | (models.backward.link_E >= NEVER_SEEN)
    return HmmPair(
        replace(models.forward, link_E=models.forward.link_E[keeps_E]),
        replace(models.backward, link_E=models.backward.link_E[keeps_E]),
        models.pair_E[keeps_E.numpy()],
    )


@dataclass(frozen=True)
class _Batch:
    """Sentence pairs of like lengths; padding has the number of the first unknown token."""

    rows: tuple[int, ...]
    source_BS: Tensor
    target_BT: Tensor
    source_length_B: Tensor
    target_length_B: Tensor

    @property
    def turned(self) -> _Batch:
        """The pairs with source and target exchanged."""
        return _Batch(self.rows, self.target_BT, self.source_BS, self.target_length_B, self.source_length_B)

    def seen_by(self, direction: Hmm, link_BST: Tensor) -> tuple[Hmm, Tensor, Tensor, Tensor, Tensor]:
        """The arguments of ``posterior``."""
        empty_BT = direction.empty_V1[self.target_BT.clamp(max=len(direction.empty_V1) - 1)]
        return direction, link_BST, empty_BT, self.source_length_B, self.target_length_B

    def pair_indices(self, pair_E: Tokens, source_tokens: int, target_tokens: int) -> Tensor:
        """The index of each cell's pair of tokens among the sorted pairs, (B, S, T); E for a pair that is not there."""
        source_BS1, target_B1T = self.source_BS.numpy()[:, :, None], self.target_BT.numpy()[:, None]
        pair_BST = np.where(
            (source_BS1 < source_tokens) & (target_B1T < target_tokens), source_BS1 * target_tokens + target_B1T, -1
        )
        index_BST = np.searchsorted(pair_E, pair_BST)
        known_E1 = np.append(pair_E, -2)
        return torch.from_numpy(np.where(known_E1[index_BST] == pair_BST, index_BST, len(pair_E)))


def _batches(
    sources: Sequence[Tokens], targets: Sequence[Tokens], source_tokens: int, target_tokens: int
) -> Iterator[_Batch]:
    """All pairs with tokens on both sides, the shortest first."""
    length_R2 = np.array([(len(source), len(target)) for source, target in zip(sources, targets, strict=True)])
    order: list[int] = np.lexsort((length_R2[:, 1], length_R2[:, 0])).tolist() if len(length_R2) else []
    rows: list[int] = []
    widest, longest = 0, 0
    for row in order:
        S, T = length_R2[row].tolist()
        if not S or not T:
            continue
        if rows and (len(rows) + 1) * max(widest, S) * max(longest, T) > _CELLS:
            yield _batch(rows, sources, targets, source_tokens, target_tokens)
            rows, widest, longest = [], 0, 0
        rows.append(row)
        widest, longest = max(widest, S), max(longest, T)
    if rows:
        yield _batch(rows, sources, targets, source_tokens, target_tokens)


def _batch(
    rows: Sequence[int], sources: Sequence[Tokens], targets: Sequence[Tokens], source_tokens: int, target_tokens: int
) -> _Batch:
    return _Batch(
        tuple(rows),
        *(
            _padded([side[row] for row in rows], tokens)
            for side, tokens in ((sources, source_tokens), (targets, target_tokens))
        ),
        *(torch.tensor([len(side[row]) for row in rows]) for side in (sources, targets)),
    )


def _padded(sentences: Sequence[Tokens], padding: int) -> Tensor:
    padded = np.full((len(sentences), max(map(len, sentences))), padding)
    for row, sentence in enumerate(sentences):
        padded[row, : len(sentence)] = sentence
    return torch.from_numpy(padded)


def _seen_pairs(sources: Sequence[Tokens], targets: Sequence[Tokens], target_tokens: int) -> Tokens:
    """All pairs of tokens that share a sentence pair, sorted."""
    seen, new, count = np.zeros(0, np.int64), [np.zeros(0, np.int64)], 0
    for source, target in zip(sources, targets, strict=True):
        new.append((source[:, None] * target_tokens + target).ravel())
        count += new[-1].size
        if count > _NEW_PAIRS:
            seen, new, count = _different(np.concatenate([seen, *new])), [], 0
    return _different(np.concatenate([seen, *new]))


def _different(array: Tokens) -> Tokens:
    """The distinct values, sorted; several times as fast as ``np.unique`` where most occur again."""
    array.sort()
    return array[np.append(True, array[1:] != array[:-1])] if len(array) else array


def _at(index_BST: Tensor, values_E: Tensor) -> Tensor:
    """``values_E[index_BST]``, in a tenth of the time."""
    return values_E.index_select(0, index_BST.flatten()).view(index_BST.shape)


def _within(length_B: Tensor) -> Tensor:
    return torch.arange(int(length_B.max())) < length_B[:, None]
