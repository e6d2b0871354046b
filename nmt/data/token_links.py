"""Links between the tokens of a batch, derived from links between words, for guided attention in training.

E: links; L: links between words.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nmt.data.batching import Batch, Indices, padded_batch
from nmt.data.sampling import SubwordSampling
from nmt.data.store import Ragged, Store

_NO_WORD = -1


@dataclass(frozen=True)
class TokenLinks:
    """E different links between the target and the source tokens of a batch.

    Attributes:
        sentence_E, target_E, source_E: The row of the batch and the two positions.
        share_E: One over the number of source tokens that the target token is linked with, float32.
    """

    sentence_E: npt.NDArray[np.int64]
    target_E: npt.NDArray[np.int64]
    source_E: npt.NDArray[np.int64]
    share_E: npt.NDArray[np.float32]

    @functools.cached_property
    def targets(self) -> int:
        """Number of target tokens that have links."""
        return len(np.unique(_keys(self.sentence_E, self.target_E)))

    def of(self, rows_B: npt.NDArray[np.intp]) -> TokenLinks:
        """Selects the links of some rows of the batch, and renumbers the rows."""
        place = np.full(int(max(self.sentence_E.max(initial=0), rows_B.max(initial=0))) + 1, -1)
        place[rows_B] = np.arange(len(rows_B))
        kept = place[self.sentence_E] >= 0
        return TokenLinks(place[self.sentence_E[kept]], self.target_E[kept], self.source_E[kept], self.share_E[kept])


def collate_linked(store: Store, pairs_B: Indices, *, sampling: SubwordSampling | None = None) -> Batch:
    """Collates the same tokens as `collate`, with the links of the pairs. The store must have links."""
    sources: list[npt.ArrayLike] = []
    targets: list[npt.ArrayLike] = []
    source_words: list[npt.ArrayLike] = []  # the word of each token; empty for a pair without links
    target_words: list[npt.ArrayLike] = []
    links = [store.links(index) for index in pairs_B.tolist()]
    for index, own in zip(pairs_B.tolist(), links, strict=True):
        sides: tuple[npt.ArrayLike, npt.ArrayLike]
        words: tuple[npt.ArrayLike, npt.ArrayLike] = ((), ())
        if sampling is None:
            sides, words = (store.source(index), store.target(index)), store.words(index) if len(own) else words
        elif len(own):
            sides, words = sampling.draw_words(store, index)
        else:
            sides = sampling.draw(store, index)
        sources.append(sides[0])
        targets.append(sides[1])
        no_word = np.full(len(store.prefix(index)), _NO_WORD)
        source_words.append(np.concatenate([no_word, np.asarray(words[0], np.int64)]))
        target_words.append(words[1])
    return padded_batch(store, pairs_B, sources, targets, token_links(links, source_words, target_words))


def token_links(
    links: Sequence[npt.NDArray[np.integer]],
    source_words: Sequence[npt.ArrayLike],
    target_words: Sequence[npt.ArrayLike],
) -> TokenLinks:
    """Derives links between the tokens of sentence pairs from links between their words, [links, 2] with the source
    first and without repeats, and from the word of each token, which never decreases along a sentence. Each token of
    one word is linked with each token of the other. A word without a token has no links."""
    sentence_L = np.repeat(np.arange(len(links)), [len(links_of_pair) for links_of_pair in links])
    word_L2 = np.concatenate([np.zeros((0, 2), np.int64), *links]).astype(np.int64)
    source_begin_L, source_count_L = _tokens_of(sentence_L, word_L2[:, 0], source_words)
    target_begin_L, target_count_L = _tokens_of(sentence_L, word_L2[:, 1], target_words)
    count_L = source_count_L * target_count_L
    link_E = np.repeat(np.arange(len(sentence_L)), count_L)
    cell_E = np.arange(len(link_E)) - (np.cumsum(count_L) - count_L)[link_E]
    target, source = np.divmod(cell_E, source_count_L[link_E])
    sentence_E, target_E = sentence_L[link_E], target_begin_L[link_E] + target
    _, row_E, count = np.unique(_keys(sentence_E, target_E), return_inverse=True, return_counts=True)
    share_E = (1.0 / count[row_E]).astype(np.float32)
    return TokenLinks(sentence_E, target_E, source_begin_L[link_E] + source, share_E)


def _tokens_of(
    sentence_L: npt.NDArray[np.int64], word_L: npt.NDArray[np.int64], words: Sequence[npt.ArrayLike]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Finds the index of the first token of words in their sentences, and their number of tokens."""
    rows = Ragged.of([np.asarray(word_of_token, dtype=np.int64) for word_of_token in words])
    begin_B = np.cumsum(rows.lengths) - rows.lengths
    key_N = _keys(np.repeat(np.arange(len(words)), rows.lengths), rows.values.astype(np.int64))
    begin_L, end_L = (np.searchsorted(key_N, _keys(sentence_L, word_L), side=side) for side in ("left", "right"))
    return begin_L - begin_B[sentence_L], end_L - begin_L


def _keys(sentence: npt.NDArray[np.int64], place: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Maps pairs of numbers to single numbers with the same order."""
    return (sentence << 32) + place
