"""Random segmentations of text into the pieces of a SentencePiece model: subword regularization and BPE-dropout.

SentencePiece can sample, too, but mixes a salt of the process into its seed, so that other processes draw differently.
Here a segmentation is a function of text, strength and seed: `random.Random(seed).random()` of Python is the same
everywhere.
"""

from __future__ import annotations

import math
import random
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from nmt.data.subword_model import ModelKind, PieceType, SubwordModel
from nmt.data.vocabulary import UNK
from nmt.data.words import Span

if TYPE_CHECKING:
    from nmt.data.store import Store
    from nmt.data.tokenizer import Tokenizer, TokenizerPair

_MARK = "\u2581"
_SPELLS_ITSELF = (PieceType.NORMAL, PieceType.USER_DEFINED)
# difference of the log probability of the rarest piece and that of an unknown character, as in SentencePiece
_UNKNOWN_PENALTY = 10.0
# the lattices of this many words, of up to this many characters each, are cached, which takes about 45 MB
_CACHED_WORDS = 1 << 14
_CACHED_LENGTH = 32

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class SubwordSampling:
    """Draws the segmentation of a pair anew in each epoch, as a function of seed, epoch and pair only.

    Attributes:
        tokenizers: Tokenizers of the store.
        alpha: Strength, above 0; see `Tokenizer.sample`.
        seed, epoch: Seed and epoch, as of `epoch_batches`.
    """

    tokenizers: TokenizerPair
    alpha: float
    seed: int
    epoch: int

    def draw(self, store: Store, index: int) -> tuple[list[int], list[int]]:
        """Draws the source and target tokens of a pair, without special ones. The store must have its text."""
        source, target = (
            one.sample(text, alpha=self.alpha, seed=seed) for one, text, seed in self._sides(store, index)
        )
        return source, target

    def draw_words(self, store: Store, index: int) -> tuple[tuple[Tokens, Tokens], tuple[Tokens, Tokens]]:
        """Draws as `draw` does, and also returns the word that contains each token of both sides."""
        sides = self._sides(store, index)
        source, target = (one.sample_words(text, alpha=self.alpha, seed=seed) for one, text, seed in sides)
        return (source.ids, target.ids), (source.word_of_piece, target.word_of_piece)

    def _sides(self, store: Store, index: int) -> Iterator[tuple[Tokenizer, str, int]]:
        """Yields the tokenizer, the text and the seed of each side of a pair."""
        seeds = np.random.SeedSequence([self.seed, self.epoch, index]).generate_state(2).tolist()
        return zip((self.tokenizers.source, self.tokenizers.target), store.text(index), seeds, strict=True)


class SegmentationSampler(ABC):
    """Draws segmentations of normalised text. It is thread-safe.

    Pieces that are unused, or neither normal nor user-defined, are never drawn. A character that no piece spells is
    unknown, and a run of unknown ones is one token; with byte_fallback it is its UTF-8 bytes instead.
    """

    def __init__(self, model: SubwordModel) -> None:
        self._tokens: dict[str, Tokens] = {
            piece.text: (index,) for index, piece in enumerate(model.pieces) if piece.type in _SPELLS_ITSELF
        }
        self._lengths = {tokens: len(text) for text, tokens in self._tokens.items()}
        self._bytes: dict[str, int] | None = None
        if model.byte_fallback:
            self._bytes = {piece.text: i for i, piece in enumerate(model.pieces) if piece.type == PieceType.BYTE}
        # if pieces have the mark only at their beginning, no piece crosses words, and words are independent
        across = any(_MARK in text[1:] for text in self._tokens)
        self._words = re.compile(".+" if across else f"{_MARK}?[^{_MARK}]+|{_MARK}", re.DOTALL)

    @final
    def sample(self, normalized: str, *, strength: float, seed: int) -> list[int]:
        """Draws the subword ids of one segmentation.

        Args:
            normalized: Text that SentencePiece has normalised, with U+2581 for spaces.
            strength: Strength of the sampling; see the class.
            seed: Seed, at least 0.
        """
        uniform = random.Random(seed).random
        ids: list[int] = []
        for word in self._words.findall(normalized):
            for tokens in self._draw(word, strength, uniform):
                if tokens[0] != UNK or not ids or ids[-1] != UNK:
                    ids += tokens
        return ids

    @final
    def sample_spans(self, normalized: str, *, strength: float, seed: int) -> tuple[list[int], list[Span]]:
        """Samples as `sample` does, with the begin and end of each subword in the normalised text. If a character is
        several bytes, the last one has its span, and the others have no width, as in SentencePiece."""
        uniform = random.Random(seed).random
        ids: list[int] = []
        spans: list[Span] = []
        place = 0
        for word in self._words.findall(normalized):
            for tokens in self._draw(word, strength, uniform):
                end = place + self._lengths.get(tokens, 1)
                if tokens[0] != UNK or not ids or ids[-1] != UNK:
                    ids += tokens
                    spans += [(place, place)] * (len(tokens) - 1) + [(place, end)]
                else:
                    spans[-1] = (spans[-1][0], end)
                place = end
        return ids, spans

    @abstractmethod
    def _draw(self, word: str, strength: float, uniform: Callable[[], float]) -> Sequence[Tokens]:
        """Draws a random segmentation of `word` and returns the ids of each piece. `uniform` draws from [0, 1)."""

    def _spell(self, text: str) -> Tokens:
        """Returns the ids of a piece, or of a character that is not a piece."""
        known = self._tokens.get(text)
        if known is not None:
            return known
        if self._bytes is None:
            return (UNK,)
        return tuple(self._bytes[f"<0x{byte:02X}>"] for byte in text.encode())


class _Arrivals(NamedTuple):
    """The pieces that can end at one position of a word, with one entry each."""

    cumulative: tuple[float, ...]
    """Running sum of their probabilities, times a constant."""
    starts: tuple[int, ...]
    tokens: tuple[Tokens, ...]


@final
class UnigramSampler(SegmentationSampler):
    """Draws segmentations x of a unigram model exactly from P(x)^strength / sum over x' of P(x')^strength.

    It uses forward filtering and backward sampling over the lattice of all segmentations (Kudo 2018, "Subword
    Regularization", section 3.2, without the n-best approximation). With strength 0 the distribution is uniform; with a
    large strength only the most probable segmentation is drawn.

    Results depend on the machine's exp and log: if their last bit differs, about one draw in 10^15 differs.
    """

    def __init__(self, model: SubwordModel) -> None:
        super().__init__(model)
        # as in SentencePiece, user-defined pieces, which have no probability, get scores with which they nearly always
        # win
        self._scores = {
            piece.text: 0.1 * (len(piece.text) - 1) if piece.type == PieceType.USER_DEFINED else piece.score
            for piece in model.pieces
            if piece.type in _SPELLS_ITSELF
        }
        self._longest = max(map(len, self._scores), default=0)
        normal = [piece.score for piece in model.pieces if piece.type == PieceType.NORMAL]
        self._unknown_score = min(normal, default=0.0) - _UNKNOWN_PENALTY
        self._cached_lattice = lru_cache(_CACHED_WORDS)(self._lattice)

    def _draw(self, word: str, strength: float, uniform: Callable[[], float]) -> Sequence[Tokens]:
        lattice = (self._cached_lattice if len(word) <= _CACHED_LENGTH else self._lattice)(word, strength)
        drawn = []
        place = len(word)
        while place > 0:
            cumulative, starts, tokens = lattice[place - 1]
            last = len(cumulative) - 1
            # the index is bounded, because a product of uniform() can round up to the sum itself
            chosen = bisect_right(cumulative, uniform() * cumulative[last], 0, last) if last else 0
            drawn.append(tokens[chosen])
            place = starts[chosen]
        drawn.reverse()
        return drawn

    def _lattice(self, word: str, strength: float) -> tuple[_Arrivals, ...]:
        """Computes the pieces that end after each character of `word`, with their probabilities."""
        log_sums = [0.0]  # at each position, log of the sum of P^strength over segmentations of the text before
        lattice = []
        for end in range(1, len(word) + 1):
            starts, tokens, weights = [], [], []
            for start in range(max(0, end - self._longest), end):
                score = self._scores.get(word[start:end])
                if score is not None:
                    starts.append(start)
                    tokens.append(self._tokens[word[start:end]])
                    weights.append(log_sums[start] + strength * score)
            if not starts or starts[-1] < end - 1:  # no piece spells the last character
                starts.append(end - 1)
                tokens.append(self._spell(word[end - 1]))
                weights.append(log_sums[end - 1] + strength * self._unknown_score)
            highest = max(weights)
            cumulative = tuple(accumulate(math.exp(weight - highest) for weight in weights))
            log_sums.append(highest + math.log(cumulative[-1]))
            lattice.append(_Arrivals(cumulative, tuple(starts), tuple(tokens)))
        return tuple(lattice)


@final
class BpeSampler(SegmentationSampler):
    """BPE-dropout (Provilkov et al. 2020, algorithm 1), with the probability of dropping a merge as strength.

    At each step, every merge of two neighbours is dropped with that probability. Of the remaining merges the one with
    the highest priority is made, the leftmost if several are equal; if none remains, the word is finished. Strength 0
    gives the segmentation of SentencePiece itself, strength 1 single characters. User-defined pieces are neither split
    nor merged.

    Unlike the paper, SentencePiece drops a merge permanently, so that with the same rate its pieces are shorter.
    """

    def __init__(self, model: SubwordModel) -> None:
        super().__init__(model)
        self._ranks = {piece.text: -piece.score for piece in model.pieces if piece.type in _SPELLS_ITSELF}
        whole = [piece.text for piece in model.pieces if piece.type == PieceType.USER_DEFINED]
        longest_first = sorted(whole, key=len, reverse=True)
        self._fixed = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if whole else None

    def _draw(self, word: str, strength: float, uniform: Callable[[], float]) -> Sequence[Tokens]:
        parts = [word] if self._fixed is None else self._fixed.split(word)
        symbols: list[str] = []
        for index, part in enumerate(parts):  # those at odd places are matched by the group of the pattern
            symbols += [part] if index % 2 else self._merge(part, strength, uniform)
        return [self._spell(symbol) for symbol in symbols]

    def _merge(self, text: str, dropout: float, uniform: Callable[[], float]) -> list[str]:
        """Merges the characters of `text` and returns the remaining symbols."""
        symbols = list(text)  # at the position of their first character; empty if merged into another
        before, after = list(range(-1, len(text) - 1)), list(range(1, len(text) + 1))
        ranks = self._ranks
        candidates = [
            (ranks[pair], left, pair)
            for left, pair in enumerate(map(str.__add__, text, text[1:]))
            if pair in ranks
        ]  # fmt: skip
        heapify(candidates)
        dropped = []
        while candidates:
            candidate = heappop(candidates)
            _, left, merged = candidate
            right = after[left]
            # skip it if one of the two has been merged with another symbol since
            if not symbols[left] or right == len(symbols) or len(symbols[left]) + len(symbols[right]) != len(merged):
                continue
            if dropout > 0.0 and uniform() < dropout:
                dropped.append(candidate)
                continue
            symbols[left], symbols[right] = merged, ""
            following = after[left] = after[right]
            if following < len(symbols):
                before[following] = left
                pair = merged + symbols[following]
                if pair in ranks:
                    heappush(candidates, (ranks[pair], left, pair))
            previous = before[left]
            if previous >= 0:
                pair = symbols[previous] + merged
                if pair in ranks:
                    heappush(candidates, (ranks[pair], previous, pair))
            for again in dropped:
                heappush(candidates, again)
            dropped.clear()
        return [symbol for symbol in symbols if symbol]


def make_sampler(model: SubwordModel) -> SegmentationSampler | None:
    """Creates the sampler for the kind of a model; returns None if a text has only one segmentation."""
    samplers = {ModelKind.UNIGRAM: UnigramSampler, ModelKind.BPE: BpeSampler}
    return samplers[model.kind](model) if model.kind in samplers else None
