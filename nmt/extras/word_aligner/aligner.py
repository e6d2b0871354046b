"""A word aligner that needs no translation model: hidden Markov models over several kinds of word units, averaged.

For each kind (whole words, and pieces of several vocabularies) a pair of models is learnt (see `hmm`).
Between words, p_ij of words i and j is the mean over the kinds of units of

    forward    mean over tokens t of target word i of  sum over tokens s of source word j of  p(t stands for s)
    backward   mean over tokens s of source word j of  sum over tokens t of target word i of  p(s stands for t)

What is missing to 1 in a row of the forward matrix, or a column of the backward one, is the empty word's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from torch import Tensor

from nmt.alignment import Weights
from nmt.alignment.extract import Grow
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.core.files import refuse_special, whole_file
from nmt.data.sentences import Span
from nmt.extras.word_aligner.hmm import FARTHEST_JUMP, Hmm, HmmPair, Tokens, learn
from nmt.extras.word_aligner.word_units import Subwords, WholeWords, WordUnits

T = TypeVar("T")

Words: TypeAlias = Sequence[str]
"""The words of a sentence."""

RULE = Grow(threshold=0.25)
"""How links are found. These are probabilities, unlike attention: a cell below that is rather none."""

LONGEST = 1000
"""Tokens of a side of a sentence: the time of the models grows with the cube, their memory with the square. A member
for which a pair has more keeps silent about it."""

_FORMAT = "nmt word aligner 1"

SHARES = (0.16, 0.25, 0.4)
"""The sizes of vocabularies of pieces, as shares of the different plain words that a side has."""


class NumberedSentences(NamedTuple):
    """Sentences as tokens."""

    tokens_B: list[Tokens]
    counts_B: list[Tokens]
    """How many tokens each word has: at least one."""
    number: dict[str, int]
    """Of all tokens that are known, and of these sentences'."""


@dataclass(frozen=True)
class TokenIndex:
    """How one side's words become numbers."""

    word_units: WordUnits
    number: dict[str, int]

    def numbered(self, sentences: Sequence[Words]) -> NumberedSentences:
        """The tokens of each sentence as numbers; unknown ones are numbered on."""
        number = dict(self.number)
        place: dict[str, int] = {}
        word_N = np.array([place.setdefault(word, len(place)) for words in sentences for word in words], dtype=np.int64)
        tokens, counts = self.word_units.tokens(place)
        token_M = np.array([number.setdefault(token, len(number)) for token in tokens], dtype=np.int64)
        count_N = np.array(counts, dtype=np.int64)[word_N]
        first_N = (np.cumsum(counts) - counts)[word_N].astype(np.int64)
        # The tokens of each word one after the other: its first one's place, and as many steps on.
        steps = np.arange(count_N.sum()) - np.repeat(np.cumsum(count_N) - count_N, count_N)
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        counts_B = _parted(count_N, lengths)
        tokens_B = _parted(token_M[np.repeat(first_N, count_N) + steps], [int(each.sum()) for each in counts_B])
        return NumberedSentences(tokens_B, counts_B, number)


@dataclass(frozen=True)
class Member:
    """The models of one kind of word units."""

    source: TokenIndex
    target: TokenIndex
    models: HmmPair

    def fits(self, source: Words, target: Words) -> bool:
        """Whether no side of a pair has more than `LONGEST` tokens."""
        pair = ((self.source, source), (self.target, target))
        return all(len(side.word_units.tokens(words)[0]) <= LONGEST for side, words in pair)

    def cells(self, sources: Sequence[Words], targets: Sequence[Words]) -> LinkMatrices:
        """The cells of all pairs; those of a pair that does not fit are 0."""
        source, target = self.source.numbered(sources), self.target.numbered(targets)
        # Both in the order of their numbers.
        spelt_alike_X = np.array([target.number.get(token, -1) for token in source.number])
        fitting = [max(map(len, both)) <= LONGEST for both in zip(source.tokens_B, target.tokens_B, strict=True)]
        none = np.zeros(0, np.int64)
        source_tokens, target_tokens = (
            [tokens if fits else none for tokens, fits in zip(side.tokens_B, fitting, strict=True)]
            for side in (source, target)
        )
        length_R2 = _lengths(sources, targets)
        first_R = np.cumsum([0, *length_R2.prod(axis=1)])
        cells_2N = np.zeros((2, int(first_R[-1])), np.float32)
        for rows, forward_BTS, backward_BTS in self.models.in_batches(source_tokens, target_tokens, spelt_alike_X):
            source_counts, target_counts = ([side.counts_B[row] for row in rows] for side in (source, target))
            cells_2BIJ = _between_words_of(forward_BTS, backward_BTS, target_counts, source_counts)
            _, _, widest_I, widest_J = cells_2BIJ.shape
            I_B11, J_B11 = length_R2[list(rows)].T[:, :, None, None]
            row_I1, column_J = np.arange(widest_I)[:, None], np.arange(widest_J)
            is_cell_BIJ = (row_I1 < I_B11) & (column_J < J_B11)
            place_BIJ = first_R[list(rows)][:, None, None] + row_I1 * J_B11 + column_J
            cells_2N[:, place_BIJ[is_cell_BIJ]] = cells_2BIJ[:, is_cell_BIJ]
        return LinkMatrices(cells_2N, np.array(fitting, dtype=np.bool_))


class LinkMatrices(NamedTuple):
    """What a member says of R pairs."""

    cells_2N: NDArray[np.float32]
    """The forward matrices' cells, those of one pair after those of another, and the backward ones'."""
    fits_R: NDArray[np.bool_]
    """Whether it says anything of a pair."""


class WordAligner:
    """The mean of several members: what a file of `save_aligner` holds."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)

    def fits(self, source: Words, target: Words) -> bool:
        """Whether a pair is short enough for any of the members."""
        return any(each.fits(source, target) for each in self.members)

    def matrices(
        self, sources: Sequence[Words], targets: Sequence[Words], *, first_line: int = 1
    ) -> list[tuple[Weights, Weights]]:
        """Of each pair of sentences the forward and the backward matrix between its words, float32, a row for each
        target word and a column for each source word: the mean over the members that it fits. Raises InputError where
        it fits none; ``first_line`` is the first pair's number."""
        length_R2 = _lengths(sources, targets)
        _refuse_long(length_R2.max(axis=1) > LONGEST, first_line)  # a word has one token or more
        by_member = in_threads([partial(each.cells, sources, targets) for each in self.members])
        heard_R = np.array([each.fits_R for each in by_member]).sum(axis=0)
        _refuse_long(np.array(heard_R == 0), first_line)
        heard_N = np.repeat(heard_R, length_R2.prod(axis=1)).astype(np.float32)
        mean_2N = np.zeros_like(by_member[0].cells_2N)
        for each in by_member:
            mean_2N += each.cells_2N / heard_N
        return _matrices(mean_2N, sources, targets)


def _lengths(sources: Sequence[Words], targets: Sequence[Words]) -> Tokens:
    """Of each pair how many target and source words it has, (R, 2): the shape of its matrices."""
    lengths = [(len(target), len(source)) for source, target in zip(sources, targets, strict=True)]
    return np.array(lengths, dtype=np.int64).reshape(-1, 2)


def _refuse_long(is_long_R: NDArray[np.bool_], first_line: int) -> None:
    if is_long_R.any():
        line = first_line + int(is_long_R.argmax())
        raise InputError(f"line {line}: more than {LONGEST} words and signs are too many to align; split the line")


def _matrices(
    cells_2N: NDArray[np.float32], sources: Sequence[Words], targets: Sequence[Words]
) -> list[tuple[Weights, Weights]]:
    """Each pair's own of the cells."""
    forward_N, backward_N = cells_2N
    found: list[tuple[Weights, Weights]] = []
    begin = 0
    for source, target in zip(sources, targets, strict=True):
        shape = (len(target), len(source))
        end = begin + shape[0] * shape[1]
        found.append((forward_N[begin:end].reshape(shape), backward_N[begin:end].reshape(shape)))
        begin = end
    return found


def _parted(array: Tokens, lengths: Iterable[int]) -> list[Tokens]:
    """The array in pieces of these lengths."""
    begin, parts = 0, []
    for length in lengths:
        parts.append(array[begin : begin + length])
        begin += length
    return parts


def learn_aligner(
    sources: Sequence[Words],
    targets: Sequence[Words],
    *,
    shares: Sequence[float] = SHARES,
    iterations: int = 5,
    after_iteration: Callable[[], object] = lambda: None,
) -> WordAligner:
    """An aligner learnt from sentence pairs; those of more than `LONGEST` tokens teach nothing. Raises ValueError where
    a side has no words."""
    source_words, target_words = (Counter(word for words in side for word in words) for side in (sources, targets))
    cuts: list[tuple[WordUnits, WordUnits]] = [(WholeWords(), WholeWords())]
    for share in shares:
        source, target = (Subwords.learn(words, share) for words in (source_words, target_words))
        cuts.append((source, target))

    def member(pair: tuple[WordUnits, WordUnits]) -> Member:
        source, target = (
            TokenIndex(cut, {}).numbered(side) for cut, side in zip(pair, (sources, targets), strict=True)
        )
        fitting = [
            both for both in zip(source.tokens_B, target.tokens_B, strict=True) if max(map(len, both)) <= LONGEST
        ]
        models = learn(
            [one for one, _ in fitting],
            [other for _, other in fitting],
            source_tokens=len(source.number),
            target_tokens=len(target.number),
            flat_iterations=iterations,
            iterations=iterations,
            after_iteration=after_iteration,
        )
        return Member(TokenIndex(pair[0], source.number), TokenIndex(pair[1], target.number), models)

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


def _between_words_of(
    forward_BTS: Tensor, backward_BTS: Tensor, target_counts: Sequence[Tokens], source_counts: Sequence[Tokens]
) -> NDArray[np.float32]:
    """As ``between_words``, of a padded batch: both matrices, (2, B, I, J), padded too. No word is without tokens."""
    shared_BIT, shared_BJS = _words_of_tokens(target_counts), _words_of_tokens(source_counts)
    both_2BTS = torch.stack([forward_BTS, backward_BTS])
    target_BI1 = shared_BIT.sum(dim=2, keepdim=True).clamp(min=1)
    source_B1J = shared_BJS.sum(dim=2)[:, None].clamp(min=1)
    both_2BIJ = torch.matmul(torch.matmul(shared_BIT, both_2BTS), shared_BJS.mT)
    return torch.stack([both_2BIJ[0] / target_BI1, both_2BIJ[1] / source_B1J]).numpy()


def _words_of_tokens(counts: Sequence[Tokens]) -> Tensor:
    """1 where a word has a token, (B, words, tokens)."""
    B, I = len(counts), max(map(len, counts))  # noqa: E741
    count_BI = np.zeros((B, I), np.int64)
    for row, each in enumerate(counts):
        count_BI[row, : len(each)] = each
    last_BI1 = torch.from_numpy(count_BI.cumsum(axis=1))[:, :, None]
    place_T = torch.arange(int(last_BI1.max()))
    return ((place_T < last_BI1) & (place_T >= last_BI1 - torch.from_numpy(count_BI)[:, :, None])).float()


def learnt_alignments(
    sources: Sequence[Words],
    targets: Sequence[Words],
    matrices: Sequence[tuple[Weights, Weights]],
    source_spans: Sequence[Sequence[Span]],
    target_spans: Sequence[Sequence[Span]],
) -> list[Alignment]:
    """The alignment of each pair by matrices of both directions: the soft one is their geometric mean, to which each of
    the two must consent, and the links are found in it by `RULE`. The spans say where the words stand."""
    weights = [np.sqrt(forward_IJ * backward_IJ, dtype=np.float64) for forward_IJ, backward_IJ in matrices]
    rows = zip(sources, targets, RULE.links_of(weights), weights, source_spans, target_spans, strict=True)
    return [
        Alignment(
            tuple(source),
            tuple(target),
            links,
            weights_IJ,
            source_spans=tuple(here),
            target_spans=tuple(there),
        )
        for source, target, links, weights_IJ, here, there in rows
    ]


# -------------------------------------------------------------------------------------------------------------- files


def save_aligner(aligner: WordAligner, path: Path) -> None:
    """Writes one file, read with `load_aligner`; it is there whole or not at all. Raises OSError."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, member in enumerate(aligner.members):
        for side, of in (("source", member.source), ("target", member.target)):
            arrays[f"{number}.{side}.tokens"] = _bytes("\n".join(of.number).encode())
            if isinstance(of.word_units, Subwords):
                arrays[f"{number}.{side}.subwords"] = _bytes(of.word_units.model)
        arrays[f"{number}.pairs"] = member.models.pair_E
        for name, direction in (("forward", member.models.forward), ("backward", member.models.backward)):
            for field in fields(Hmm):
                arrays[f"{number}.{name}.{field.name}"] = getattr(direction, field.name).numpy()
    with whole_file(path) as unfinished:
        # One entry: safetensors writes several in any order, and the same text is to give the same bytes.
        safetensors.numpy.save_file(arrays, unfinished, {"format": _FORMAT})


def load_aligner(path: Path) -> WordAligner:
    """Reads what `save_aligner` wrote. Raises InputError for what is no such file, or damaged."""
    refuse_special(path)
    try:
        path.open("rb").close()  # safetensors' own errors repeat the path
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (safetensors.SafetensorError, ValueError, TypeError, AttributeError):  # the last two: types numpy lacks
        raise InputError(f"{path}: is no aligner, or damaged; make one with nmt aligner") from None
    if metadata.get("format") != _FORMAT:
        raise InputError(f"{path}: is no aligner of this version of nmt; make one with nmt aligner")
    try:
        count = sum(name.endswith(".pairs") for name in arrays)
        members = [_member(arrays, number, path) for number in range(max(1, count))]
    except (KeyError, ValueError, TypeError):
        raise InputError(f"{path}: is damaged; make it anew with nmt aligner") from None
    return WordAligner(members)


def _member(arrays: Mapping[str, NDArray[Any]], number: int, path: Path) -> Member:
    """Raises KeyError or ValueError for what does not fit together."""
    source, target = (_side(arrays, f"{number}.{side}", path) for side in ("source", "target"))
    pair_E = arrays[f"{number}.pairs"]
    forward, backward = (
        Hmm(**{each.name: torch.from_numpy(arrays[f"{number}.{name}.{each.name}"]) for each in fields(Hmm)})
        for name in ("forward", "backward")
    )
    for direction, tokens in ((forward, len(target.number)), (backward, len(source.number))):
        shapes = [tuple(getattr(direction, each.name).shape) for each in fields(Hmm)]
        reach = FARTHEST_JUMP
        if shapes != [pair_E.shape, (tokens + 1,), (2 * reach + 1,), (reach + 1,)]:
            raise ValueError("shapes")
        for each in fields(Hmm):
            values = getattr(direction, each.name)
            # A little more than 1 where counts have been smoothed; what is no number fails every comparison.
            if values.dtype != torch.float32 or not ((values >= 0) & (values < 1.01)).all():
                raise ValueError("values")
        if not (direction.jump_J > 0).all() or not (direction.first_W1 > 0).all():
            raise ValueError("jumps")
    if pair_E.dtype != np.int64 or pair_E.ndim != 1 or (np.diff(pair_E) <= 0).any():
        raise ValueError("pairs")
    if len(pair_E) and not 0 <= pair_E[0] <= pair_E[-1] < len(source.number) * len(target.number):
        raise ValueError("numbers of tokens")
    return Member(source, target, HmmPair(forward, backward, pair_E))


def _side(arrays: Mapping[str, NDArray[Any]], name: str, path: Path) -> TokenIndex:
    listed, model = arrays[f"{name}.tokens"], arrays.get(f"{name}.subwords")
    if any(each is not None and each.dtype != np.uint8 for each in (listed, model)):
        raise ValueError("types")
    tokens = listed.tobytes().decode().split("\n")
    number = {token: place for place, token in enumerate(tokens)}
    if len(number) != len(tokens):
        raise ValueError("a token twice")
    return TokenIndex(WholeWords() if model is None else Subwords(model.tobytes(), name=str(path)), number)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
