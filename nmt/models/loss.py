"""The loss of a batch of sentence pairs (x, y): the cross entropy, summed over all target tokens,

    L = sum over t of -log p(y_t | y_1 ... y_(t-1), x)

A ``Criterion`` computes it from what the decoder gives. ``CrossEntropy`` is the usual one. Others wrap it or take its
place: ``position_losses`` for attention to one source position, ``r_drop``, and ``guidance`` by word alignments.

Shapes as in ``seq2seq``; N target tokens, without padding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from nmt.core.operation import Operation
from nmt.models.feed import Feed
from nmt.models.seq2seq import Decoded, Seq2Seq
from nmt.nn.output import OutputLayer, TokenLoss

AllReduce: TypeAlias = Callable[[Tensor], Tensor]
"""Adds sums over a batch to those of other processes."""


@dataclass(frozen=True)
class TargetTokens:
    """The tokens of a batch of targets, end-of-sentence included, sentence by sentence."""

    is_pad_BT: Tensor
    token_index_N: Tensor
    """Index of each token in the flattened target."""
    gold_N: Tensor

    @staticmethod
    def of(target_BT: Tensor, pad: int, count: int | None) -> TargetTokens:
        """``count``, the number of tokens where the caller knows it, saves waiting for a GPU."""
        is_pad_BT = target_BT == pad
        is_token_flat = ~is_pad_BT.flatten()
        index_N1 = is_token_flat.nonzero() if count is None else is_token_flat.nonzero_static(size=count)
        return TargetTokens(is_pad_BT, index_N1[:, 0], target_BT.flatten()[index_N1[:, 0]])

    def rows(self, x_BTX: Tensor) -> Tensor:
        """The rows of (B, T, ...) at the tokens, (N, ...)."""
        return x_BTX.flatten(0, 1).index_select(0, self.token_index_N)


class Criterion(ABC):
    """The loss of a batch, from all that the decoder has computed for it."""

    needs_weights = False
    """True where it reads the weights of attention."""
    learns_from_rewards = False
    """True where it is a ``Reinforce``, whose sums are over all processes."""

    @abstractmethod
    def __call__(self, output: OutputLayer, decoded: Decoded, tokens: TargetTokens) -> TokenLoss:
        """The loss of the target's tokens."""


@dataclass(frozen=True)
class CrossEntropy(Criterion):
    """-log p(y_t), with label smoothing: see ``OutputLayer.loss``."""

    smoothing: float = 0.0

    def __call__(self, output: OutputLayer, decoded: Decoded, tokens: TargetTokens) -> TokenLoss:
        """See ``Criterion``. The output layer runs once, over the readouts of all tokens."""
        copies = None if decoded.copies is None else decoded.copies.select(tokens.token_index_N)
        return output.loss(tokens.rows(decoded.readout_BTR), tokens.gold_N, smoothing=self.smoothing, copies=copies)


@Operation
def decode(model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, feed: Feed, needs_weights: bool) -> Decoded:
    """All steps over a batch of pairs on a GPU, with the inputs that ``feed`` chooses; ``needs_weights`` says that the
    loss reads those of attention."""
    return model.decode(target_BT, model.encode(source_BS), feed)


def token_loss(
    model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, feed: Feed, criterion: Criterion, *,
    count: int | None = None,
) -> TokenLoss:  # fmt: skip
    """The loss, summed over the tokens of the target; ``count`` is their number, see ``TargetTokens.of``."""
    if source_BS.device.type == "cpu":
        # a memory of the source; a readout for each target position, over the inputs that the feed chooses
        decoded = model.decode(target_BT, model.encode(source_BS), feed)
    else:
        decoded = decode(model, source_BS, target_BT, feed, criterion.needs_weights)
    # logits and their loss, for tokens alone: padding costs as much in the output layer
    return criterion(model.output, decoded, TargetTokens.of(target_BT, model.pad, count))
