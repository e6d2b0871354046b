"""What is minimised: the loss of a batch, and its gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from nmt.core.device import Compute
from nmt.data.batching import Batch
from nmt.layers.recompute import recomputing
from nmt.models.likelihood import token_loss
from nmt.models.seq2seq import Seq2Seq
from nmt.training.config import TrainingConfig
from nmt.training.optimizer import NamedOptimizer


@dataclass(frozen=True)
class Whole:
    """All that an update learns from, in all processes: what its loss is a mean over."""

    tokens: int
    """Target tokens, end-of-sentence included."""
    sentences: int


@dataclass(frozen=True)
class Losses:
    """Summed over target tokens."""

    objective: float = 0.0
    """What is minimised."""
    cross_entropy: float = 0.0
    """-log p(gold), without smoothing."""

    def __add__(self, other: Losses) -> Losses:
        return Losses(self.objective + other.objective, self.cross_entropy + other.cross_entropy)


class Objective:
    """The loss that a configuration describes."""

    def __init__(
        self, model: Seq2Seq[Any, Any], config: TrainingConfig, optimizer: NamedOptimizer, compute: Compute
    ) -> None:
        self._model = model
        self._config = config
        self._optimizer = optimizer
        self._compute = compute

    def backward(self, batch: Batch, whole: Whole, *, update: int) -> Losses:
        """Adds to the gradients what a batch, all or part of what ``update`` (counted from 1) learns from, has to
        say."""
        config, device = self._config, self._compute.device
        with self._compute.autocast(), recomputing(config.recompute):
            loss = token_loss(
                self._model,
                torch.from_numpy(batch.source_BS).to(device),
                torch.from_numpy(batch.target_BT).to(device),
                config.feed.at(update),
                smoothing=config.label_smoothing,
                r_drop=config.r_drop,
            )
        count = whole.tokens if config.normalization == "tokens" else whole.sentences
        self._optimizer.scaled(loss.objective / count).backward()  # type: ignore[no-untyped-call]
        return Losses(loss.objective.item(), loss.cross_entropy.item())
