"""What is minimised: the loss of a batch, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from nmt.training.risk import MinimumRisk


@dataclass(frozen=True)
class Whole:
    """All that an update learns from, in all processes: what its loss is a mean over."""

    tokens: int
    """Target tokens, end-of-sentence included."""
    sentences: int


@dataclass(frozen=True)
class Losses:
    """Of some batches; the first two are summed over target tokens."""

    objective: float = 0.0
    """What is minimised; with ``training.risk`` what would be without."""
    cross_entropy: float = 0.0
    """-log p(gold), without smoothing."""
    risk: float = 0.0
    """Summed over sentences; 0 without ``training.risk``."""

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            self.objective + other.objective, self.cross_entropy + other.cross_entropy, self.risk + other.risk
        )


class Objective:
    """The loss that a configuration describes."""

    def __init__(
        self,
        model: Seq2Seq[Any, Any],
        config: TrainingConfig,
        optimizer: NamedOptimizer,
        compute: Compute,
        text: Callable[[Sequence[int]], str],
    ) -> None:
        """``text`` is the tokenizer's reading of target tokens."""
        self._model = model
        self._config = config
        self._optimizer = optimizer
        self._compute = compute
        self._risk: MinimumRisk | None = None
        if config.risk is not None:
            self._risk = MinimumRisk(model, config.risk, compute, text, smoothing=config.label_smoothing)

    def backward(self, batch: Batch, whole: Whole, *, update: int) -> Losses:
        """Adds to the gradients what a batch, all or part of what ``update`` (counted from 1) learns from, has to
        say."""
        config, device = self._config, self._compute.device
        # not waited for, where the memory is pinned: see stream.py
        source_BS = torch.from_numpy(batch.source_BS).to(device, non_blocking=True)
        target_BT = torch.from_numpy(batch.target_BT).to(device, non_blocking=True)
        count = whole.tokens if config.normalization == "tokens" else whole.sentences
        if self._risk is not None:
            with recomputing(config.recompute):
                found = self._risk.loss(source_BS, target_BT)
            total = found.risk / whole.sentences
            if (weight := self._risk.config.cross_entropy) > 0.0:
                total = total + weight * found.gold.objective / count
            self._optimizer.scaled(total).backward()  # type: ignore[no-untyped-call]
            return Losses(found.gold.objective.item(), found.gold.cross_entropy.item(), found.risk.item())
        with self._compute.autocast(), recomputing(config.recompute):
            loss = token_loss(
                self._model,
                source_BS,
                target_BT,
                config.feed.at(update),
                smoothing=config.label_smoothing,
                r_drop=config.r_drop,
            )
        self._optimizer.scaled(loss.objective / count).backward()  # type: ignore[no-untyped-call]
        return Losses(loss.objective.item(), loss.cross_entropy.item())
