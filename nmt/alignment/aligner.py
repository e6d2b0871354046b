"""A word aligner that needs no translation model: hidden Markov models over several granularities, averaged.

For each granularity (whole words, and pieces of several vocabularies) a pair of models is learnt (`nmt.alignment.hmm`).
Between words, p_ij of words i and j is the mean over the granularities of

    forward    mean over tokens t of target word i of  sum over tokens s of source word j of  p(t stands for s)
    backward   mean over tokens s of source word j of  sum over tokens t of target word i of  p(s stands for t)

What is missing to 1 in a row of the forward matrix, or a column of the backward one, is the empty word's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import safetensors
import safetensors.numpy
import torch
from numpy.typing import NDArray

from nmt.alignment import Weights
from nmt.alignment.extract import Grow
from nmt.alignment.formats import Alignment
from nmt.alignment.granularity import Granularity, Subwords, WholeWords
from nmt.alignment.hmm import FARTHEST_JUMP, Direction, Hmms, Tokens, learn
from nmt.core.errors import InputError
from nmt.core.files import refuse_special, whole_file
from nmt.data.sentences import Span

T = TypeVar("T")

Words: TypeAlias = Sequence[str]
"""The words of a sentence."""

RULE = Grow(threshold=0.25)
"""How links are found. These are probabilities, unlike attention: a cell below that is rather none."""

_FORMAT = "nmt word aligner 1"

SHARES = (0.16, 0.25, 0.4)
"""The sizes of vocabularies of pieces, as shares of the different words that a side has."""


class Numbered(NamedTuple):
    """Sentences as tokens."""

    tokens_B: list[Tokens]
    counts_B: list[list[int]]
    """How many tokens each word has."""
    number: dict[str, int]
    """Of all tokens that are known, and of these sentences'."""


@dataclass(frozen=True)
class Side:
    """How one side's words become numbers."""

    granularity: Granularity
    number: dict[str, int]

    def numbered(self, sentences: Sequence[Words]) -> Numbered:
        """The tokens of each sentence as numbers; unknown ones are numbered on."""
        number = dict(self.number)
        tokens_B: list[Tokens] = []
        counts_B: list[list[int]] = []
        for words in sentences:
            tokens, counts = self.granularity.tokens(words)
            tokens_B.append(np.array([number.setdefault(token, len(number)) for token in tokens], dtype=np.int64))
            counts_B.append(counts)
        return Numbered(tokens_B, counts_B, number)


@dataclass(frozen=True)
class Member:
    """The models of one granularity."""

    source: Side
    target: Side
    models: Hmms

    def matrices(self, sources: Sequence[Words], targets: Sequence[Words]) -> list[tuple[Weights, Weights]]:
        """As ``WordAligner.matrices``."""
        source, target = self.source.numbered(sources), self.target.numbered(targets)
        # Both in the order of their numbers.
        spelt_alike_X = np.array([target.number.get(token, -1) for token in source.number])
        found = self.models.posteriors(source.tokens_B, target.tokens_B, spelt_alike_X)
        return [
            between_words(*matrices, rows, columns)
            for matrices, rows, columns in zip(found, target.counts_B, source.counts_B, strict=True)
        ]


class WordAligner:
    """The mean of several members: what a file of `save_aligner` holds."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)

    def matrices(self, sources: Sequence[Words], targets: Sequence[Words]) -> list[tuple[Weights, Weights]]:
        """Of each pair of sentences the forward and the backward matrix between its words, float32, a row for each
        target word and a column for each source word."""
        means = [
            (np.zeros((len(target), len(source)), np.float32), np.zeros((len(target), len(source)), np.float32))
            for source, target in zip(sources, targets, strict=True)
        ]
        for matrices in in_threads([partial(each.matrices, sources, targets) for each in self.members]):
            for mean, found in zip(means, matrices, strict=True):
                for sum_IJ, weights_IJ in zip(mean, found, strict=True):
                    sum_IJ += weights_IJ / len(self.members)
        return means


def learn_aligner(
    sources: Sequence[Words],
    targets: Sequence[Words],
    *,
    shares: Sequence[float] = SHARES,
    iterations: int = 5,
    after_iteration: Callable[[], object] = lambda: None,
) -> WordAligner:
    """An aligner learnt from sentence pairs. Raises ValueError where a side has no words."""
    source_words, target_words = (Counter(word for words in side for word in words) for side in (sources, targets))
    cuts: list[tuple[Granularity, Granularity]] = [(WholeWords(), WholeWords())]
    for share in shares:
        source, target = (Subwords.learn(words, round(share * len(words))) for words in (source_words, target_words))
        cuts.append((source, target))

    def member(pair: tuple[Granularity, Granularity]) -> Member:
        source, target = (Side(cut, {}).numbered(side) for cut, side in zip(pair, (sources, targets), strict=True))
        models = learn(
            source.tokens_B,
            target.tokens_B,
            source_tokens=len(source.number),
            target_tokens=len(target.number),
            flat_iterations=iterations,
            iterations=iterations,
            after_iteration=after_iteration,
        )
        return Member(Side(pair[0], source.number), Side(pair[1], target.number), models)

    return WordAligner(in_threads([partial(member, pair) for pair in cuts]))


def in_threads(calls: Sequence[Callable[[], T]]) -> list[T]:
    """What the calls return, in order. Their tensors are small, so each has one thread, and several of them run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(lambda call: call(), calls))
    finally:
        torch.set_num_threads(threads)


def between_words(
    forward_TS: Weights, backward_TS: Weights, target_counts: Sequence[int], source_counts: Sequence[int]
) -> tuple[Weights, Weights]:
    """The matrices between words of those between their tokens, of which each word has as many as the counts say: a
    forward weight is summed over a source word's tokens and averaged over a target word's, a backward one the other way
    round. A word without tokens has weight 0."""
    shape = (len(target_counts), len(source_counts))
    if shape == forward_TS.shape and all(target_counts) and all(source_counts):
        return forward_TS, backward_TS
    if not forward_TS.size:
        return np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    both_2TS = np.stack([forward_TS, backward_TS])
    both_2IJ = _summed(_summed(both_2TS, target_counts, axis=1), source_counts, axis=2)
    target_I1, source_J = (np.maximum(counts, 1).astype(np.float32) for counts in (target_counts, source_counts))
    return both_2IJ[0] / target_I1[:, None], both_2IJ[1] / source_J


def _summed(array: NDArray[np.floating], counts: Sequence[int], *, axis: int) -> NDArray[np.floating]:
    """The sums over neighbours along an axis, as many as the counts say."""
    first = np.minimum(np.cumsum([0, *counts[:-1]]), array.shape[axis] - 1)
    summed: NDArray[np.floating] = np.add.reduceat(array, first, axis=axis)
    nothing = [place for place, count in enumerate(counts) if not count]
    if nothing:  # reduceat gives the neighbour instead
        summed[(slice(None),) * axis + (nothing,)] = 0
    return summed


def learnt_alignment(
    source_words: Words,
    target_words: Words,
    forward_IJ: Weights,
    backward_IJ: Weights,
    source_spans: Sequence[Span],
    target_spans: Sequence[Span],
) -> Alignment:
    """The alignment of a pair by matrices of both directions: the soft one is their geometric mean, to which each of
    the two must consent, and the links are found in it by `RULE`."""
    weights_IJ = np.sqrt(forward_IJ * backward_IJ, dtype=np.float64)
    return Alignment(
        tuple(source_words),
        tuple(target_words),
        RULE.links(weights_IJ),
        weights_IJ,
        source_spans=tuple(source_spans),
        target_spans=tuple(target_spans),
    )


# -------------------------------------------------------------------------------------------------------------- files


def save_aligner(aligner: WordAligner, path: Path) -> None:
    """Writes one file, read with `load_aligner`; it is there whole or not at all. Raises OSError."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, member in enumerate(aligner.members):
        for side, of in (("source", member.source), ("target", member.target)):
            arrays[f"{number}.{side}.tokens"] = _bytes("\n".join(of.number).encode())
            if isinstance(of.granularity, Subwords):
                arrays[f"{number}.{side}.subwords"] = _bytes(of.granularity.model)
        arrays[f"{number}.pairs"] = member.models.pair_E
        for name, direction in (("forward", member.models.forward), ("backward", member.models.backward)):
            for field in fields(Direction):
                arrays[f"{number}.{name}.{field.name}"] = getattr(direction, field.name).numpy()
    with whole_file(path) as unfinished:
        safetensors.numpy.save_file(arrays, unfinished, {"format": _FORMAT, "members": str(len(aligner.members))})


def load_aligner(path: Path) -> WordAligner:
    """Reads what `save_aligner` wrote. Raises InputError for what is no such file, or damaged."""
    refuse_special(path)
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (safetensors.SafetensorError, ValueError, TypeError):
        raise InputError(f"{path}: is no aligner, or damaged; make one with nmt aligner") from None
    if metadata.get("format") != _FORMAT:
        raise InputError(f"{path}: is no aligner of this version of nmt; make one with nmt aligner")
    try:
        members = [_member(arrays, number, path) for number in range(int(metadata["members"]))]
        if not members:
            raise ValueError("no members")
    except (KeyError, ValueError, UnicodeDecodeError):
        raise InputError(f"{path}: is damaged; make it anew with nmt aligner") from None
    return WordAligner(members)


def _member(arrays: Mapping[str, NDArray[Any]], number: int, path: Path) -> Member:
    """Raises KeyError or ValueError for what does not fit together."""
    source, target = (_side(arrays, f"{number}.{side}", path) for side in ("source", "target"))
    pair_E = arrays[f"{number}.pairs"]
    forward, backward = (
        Direction(**{each.name: torch.from_numpy(arrays[f"{number}.{name}.{each.name}"]) for each in fields(Direction)})
        for name in ("forward", "backward")
    )
    for direction, tokens in ((forward, len(target.number)), (backward, len(source.number))):
        shapes = [tuple(getattr(direction, each.name).shape) for each in fields(Direction)]
        reach = FARTHEST_JUMP
        if shapes != [pair_E.shape, (tokens + 1,), (2 * reach + 1,), (reach + 1,)]:
            raise ValueError("shapes")
        if any(getattr(direction, each.name).dtype != torch.float32 for each in fields(Direction)):
            raise ValueError("types")
        if not (
            all(_within(getattr(direction, each.name), 0.0) for each in fields(Direction))
            and _within(direction.jump_J, _LEAST_JUMP)
            and _within(direction.first_W1, _LEAST_JUMP)
        ):
            raise ValueError("probabilities")
    if pair_E.dtype != np.int64 or pair_E.ndim != 1 or (np.diff(pair_E) <= 0).any():
        raise ValueError("pairs")
    return Member(source, target, Hmms(forward, backward, pair_E))


_LEAST_JUMP = 1e-9
"""What is learnt is smoothed by more. Of nothing but zeros there would be no sum to divide by."""


def _within(numbers: torch.Tensor, least: float) -> bool:
    """Whether they can be probabilities, or those with a little added."""
    return bool(((numbers >= least) & (numbers <= 2.0)).all())


def _side(arrays: Mapping[str, NDArray[Any]], name: str, path: Path) -> Side:
    tokens = arrays[f"{name}.tokens"].tobytes().decode().split("\n")
    number = {token: place for place, token in enumerate(tokens)}
    if len(number) != len(tokens):
        raise ValueError("a token twice")
    model = arrays.get(f"{name}.subwords")
    return Side(WholeWords() if model is None else Subwords(model.tobytes(), name=str(path)), number)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
