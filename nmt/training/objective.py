"""The loss of a batch, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from operator import add
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nmt.attention.reinforce import RewardSums
from nmt.core.device import Compute
from nmt.data.batching import Batch
from nmt.models.likelihood import guided_loss
from nmt.models.names import matching
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.recompute import recomputing
from nmt.training.config import TrainingConfig
from nmt.training.optimizer import NamedOptimizer

if TYPE_CHECKING:
    from nmt.models.guidance import Guide
    from nmt.training.more.risk import MinimumRisk


@dataclass(frozen=True)
class BatchTotals:
    """Counts over some batches in all processes; the losses of an update are divided by them."""

    tokens: int
    """Target tokens, end-of-sentence included."""
    sentences: int
    linked: int = 0
    """Target tokens that have links."""

    def __add__(self, other: BatchTotals) -> BatchTotals:
        return BatchTotals(self.tokens + other.tokens, self.sentences + other.sentences, self.linked + other.linked)


@dataclass(frozen=True)
class Losses:
    """Losses of some batches, each of which is a sum."""

    objective: float = 0.0
    """Sum of the minimised loss over target tokens, without guidance; with ``training.risk`` of the usual loss."""
    cross_entropy: float = 0.0
    """Sum of -log p(gold) over target tokens, without smoothing."""
    risk: float = 0.0
    """Sum of the risk over sentences; 0 without ``training.risk``."""
    guidance: float = 0.0
    """Sum of the attention loss over the target tokens that have links; 0 without ``training.guided_attention``."""

    def __add__(self, other: Losses) -> Losses:
        return Losses(*map(add, astuple(self), astuple(other)))


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
        """``text`` detokenizes target tokens."""
        self._model = model
        self._config = config
        self._optimizer = optimizer
        self._compute = compute
        self._risk: MinimumRisk | None = None
        if config.risk is not None:
            from nmt.training.more.risk import MinimumRisk

            self._risk = MinimumRisk(model, config.risk, compute, text, smoothing=config.label_smoothing)
        self._learns_from_rewards = any(getattr(module, "learns_from_rewards", False) for module in model.modules())
        self._heads_G: Tensor | None = None
        if config.guided_attention is not None:
            heads = matching(model.decoder.head_names, config.guided_attention.heads)
            self._heads_G = torch.tensor(model.decoder.return_weights_of(heads), device=compute.device)

    def backward(
        self, batch: Batch | None, totals: BatchTotals, *, update: int, all_reduce: RewardSums = lambda own_3: own_3
    ) -> Tensor:
        """Adds the gradients of a batch, which is all or part of what ``update`` (counted from 1) learns from. Returns
        the fields of its ``Losses``, (4,) in float64, without waiting for the device.

        ``totals`` are the counts of the whole update. ``all_reduce`` adds sums of rewards over all processes. If
        ``batch`` is None, this process has no rows but still takes part in that sum.
        """
        config, device = self._config, self._compute.device
        losses_4 = torch.zeros(4, dtype=torch.float64, device=device)
        if batch is None:
            if self._learns_from_rewards:
                all_reduce(torch.zeros(3))
            return losses_4
        # non_blocking: the memory is pinned, see stream.py
        source_BS = torch.from_numpy(batch.source_BS).to(device, non_blocking=True)
        target_BT = torch.from_numpy(batch.target_BT).to(device, non_blocking=True)
        # losses of the parts of an update are sums, which are all divided by the same number
        count = totals.tokens if config.normalization == "tokens" else totals.sentences
        if self._risk is not None:
            with recomputing(config.recompute):
                loss = self._risk.loss(source_BS, target_BT)
            # minimum risk is a mean over sentences, the usual loss over what the configuration says
            total = loss.risk / totals.sentences
            if (weight := self._risk.config.cross_entropy) > 0.0:
                total = total + weight * loss.gold.objective / count
            self._optimizer.scaled(total).backward()  # type: ignore[no-untyped-call]
            # stays on the device, so that the host does not wait
            losses_4[:3] = torch.stack([loss.gold.objective, loss.gold.cross_entropy, loss.risk]).detach()
            return losses_4
        inputs = (self._model, source_BS, target_BT, config.feed.at(update), self._guide(batch))
        # counted on the host, so that it does not wait for the device
        tokens, smoothing = int(batch.target_length_B.sum()), config.label_smoothing
        with self._compute.autocast(), recomputing(config.recompute):
            gold, guidance = guided_loss(
                *inputs, tokens=tokens, smoothing=smoothing, r_drop=config.r_drop, summed=all_reduce
            )
        total = gold.objective / count
        if config.guided_attention is not None and guidance is not None:
            # the mean over the target tokens that have links
            total = total + config.guided_attention.weight * guidance / totals.linked
            losses_4[3] = guidance.detach()
        self._optimizer.scaled(total).backward()  # type: ignore[no-untyped-call]
        losses_4[:2] = torch.stack([gold.objective, gold.cross_entropy]).detach()
        return losses_4

    def _guide(self, batch: Batch) -> Guide | None:
        """Returns the positions that the guided heads should attend to; None if the batch has no links."""
        links = batch.links
        if self._heads_G is None or links is None or links.targets == 0:
            return None
        sentence_E, target_E, source_E, share_E = (
            torch.from_numpy(array).to(self._compute.device, non_blocking=True)
            for array in (links.sentence_E, links.target_E, links.source_E, links.share_E)
        )
        from nmt.models.guidance import Guide

        return Guide(self._heads_G, sentence_E, target_E, source_E, share_E)
