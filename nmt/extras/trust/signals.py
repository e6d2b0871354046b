"""Signals of a sentence pair, all from one pass of the model under teacher forcing and a lexicon.

Shapes: T target and S source pieces, I target and J source words, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.core.memory import malloc_trim
from nmt.data.batching import TokenIds, length_batches, pad
from nmt.data.tokenizer import EncodedWords
from nmt.data.words import is_punctuation
from nmt.extras.corpus.pair_filter.lexicon import Lexicon
from nmt.extras.trust.logistic import Floats
from nmt.translator.loading import TrainedModel

BATCH_TOKENS = 4096
LEAST = -12.0
"""Smallest logarithm of a probability in a lexicon."""
NEAR = 4
"""Number of words on each side of a word whose mean features it has as well."""
_TARGET, _SOURCE = 27, 25
PAIR_FEATURES = _TARGET + _SOURCE
TARGET_FEATURES, SOURCE_FEATURES = 4 * _TARGET + PAIR_FEATURES, 4 * _SOURCE + PAIR_FEATURES
"""Numbers of features: of the pair, the same in all rows, and of each word (``in_context``)."""


class PairSignals(NamedTuple):
    """The signals of a pair."""

    source: EncodedWords
    target: EncodedWords
    log_p_T: Floats
    """Log-probability of each target piece and of end-of-sentence."""
    target_IF: Floats
    source_JF: Floats

    @property
    def pair_F(self) -> Floats:
        """Returns the means over all words, of the target and then of the source."""
        return self.target_IF[0, -PAIR_FEATURES:]


def pair_signals(
    trained: TrainedModel, lexicon: Lexicon, sources: Sequence[str], targets: Sequence[str], first_line: int = 1
) -> list[PairSignals | None]:
    """Computes the signals of each pair; None for a pair that is too long (``TrainedModel.encode_pairs``) or blank on a
    side. Lines are ordinary or tokenised text. ``first_line`` is the number of the first pair."""
    pairs = trained.encode_pairs(sources, targets, first_line, text="either")
    rows = [row for row, (source, target) in enumerate(pairs) if source.ids and target.ids]
    read = trained.prefixed((pairs[row][0].ids for row in rows), (sources[row] for row in rows))
    lengths = [max(len(ids), len(pairs[row][1].ids)) + 1 for ids, row in zip(read, rows, strict=True)]
    found: list[PairSignals | None] = [None] * len(pairs)
    for batch in length_batches(lengths, BATCH_TOKENS):
        malloc_trim()
        of_batch = [pairs[rows[index]] for index in batch]
        signals = _batch_signals(trained, lexicon, of_batch, [read[index] for index in batch])
        for index, of_pair in zip(batch, signals, strict=True):
            found[rows[index]] = of_pair
    return found


@torch.inference_mode()
def _batch_signals(
    trained: TrainedModel, lexicon: Lexicon, pairs: Sequence[tuple[EncodedWords, EncodedWords]], read: TokenIds
) -> list[PairSignals]:
    """``read`` are the tokens of the sources with what the model reads before them."""
    model, device = trained.model, trained.compute.device
    target_BT, length_B = pad([target.ids for _, target in pairs])
    source_BS, _ = pad(read)
    gold_BT = torch.from_numpy(target_BT).to(device)
    is_token_BT = torch.arange(gold_BT.shape[1]) < torch.from_numpy(length_B)[:, None]
    with trained.compute.autocast():
        decoded = model.teacher_forced(gold_BT, model.encode(torch.from_numpy(source_BS).to(device)))
        index_N = is_token_BT.flatten().nonzero()[:, 0].to(device)
        readout_NR, gold_N = decoded.readout_BTR.flatten(0, 1)[index_N], gold_BT.flatten()[index_N]
        copies = None if decoded.copies is None else decoded.copies.select(index_N)
        log_p_N = model.output.likelihood(readout_NR, gold_N, copies=copies).log_p_N
        weights_BHTS = decoded.weights()
    log_ps = np.split(log_p_N.double().cpu().numpy(), np.cumsum(length_B)[:-1])
    mean_BTS = weights_BHTS.float().mean(dim=1).nan_to_num().cpu().numpy()  # 0 for a model without attention
    own_BS, _ = pad([source.ids for source, _ in pairs])
    lexical_BSF, lexical_BTF = (
        values.clamp(min=LEAST).numpy()
        for values in lexicon.features(torch.from_numpy(own_BS), torch.from_numpy(target_BT))
    )
    found = []
    for row, (source, target) in enumerate(pairs):
        T, S, prefix = len(target.ids), len(source.ids), len(read[row]) - len(source.ids)
        weights_TS = mean_BTS[row, : T + 1, prefix : prefix + S + 1].astype(np.float64)
        target_IF = _target_features(target, log_ps[row], weights_TS[:T], lexical_BTF[row, :T])
        source_JF = _source_features(source, log_ps[row], weights_TS[:, :S], lexical_BSF[row, :S])
        in_pair = in_context(target_IF, source_JF), in_context(source_JF, target_IF)
        found.append(PairSignals(source, target, log_ps[row], *in_pair))
    return found


def _target_features(target: EncodedWords, log_p_T: Floats, weights_TS: Floats, lexical_TF: NDArray[Any]) -> Floats:
    """``weights_TS`` has a column for end-of-sentence, but no row."""
    entropy_T = -(weights_TS * np.log(weights_TS + 1e-9)).sum(axis=1)
    of_attention = [entropy_T, weights_TS[:, :-1].max(axis=1), weights_TS[:, -1]]
    by_piece = np.column_stack([log_p_T[:-1], *of_attention, lexical_TF])
    least_IF, mean_IF, count_I = by_word(by_piece, target.word_of_piece, len(target.words))
    log_p_I = mean_IF[:, 0] * count_I
    of_text = [*map(is_punctuation, target.words)], np.log([*map(len, target.words)]), np.log(count_I)
    return np.column_stack([least_IF, mean_IF, log_p_I, *of_text, np.exp(log_p_I)])


def _source_features(source: EncodedWords, log_p_T: Floats, weights_TS: Floats, lexical_SF: NDArray[Any]) -> Floats:
    """``weights_TS`` has a row for end-of-sentence, but no column."""
    most_S, sum_S = weights_TS.max(axis=0), weights_TS.sum(axis=0)
    sure_S = (weights_TS * np.exp(log_p_T)[:, None]).max(axis=0)  # what probable words attend to
    by_piece = np.column_stack([most_S, sure_S, np.minimum(sum_S, 1), np.log(sum_S + 0.01), lexical_SF])
    least_JF, mean_JF, count_J = by_word(by_piece, source.word_of_piece, len(source.words))
    of_text = [*map(is_punctuation, source.words)], np.log([*map(len, source.words)]), np.log(count_J)
    return np.column_stack([least_JF, mean_JF, *of_text])


def in_context(value_IF: Floats, other_JF: Floats) -> Floats:
    """Appends to the features of each word those of both neighbours, the means over the words that are at most ``NEAR``
    words away, and the means over the whole sentence and over the other side."""
    index_I, count = np.arange(len(value_IF)), len(value_IF)
    begin_I, end_I = (index_I - NEAR).clip(min=0), (index_I + NEAR + 1).clip(max=count)
    padded_IF = np.pad(value_IF, ((1, 1), (0, 0)))
    sum_IF = np.cumsum(padded_IF[:-1], axis=0)
    near_IF = (sum_IF[end_I] - sum_IF[begin_I]) / (end_I - begin_I)[:, None]
    of_pair_F = [*value_IF.mean(axis=0), *other_JF.mean(axis=0)]
    of_pair_IF = np.broadcast_to(of_pair_F, (count, len(of_pair_F)))
    return np.concatenate([value_IF, padded_IF[:-2], padded_IF[2:], near_IF, of_pair_IF], axis=1)


def by_word(values_PF: Floats, word_of_piece: Sequence[int], words: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Computes the least and the mean value over the pieces of each word, (words, F) each, and counts the pieces; a
    word without pieces of its own has those of the piece that follows."""
    begin_I = np.searchsorted(word_of_piece, np.arange(words)).clip(max=len(values_PF) - 1)
    count_I = np.diff(np.append(begin_I, len(values_PF))).clip(min=1)
    least_IF = np.minimum.reduceat(values_PF, begin_I, axis=0)
    return least_IF, np.add.reduceat(values_PF, begin_I, axis=0) / count_I[:, None], count_I
