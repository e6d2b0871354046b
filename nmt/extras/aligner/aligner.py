"""A word aligner without a translation model: hidden Markov models over several kinds of word units, averaged.

For each kind (the beginnings of words, and pieces of one vocabulary, or of two where there is little text) a pair of
models is learnt (see `hmm`). Whole words as a further kind would take time and make more errors: most words of a text
are rare, and frequent ones are pieces. Between words, p_ij of words i and j is the mean over the kinds of units of

    forward    mean over tokens t of target word i of  sum over tokens s of source word j of  p(t stands for s)
    backward   mean over tokens s of source word j of  sum over tokens t of target word i of  p(s stands for t)

The remainder to 1 in a row of the forward matrix, or in a column of the backward one, belongs to the empty word.
"""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from nmt.alignment import Weights
from nmt.alignment.extract import Grow
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.core.files import refuse_special, whole_file
from nmt.core.memory import malloc_trim
from nmt.data.segments import left_blank
from nmt.data.words import Run, Span
from nmt.extras.aligner.hmm import MOST_PAIRS, Bools, Floats, Hmm, HmmPair, Tokens, in_order, learn
from nmt.extras.aligner.word_units import Beginnings, Subwords, WordUnits

Hashes: TypeAlias = NDArray[np.uint32]

Words: TypeAlias = Sequence[str | Run]
"""The words of a sentence."""

RULE = Grow(threshold=0.25)
"""The rule for links. Unlike attention weights these are probabilities: a cell below the threshold is more probably not
a link."""

LONGEST = 1000
"""Maximum number of tokens of a side of a sentence: the time of the models grows with its cube, their memory with its
square. A member leaves out longer pairs."""

_FORMATS = ("nmt word aligner 4", "nmt word aligner 3", "nmt word aligner 2")
"""Formats that are read: the one that is written, an earlier one without the hashes of its pairs, and one that also
lacks the pieces of runs."""

LETTERS = 4
"""Length of the beginnings of words."""

ITERATIONS, FURTHER_ITERATIONS = (3, 5), (0, 2)
"""Numbers of iterations with equal jumps, and then with learnt ones: over the first block, and over later pairs, whose
jumps and frequent words are known."""

RUN_SIZES = (12.0, 2.0, 5.0)
"""Sizes of the vocabularies of pieces of runs, one for each kind of units; see ``Subwords.learn_runs``."""

SHARES, SMALL_SHARES, SMALL = (0.25,), (0.16, 0.4), 100_000
"""Sizes of the vocabularies of pieces, as shares of the number of distinct plain words of a side: for a text, and for
one with fewer than `SMALL` words on both sides together, for which two sizes make fewer errors than one and take little
time."""


class IndexedSentences:
    """Sentences in which words are replaced by numbers, because a text has few different words."""

    def __init__(self, sentences: Iterable[Words] = ()) -> None:
        self.number: dict[str | Run, int] = {}
        self._words, self._lengths, self._hashes = array("i"), array("i"), array("I")
        for words in sentences:
            self.append(words)

    def append(self, words: Words) -> None:
        """Adds a sentence."""
        self._words.extend([self.number.setdefault(word, len(self.number)) for word in words])
        self._lengths.append(len(words))
        # all characters except white space, which are the same for any division of a line into words
        self._hashes.append(zlib.crc32("".join(map("".join, words)).encode("utf-8", "surrogatepass")))

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def word_N(self) -> NDArray[np.int32]:
        """The words of all sentences, concatenated."""
        return np.array(self._words, np.int32)

    @property
    def length_R(self) -> NDArray[np.int32]:
        """Number of words of each sentence, in which a run counts as one."""
        return np.array(self._lengths, np.int32)

    @property
    def hash_R(self) -> Hashes:
        """CRC-32 of each sentence."""
        return np.array(self._hashes, np.uint32)

    def counts(self) -> Counter[Any]:
        """Counts the occurrences of each word."""
        return Counter(dict(zip(self.number, np.bincount(self.word_N).tolist(), strict=True)))


class NumberedSentences(NamedTuple):
    """Sentences as tokens."""

    tokens_B: list[Tokens]
    counts_B: list[Tokens]
    """The number of tokens of each word, at least one."""
    number: dict[str, int]
    """The numbers of all known tokens and of those in these sentences."""


@dataclass(frozen=True)
class TokenIndex:
    """The word units of one side and the numbers of its tokens."""

    word_units: WordUnits
    number: dict[str, int]

    def numbered(self, sentences: IndexedSentences) -> NumberedSentences:
        """Converts the tokens of each sentence to numbers; unknown tokens get the next numbers."""
        number = dict(self.number)
        tokens, counts = self.word_units.tokens(sentences.number)
        token_T = np.array([number.setdefault(token, len(number)) for token in tokens], dtype=np.int32)
        count_W, size_M = np.array(counts, dtype=np.int32), np.array(list(map(_size, sentences.number)), np.int32)
        token_count_M = np.add.reduceat(count_W, np.cumsum(size_M) - size_M) if len(count_W) else count_W
        return NumberedSentences(
            _of_sentences(token_T, token_count_M, sentences), _of_sentences(count_W, size_M, sentences), number
        )


def _of_sentences(value_V: Tokens, count_M: Tokens, sentences: IndexedSentences) -> list[Tokens]:
    """Collects the values of each sentence from those of its different words, which are concatenated, with ``count_M``
    values for each word."""
    word_N, length_R = sentences.word_N, sentences.length_R
    count_N = count_M[word_N]
    first_N = (np.cumsum(count_M) - count_M)[word_N].astype(np.int32)
    # the index of the first value, and of the following ones
    end_N = np.cumsum(count_N, dtype=np.int32)
    place_N = np.repeat(first_N - end_N + count_N, count_N) + np.arange(count_N.sum(), dtype=np.int32)
    end_R = np.append(np.int32(0), end_N)[np.cumsum(length_R)]
    values = value_V[place_N]
    return [values[begin:end] for begin, end in pairwise([0, *end_R.tolist()])]


@dataclass(frozen=True)
class Member:
    """The models of one kind of word units."""

    source: TokenIndex
    target: TokenIndex
    models: HmmPair

    def fits(self, source: Words, target: Words) -> bool:
        """Returns True if no side of a pair has more than `LONGEST` tokens."""
        pair = ((self.source, source), (self.target, target))
        return all(len(side.word_units.tokens(words)[0]) <= LONGEST for side, words in pair)

    def cells(self, sources: IndexedSentences, targets: IndexedSentences, is_learnt_R: Bools) -> tuple[Floats, Bools]:
        """Computes the cells of the forward and of the backward matrices, (2, N), pair after pair, which are 0 for a
        pair that does not fit; also returns which pairs fit. See ``HmmPair.in_batches``."""
        source, target = self.source.numbered(sources), self.target.numbered(targets)
        # both in the order of their numbers
        spelt_alike_X = np.array([target.number.get(token, -1) for token in source.number])
        source_tokens, target_tokens, fits_R = _fitting(source.tokens_B, target.tokens_B)
        length_R2 = np.array([list(map(len, side.counts_B)) for side in (target, source)]).T
        first_R = np.cumsum([0, *length_R2.prod(axis=1)])
        cells_2N = np.zeros((2, int(first_R[-1])), np.float32)
        batches = self.models.in_batches(source_tokens, target_tokens, spelt_alike_X, is_learnt_R)
        for rows, forward_BTS, backward_BTS in batches:
            source_counts, target_counts = ([side.counts_B[row] for row in rows] for side in (source, target))
            cells_2BIJ = between_words(forward_BTS, backward_BTS, target_counts, source_counts)
            _, _, widest_I, widest_J = cells_2BIJ.shape
            I_B11, J_B11 = length_R2[list(rows)].T[:, :, None, None]
            row_I1, column_J = np.arange(widest_I)[:, None], np.arange(widest_J)
            is_cell_BIJ = (row_I1 < I_B11) & (column_J < J_B11)
            index_BIJ = first_R[list(rows), None, None] + row_I1 * J_B11 + column_J
            cells_2N[:, index_BIJ[is_cell_BIJ]] = cells_2BIJ[:, is_cell_BIJ]
        return cells_2N, fits_R


def _fitting(source_R: list[Tokens], target_R: list[Tokens]) -> tuple[list[Tokens], list[Tokens], Bools]:
    """Returns the tokens of sentence pairs, without those of pairs with more than `LONGEST` on a side, and which pairs
    fit."""
    fits_R = np.array([max(map(len, pair)) <= LONGEST for pair in zip(source_R, target_R, strict=True)], np.bool_)
    for row in np.flatnonzero(~fits_R):
        source_R[row] = target_R[row] = np.zeros(0, np.int32)
    return source_R, target_R, fits_R


@dataclass(frozen=True, eq=False)
class WordAligner:
    """A word aligner whose matrices are the mean over several members."""

    members: list[Member]
    learnt_P: Hashes = field(default_factory=lambda: np.zeros(0, np.uint32))
    """The sorted hashes of the pairs that the members have learnt from, see ``pair_hashes``."""

    def fits(self, source: Words, target: Words) -> bool:
        """Returns True if a pair is short enough for any of the members."""
        return any(member.fits(source, target) for member in self.members)

    def matrices(
        self, sources: Sequence[Words], targets: Sequence[Words], *, first_line: int = 1
    ) -> list[tuple[Weights, Weights]]:
        """Computes the forward and the backward matrix of each pair of sentences in float32, with a row for each target
        word and a column for each source word: the mean over the members that the pair fits. If it fits none, both are
        empty, with a warning; ``first_line`` is the number of the first pair. In pairs that the aligner has learnt
        from, no link is evidence for itself, so that a word that occurs once is linked like any other."""
        length_R2 = np.array([[sum(map(_size, words)) for words in side] for side in (targets, sources)]).T
        is_long_R = length_R2.max(axis=1) > LONGEST  # their cells alone would fill the memory
        length_R2[is_long_R] = 0
        cut = [[() if is_long_R[row] else words for row, words in enumerate(side)] for side in (sources, targets)]
        source, target = map(IndexedSentences, cut)
        hash_R = pair_hashes(source, target)
        # sorted, so a hash that occurs has a last index after its first one
        first_R, end_R = (np.searchsorted(self.learnt_P, hash_R, side) for side in ("left", "right"))
        by_member = list(in_order(lambda member: member.cells(source, target, end_R > first_R), self.members))
        members_R = np.array([fits_R for _, fits_R in by_member]).sum(axis=0)
        is_long_R |= members_R == 0
        reason = f"more than {LONGEST} words and signs on a side are too many to align; split it"
        left_blank(tuple((first_line + np.flatnonzero(is_long_R)).tolist()), reason)
        members_N = np.repeat(members_R.clip(min=1), length_R2.prod(axis=1)).astype(np.float32)
        mean_2N = np.zeros_like(by_member[0][0])
        for cells_2N, _ in by_member:
            mean_2N += cells_2N / members_N
        parts = zip(*(np.split(cells_N, length_R2.prod(axis=1).cumsum()[:-1]) for cells_N in mean_2N), strict=True)
        shapes = length_R2.tolist()
        pairs = [(one.reshape(shape), other.reshape(shape)) for (one, other), shape in zip(parts, shapes, strict=True)]
        empty = (np.zeros((0, 0), np.float32),) * 2
        return [empty if is_long else pair for pair, is_long in zip(pairs, is_long_R, strict=True)]


def pair_hashes(sources: IndexedSentences, targets: IndexedSentences) -> Hashes:
    """Computes a hash of 32 bits for each pair; by chance, about one pair in four thousand million has a given hash."""
    # an odd factor distinguishes a pair from the one with its sides exchanged, and from others with the same sum
    return sources.hash_R * np.uint32(0x9E3779B1) + targets.hash_R


def _size(word: str | Run) -> int:
    return len(word) if isinstance(word, tuple) else 1


def learn_aligner(
    sources: IndexedSentences, targets: IndexedSentences, *, shares: Sequence[float] | None = None,
    iterations: tuple[int, int] | None = None, before: WordAligner | None = None,
    after_iteration: Callable[[], object] = lambda: None,
) -> WordAligner:  # fmt: skip
    """Learns an aligner from sentence pairs, without those of more than `LONGEST` tokens. With an aligner ``before``,
    these are further pairs: its word units stay, and the links that it has learnt from also count. It is changed in
    place, so that memory holds the models only once. ``shares`` are sizes of vocabularies, by default `SHARES`, and
    ``iterations`` are the numbers of iterations with equal and with learnt jumps, by default `ITERATIONS` or, with
    ``before``, `FURTHER_ITERATIONS`. Raises ValueError if a side has no words."""
    if not sources.number or not targets.number:
        raise ValueError("no words")
    usual_shares = SMALL_SHARES if sources.length_R.sum() + targets.length_R.sum() < SMALL else SHARES
    members = before.members if before else _untaught(sources, targets, usual_shares if shares is None else shares)
    flat_iterations, jump_iterations = iterations or (FURTHER_ITERATIONS if before else ITERATIONS)
    for place, member in enumerate(members):
        malloc_trim(0)
        # without the counts of tokens, which would keep taking memory
        both = (each.numbered(side)[::2] for each, side in ((member.source, sources), (member.target, targets)))
        (source_B, target_B), numbers = zip(*both, strict=True)
        models = learn(
            *_fitting(source_B, target_B)[:2],
            source_tokens=len(numbers[0]),
            target_tokens=len(numbers[1]),
            flat_iterations=flat_iterations,
            iterations=jump_iterations,
            before=member.models if before else None,
            after_iteration=after_iteration,
        )
        if len(models.pair_E) >= MOST_PAIRS:
            models, *kept = models.of_linked_tokens()
            tokens = [list(map(list(number).__getitem__, kept_X)) for number, kept_X in zip(numbers, kept, strict=True)]
            numbers = tuple({token: number for number, token in enumerate(side)} for side in tokens)
        source, target = map(TokenIndex, (member.source.word_units, member.target.word_units), numbers)
        members[place] = Member(source, target, models)
    hash_P = pair_hashes(sources, targets)[(sources.length_R > 0) & (targets.length_R > 0)]
    return WordAligner(members, np.union1d(hash_P, before.learnt_P if before else np.zeros(0, np.uint32)))


def _untaught(sources: IndexedSentences, targets: IndexedSentences, shares: Sequence[float]) -> list[Member]:
    """Creates members that know no tokens yet."""
    source_words, target_words = sources.counts(), targets.counts()
    cuts: list[tuple[WordUnits, WordUnits]] = [(Beginnings(LETTERS), Beginnings(LETTERS))]
    cuts += [(Subwords.learn(source_words, share), Subwords.learn(target_words, share)) for share in shares]
    for cut, size in zip(cuts, cycle(RUN_SIZES), strict=False):
        cut[0].runs, cut[1].runs = (Subwords.learn_runs(words, size) for words in (source_words, target_words))
    nothing = learn([], [], source_tokens=0, target_tokens=0, flat_iterations=0, iterations=0)
    return [Member(TokenIndex(one, {}), TokenIndex(other, {}), nothing) for one, other in cuts]


def between_words(
    forward_BTS: Floats, backward_BTS: Floats, target_counts: Sequence[Tokens], source_counts: Sequence[Tokens]
) -> Floats:
    """Computes the matrices between words, (2, B, I, J), from those between their tokens, all padded; the counts are
    the numbers of tokens of each word of a sentence. A forward weight is summed over a source word's tokens and
    averaged over a target word's, a backward weight the reverse. A word without tokens shares the token before it."""
    has_BIT, has_BJS = _words_of_tokens(target_counts), _words_of_tokens(source_counts)
    both_2BTS = np.stack([forward_BTS, backward_BTS])
    both_2BIJ: Floats = np.matmul(has_BIT @ both_2BTS, has_BJS.swapaxes(1, 2), dtype=np.float32)
    both_2BIJ[0] /= has_BIT.sum(axis=2, keepdims=True).clip(min=1)
    both_2BIJ[1] /= has_BJS.sum(axis=2)[:, None].clip(min=1)
    return both_2BIJ


def _words_of_tokens(counts: Sequence[Tokens]) -> Floats:
    """Returns a matrix, (B, words, tokens), that is 1 if a word has a token or shares it."""
    B, I = len(counts), max(map(len, counts))  # noqa: E741
    count_BI = np.zeros((B, I), np.int64)
    for row, count_W in enumerate(counts):
        count_BI[row, : len(count_W)] = count_W
    last_BI1 = count_BI.cumsum(axis=1)[:, :, None]
    position_T = np.arange(int(last_BI1.max(initial=0)))
    first_BI1 = last_BI1 - count_BI[:, :, None].clip(min=1)
    has_BIT: Floats = ((position_T < last_BI1) & (position_T >= first_BI1)).astype(np.float32)
    return has_BIT


def learnt_alignments(
    sources: Sequence[Words], targets: Sequence[Words], matrices: Sequence[tuple[Weights, Weights]],
    source_spans: Sequence[Sequence[Span]], target_spans: Sequence[Sequence[Span]], rule: Grow = RULE,
) -> list[Alignment]:  # fmt: skip
    """Builds the alignment of each pair from matrices of both directions. The soft alignment is their geometric mean,
    which is high only if both are high, and the rule extracts the links from it. The spans are those of the words in
    their lines. A pair with empty matrices, which was too long, is blank."""
    weights = [np.sqrt(forward_IJ * backward_IJ, dtype=np.float64) for forward_IJ, backward_IJ in matrices]
    alignments = []
    pairs = zip(rule.links_of(weights), weights, sources, targets, source_spans, target_spans, strict=True)
    for links, weights_IJ, *sides in pairs:
        is_blank = weights_IJ.shape != (len(sides[1]), len(sides[0]))
        source, target, here, there = ((),) * 4 if is_blank else map(tuple, sides)
        alignments.append(Alignment(source, target, links, weights_IJ, source_spans=here, target_spans=there))
    return alignments


# -------------------------------------------------------------------------------------------------------------- files


def save_aligner(aligner: WordAligner, path: Path) -> None:
    """Writes one file atomically, which `load_aligner` reads. Raises OSError."""
    arrays: dict[str, NDArray[Any]] = {"learnt": aligner.learnt_P}
    for number, member in enumerate(aligner.members):
        for side, index in (("source", member.source), ("target", member.target)):
            texts = {"tokens": "\n".join(index.number).encode()}
            if isinstance(index.word_units, Subwords):
                texts["subwords"] = index.word_units.tokenizer.model
            elif isinstance(index.word_units, Beginnings):
                arrays[f"{number}.{side}.letters"] = np.array([index.word_units.letters or 0])
            if index.word_units.runs is not None:
                texts["runs"] = index.word_units.runs.tokenizer.model
            arrays |= {f"{number}.{side}.{name}": np.frombuffer(data, np.uint8) for name, data in texts.items()}
        arrays[f"{number}.pairs"] = member.models.pair_E
        for name, direction in (("forward", member.models.forward), ("backward", member.models.backward)):
            arrays |= {f"{number}.{name}.{key}": np.array(value, np.float32) for key, value in vars(direction).items()}
    with whole_file(path) as unfinished:
        # a single entry: safetensors writes several in any order, but the same text must give the same bytes
        safetensors.numpy.save_file(arrays, unfinished, {"format": _FORMATS[0]})


def read_safetensors(path: Path, framework: str, *, remedy: str = "") -> tuple[dict[str, str], dict[str, Any]]:
    """Reads the metadata and the tensors of a file. Raises InputError, with the remedy, if it cannot be read, and the
    errors of safetensors or of the framework if it is damaged."""
    refuse_special(path)
    try:
        path.open("rb").close()  # safetensors' own errors repeat the path
        with safetensors.safe_open(path, framework=framework) as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}{remedy}") from None


def load_aligner(path: Path) -> WordAligner:
    """Reads a file of `save_aligner`. Raises InputError for another or a damaged file."""
    try:
        metadata, arrays = read_safetensors(path, "numpy")
    except (safetensors.SafetensorError, ValueError, TypeError, AttributeError):  # the last two: types numpy lacks
        raise InputError(f"{path}: is not an aligner, or damaged; make one with nmt aligner") from None
    if metadata.get("format") not in _FORMATS:
        raise InputError(f"{path}: is not an aligner of this version of nmt; make one with nmt aligner")
    try:
        count = sum(name.endswith(".pairs") for name in arrays)
        members = [_member(arrays, number, path) for number in range(max(1, count))]
        learnt_P = arrays.get("learnt", np.zeros(0, np.uint32))
        if learnt_P.dtype != np.uint32 or learnt_P.ndim != 1 or (learnt_P[1:] <= learnt_P[:-1]).any():
            raise ValueError("hashes")
    except (KeyError, ValueError, TypeError):
        raise InputError(f"{path}: is damaged; make it anew with nmt aligner") from None
    return WordAligner(members, learnt_P)


def _member(arrays: Mapping[str, NDArray[Any]], number: int, path: Path) -> Member:
    """Builds the models of one kind of word units. Raises KeyError or ValueError for inconsistent arrays."""
    source, target = (_side(arrays, f"{number}.{side}", path) for side in ("source", "target"))
    pair_E = arrays[f"{number}.pairs"]
    forward, backward = (
        Hmm(*(arrays[f"{number}.{name}.{each.name}"] for each in fields(Hmm)))  # type: ignore[arg-type]
        for name in ("forward", "backward")
    )
    sides = (len(source.number), len(target.number))
    for direction, (known, tokens) in ((forward, sides), (backward, sides[::-1])):
        reach = len(direction.first_W1) - 1
        values = list(vars(direction).values())
        shapes = [pair_E.shape, (known + 1,), (known + 1,), (tokens + 1,), (2 * reach + 1,), (reach + 1,), ()]
        # smoothed counts may give a little more than 1; NaN fails every comparison
        ranges = all(each.dtype == np.float32 and ((each >= 0) & (each < 1.01)).all() for each in values)
        if not ranges or list(map(np.shape, values)) != shapes:
            raise ValueError("shapes or values")
        if not (direction.jump_J > 0).all() or not (direction.first_W1 > 0).all():
            raise ValueError("jumps")
    if pair_E.dtype != np.int64 or pair_E.ndim != 1 or (np.diff(pair_E) <= 0).any():
        raise ValueError("pairs")
    if len(pair_E) and not 0 <= pair_E[0] <= pair_E[-1] < len(source.number) * len(target.number):
        raise ValueError("numbers of tokens")
    return Member(source, target, HmmPair(forward, backward, pair_E))


def _side(arrays: Mapping[str, NDArray[Any]], name: str, path: Path) -> TokenIndex:
    text, model, runs = arrays[f"{name}.tokens"], arrays.get(f"{name}.subwords"), arrays.get(f"{name}.runs")
    if any(array is not None and array.dtype != np.uint8 for array in (text, model, runs)):
        raise ValueError("types")
    tokens = text.tobytes().decode().split("\n")
    number = {token: index for index, token in enumerate(tokens)}
    if len(number) != len(tokens):
        raise ValueError("a token twice")
    units: WordUnits
    if model is not None:
        units = Subwords(model.tobytes(), name=str(path))
    else:
        letters = arrays[f"{name}.letters"]
        if letters.shape != (1,) or letters.dtype != np.int64 or letters[0] < 0:
            raise ValueError("not a number")
        units = Beginnings(int(letters[0]) or None)
    if runs is not None:
        units.runs = Subwords(runs.tobytes(), name=str(path))
    return TokenIndex(units, number)
