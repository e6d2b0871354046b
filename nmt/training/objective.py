"""The loss of a batch, and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, replace
from operator import add
from typing import Any, Generic, TypeVar

import numpy.typing as npt
import torch
from torch import Tensor

from nmt import plugins
from nmt.core.device import Compute
from nmt.data.batching import Batch
from nmt.data.tokenizer import TokenizerPair
from nmt.models.loss import AllReduce, Criterion, CrossEntropy, token_loss
from nmt.models.names import matching
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.output import TokenLoss
from nmt.nn.recompute import recomputing
from nmt.training.config import TrainingConfig
from nmt.training.optimizer import NamedOptimizer

X = TypeVar("X", float, Tensor)


@dataclass(frozen=True)
class BatchTotals:
    """Counts over some batches in all processes; the losses of an update are divided by them."""

    tokens: int
    """Target tokens, end-of-sentence included."""
    sentences: int
    linked: int = 0
    """Target tokens that have links."""

    def __add__(self, other: BatchTotals) -> BatchTotals:
        return BatchTotals(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class Losses(Generic[X]):
    """Losses of some batches, each a sum: numbers, or scalars that the host has not read yet."""

    objective: X
    """The minimised loss over target tokens, without guidance; with ``training.risk`` the usual loss."""
    cross_entropy: X
    """-log p(gold) over target tokens, without smoothing."""
    risk: X
    """Over sentences; 0 without ``training.risk``."""
    guidance: X
    """Over the target tokens that have links; 0 without ``training.guided_attention``."""

    @staticmethod
    def zeros(device: torch.device) -> Losses[Tensor]:
        """The losses of no batch, in float64."""
        return Losses(*torch.zeros(4, dtype=torch.float64, device=device))

    def __add__(self, other: Losses[X]) -> Losses[X]:
        return Losses(*map(add, vars(self).values(), vars(other).values()))


def training_criterion(model: Seq2Seq[Any, Any], smoothing: float = 0.0) -> Criterion:
    """The loss that the attention of a model learns from."""
    if any(getattr(module, "marginalizes", False) for module in model.modules()):
        from nmt.models.position_losses import MarginalLikelihood

        return MarginalLikelihood(smoothing)
    if any(getattr(module, "learns_from_rewards", False) for module in model.modules()):
        from nmt.models.position_losses import Reinforce

        return Reinforce(CrossEntropy(smoothing))
    return CrossEntropy(smoothing)


@dataclass
class Objective:
    """The loss that a configuration describes."""

    model: Seq2Seq[Any, Any]
    config: TrainingConfig
    optimizer: NamedOptimizer
    compute: Compute
    tokenizers: InitVar[TokenizerPair]

    def __post_init__(self, tokenizers: TokenizerPair) -> None:
        model, config, compute = self.model, self.config, self.compute
        self._model: Any = model
        if config.wait is not None:
            self._model = plugins.find("parts", "wait_training", "training.wait")(model, config.wait, tokenizers)
        self._passes = 2 if config.r_drop > 0.0 else 1
        self._risk: Callable[[Tensor, Tensor], TokenLoss] | None = None
        if config.risk is not None:
            minimum_risk = plugins.find("parts", "minimum_risk", "training.risk")
            self._risk = minimum_risk(model, config.risk, compute, tokenizers.target.detokenize, config.label_smoothing)
        self._criterion = training_criterion(model, config.label_smoothing)
        self._heads_G: Tensor | None = None
        if config.guided_attention is not None or config.coverage_loss > 0.0:
            pattern = "*" if config.guided_attention is None else config.guided_attention.heads
            heads = matching(model.decoder.head_names, pattern)
            self._heads_G = torch.tensor(model.decoder.return_weights_of(heads), device=compute.device)

    def backward(
        self, batch: Batch | None, totals: BatchTotals, *, update: int, all_reduce: AllReduce = lambda sums: sums
    ) -> Losses[Tensor]:
        """Adds to the gradients those of a batch, all or part of what ``update`` (counted from 1) learns from; returns
        its losses in float64, for which nothing has waited yet.

        ``totals`` are the counts of the whole update. ``all_reduce`` adds sums of rewards over all processes. If
        ``batch`` is None, this process has no rows but still takes part in that sum.
        """
        zeros = Losses.zeros(self.compute.device)
        if batch is None:
            if self._criterion.learns_from_rewards:
                all_reduce(torch.zeros(3))
            return zeros
        source_BS, target_BT = self._upload(batch.source_BS), self._upload(batch.target_BT)
        if self._risk is not None:
            with recomputing(self.config.recompute):
                loss = self._risk(source_BS, target_BT)
        else:
            # R-Drop's two passes are one batch, with a draw of dropout for each row
            source_BS, target_BT = source_BS.repeat(self._passes, 1), target_BT.repeat(self._passes, 1)
            feed, criterion = self.config.feed.at(update), self._criterion_of(batch, all_reduce)
            # counted on the host, so that the device need not be asked
            count = self._passes * int(batch.target_length_B.sum())
            with self.compute.autocast(), recomputing(self.config.recompute):
                loss = token_loss(self._model, source_BS, target_BT, feed, criterion, count=count)
        self.optimizer.scaled(self._mean(loss, totals)).backward()  # type: ignore[no-untyped-call]
        parts = (loss.objective, loss.cross_entropy, loss.risk, loss.guidance)
        return Losses(*(zeros.risk if part is None else part.detach().double() for part in parts))

    def _criterion_of(self, batch: Batch, all_reduce: AllReduce) -> Criterion:
        """The loss that the configuration, the kind of attention and the links of a batch ask for."""
        criterion = self._criterion
        if criterion.learns_from_rewards:
            criterion = replace(criterion, all_reduce=all_reduce)  # type: ignore[type-var]
        if self.config.r_drop > 0.0:
            from nmt.models.r_drop import RDrop

            criterion = RDrop(criterion, self.config.r_drop)
        if self.config.coverage_loss > 0.0:
            from nmt.models.coverage_loss import CoverageLoss

            criterion = CoverageLoss(criterion, self.config.coverage_loss, self._passes)
        links = batch.links
        if self.config.guided_attention is not None and links is not None and links.targets > 0:
            from nmt.models.guidance import Guide, Guided

            arrays: tuple[npt.NDArray[Any], ...] = (links.sentence_E, links.target_E, links.source_E, links.share_E)
            assert self._heads_G is not None
            criterion = Guided(criterion, Guide(self._heads_G, *map(self._upload, arrays)), self._passes)
        return criterion

    def _upload(self, array: npt.NDArray[Any]) -> Tensor:
        # non_blocking: the memory is pinned, see stream.py
        return torch.from_numpy(array).to(self.compute.device, non_blocking=True)

    def _mean(self, loss: TokenLoss, totals: BatchTotals) -> Tensor:
        """The part of a batch in the loss of an update, whose batches and shares all are divided by the same number."""
        config = self.config
        count = totals.tokens if config.normalization == "tokens" else totals.sentences
        if config.risk is not None and loss.risk is not None:
            # minimum risk counts sentences, the usual loss beside it counts what the configuration says
            weight, mean = config.risk.cross_entropy, loss.risk / totals.sentences
            return mean + weight * loss.objective / count if weight > 0.0 else mean
        mean = loss.objective / count
        if config.guided_attention is not None and loss.guidance is not None:
            # the mean over the target tokens that have links
            mean = mean + config.guided_attention.weight * loss.guidance / totals.linked
        return mean
