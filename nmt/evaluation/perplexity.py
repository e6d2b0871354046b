"""Probabilities of reference translations if the model reads the reference, its own guesses, or a mixture.

Shapes: B pairs, T target tokens with end-of-sentence, N tokens of all pairs without padding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.core.device import Compute
from nmt.data.batching import TokenIds, pair_batches
from nmt.models.feed import Feed, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.seq2seq import Seq2Seq


@dataclass(frozen=True)
class Prediction:
    """Loss and accuracy over target tokens, end-of-sentence included."""

    loss: float
    """Mean -log p of the reference token, in nats, without label smoothing."""
    accuracy: float
    """Per cent of tokens that are the most probable ones under the model."""
    tokens: int

    @property
    def perplexity(self) -> float:
        """Perplexity, exp of the loss."""
        return math.exp(min(self.loss, 700.0))


@torch.inference_mode()
def predict(
    model: Seq2Seq[Any, Any], sources: TokenIds, targets: TokenIds, feed: Feed, compute: Compute, *, batch_tokens: int
) -> Prediction:
    """Scores reference targets (token ids without end-of-sentence). The model must be in eval mode.

    The random draws of a feed are a function of the batch. So the figure is the same each time: it does not depend on
    earlier draws, and does not change the state of the generators.
    """
    assert not model.training
    cross_entropy, correct, tokens = 0.0, 0, 0
    for batch in pair_batches(sources, targets, batch_tokens):
        source_BS, target_BT = (torch.from_numpy(ids).to(compute.device) for ids in (batch.source_BS, batch.target_BT))
        with compute.autocast(), torch.random.fork_rng([compute.device] if compute.device.type == "cuda" else []):
            torch.manual_seed(int(batch.pairs_B[0]))
            loss = token_loss(model, source_BS, target_BT, feed, CrossEntropy())
        cross_entropy += loss.cross_entropy.item()
        assert loss.correct is not None, "inference counts correct tokens"
        correct += int(loss.correct.item())
        tokens += int(batch.target_length_B.sum())
    return Prediction(cross_entropy / max(tokens, 1), 100.0 * correct / max(tokens, 1), tokens)


@torch.inference_mode()
def token_log_probs(
    model: Seq2Seq[Any, Any], sources: TokenIds, targets: TokenIds, compute: Compute, *, batch_tokens: int
) -> list[NDArray[np.float32]]:
    """Computes log p of each target token given the preceding ones, under teacher forcing, for each pair of token ids
    (without end-of-sentence), in the order of the pairs: (T,) for each pair, as natural logarithms; the last one is
    that of end-of-sentence. The model must be in eval mode."""
    assert not model.training
    log_p: dict[int, NDArray[np.float32]] = {}
    for batch in pair_batches(sources, targets, batch_tokens):
        source_BS, target_BT = (torch.from_numpy(ids).to(compute.device) for ids in (batch.source_BS, batch.target_BT))
        with compute.autocast():
            loss = token_loss(model, source_BS, target_BT, TeacherForcing(), CrossEntropy())
        log_p_N = -loss.cross_entropy_N.float().cpu().numpy()
        rows_of_log_p = np.split(log_p_N, np.cumsum(batch.target_length_B)[:-1])
        log_p |= zip(batch.pairs_B.tolist(), rows_of_log_p, strict=True)
    return [log_p[row] for row in range(len(sources))]
