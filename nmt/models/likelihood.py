"""Loss of a model on given targets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nmt.attention.reinforce import RewardSums, reinforce_loss
from nmt.models.feed import Feed
from nmt.models.seq2seq import Decoded, MarginalReadouts, Seq2Seq
from nmt.nn.output import OutputLayer, TokenLoss

if TYPE_CHECKING:
    from nmt.models.guidance import Guide


def token_loss(
    model: Seq2Seq[Any, Any],
    source_BS: Tensor,
    target_BT: Tensor,
    feed: Feed,
    *,
    smoothing: float = 0.0,
    r_drop: float = 0.0,
    summed: RewardSums = lambda own_3: own_3,
) -> TokenLoss:
    """The loss summed over the tokens of the target, end-of-sentence included. Output layer and loss run once over all
    positions of all sentences, padding left out. The REINFORCE loss of attention that draws positions is part of the
    objective; ``summed`` joins its sums with those of other processes.

    With ``r_drop`` (Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", equation 3, its alpha) each
    sentence goes through the model twice, under two draws of dropout, and their disagreement is part of the loss:
    (L_1 + L_2 + alpha (KL(p_1 || p_2) + KL(p_2 || p_1)) / 2) / 2, half the paper's, so that the loss keeps its size.
    """
    passes = 2 if r_drop > 0.0 else 1
    source_BS, target_BT = source_BS.repeat(passes, 1), target_BT.repeat(passes, 1)
    decoded = model.decode(target_BT, model.encode(source_BS), feed)
    return _loss(model, target_BT, decoded, smoothing, r_drop, summed)


def guided_loss(
    model: Seq2Seq[Any, Any],
    source_BS: Tensor,
    target_BT: Tensor,
    feed: Feed,
    guide: Guide,
    *,
    smoothing: float = 0.0,
    r_drop: float = 0.0,
) -> tuple[TokenLoss, Tensor]:
    """``token_loss``, and from the same pass the loss of the guide, which it does not include; with ``r_drop`` the mean
    of both passes."""
    passes = 2 if r_drop > 0.0 else 1
    source_BS, target_BT = source_BS.repeat(passes, 1), target_BT.repeat(passes, 1)
    decoded = model.decode(target_BT, model.encode(source_BS), feed)
    loss = _loss(model, target_BT, decoded, smoothing, r_drop, lambda own_3: own_3)
    return loss, torch.stack([guide.loss(weights) for weights in decoded.weights_BHTS.chunk(passes)]).mean()


def _loss(
    model: Seq2Seq[Any, Any], target_BT: Tensor, decoded: Decoded, smoothing: float, r_drop: float, summed: RewardSums
) -> TokenLoss:
    """The loss of a decoded target, which with ``r_drop`` holds all sentences twice."""
    loss, readout_NR = _loss_and_readouts(model, target_BT, decoded, smoothing, summed)
    if r_drop == 0.0:
        return loss
    assert readout_NR is not None, "a sum over all positions has no single readout"
    divergence = model.output.divergence(*readout_NR.chunk(2))
    return TokenLoss(
        objective=0.5 * (loss.objective + r_drop * divergence),
        cross_entropy_N=loss.cross_entropy_N.view(2, -1).mean(dim=0),
        correct=None if loss.correct is None else loss.correct // 2,
    )


def _loss_and_readouts(
    model: Seq2Seq[Any, Any], target_BT: Tensor, decoded: Decoded, smoothing: float, summed: RewardSums
) -> tuple[TokenLoss, Tensor | None]:
    """The loss, and the readouts of all tokens (N, R), sentence by sentence; None for a sum over all positions."""
    is_pad_BT = target_BT == model.pad
    place_N = (~is_pad_BT).flatten().nonzero()[:, 0]
    gold_N = target_BT.flatten()[place_N]
    if decoded.marginal is not None:
        return _marginal(model.output, decoded.marginal, place_N, gold_N, smoothing), None
    readout_NR = decoded.readout_BTR.flatten(0, 1).index_select(0, place_N)
    loss = model.output.loss(readout_NR, gold_N, smoothing=smoothing)
    if not decoded.sampled:
        return loss, readout_NR
    log_p_BT = loss.cross_entropy_N.new_zeros(target_BT.numel()).index_copy(0, place_N, -loss.cross_entropy_N)
    reward_loss = reinforce_loss(decoded.sampled, log_p_BT.view(target_BT.shape), is_pad_BT, summed=summed)
    objective = loss.objective + reward_loss
    return dataclasses.replace(loss, objective=objective), readout_NR


def _marginal(
    output: OutputLayer, marginal: MarginalReadouts, place_N: Tensor, gold_N: Tensor, smoothing: float
) -> TokenLoss:
    """-log of the sum over source positions s of weight_s p(gold | s) (Wu et al. 2018, equation 4); label smoothing
    enters into each p(gold | s)."""
    log_weight_NS = marginal.log_weight_BTS.flatten(0, 1)[place_N]
    row_M, source_M = log_weight_NS.isfinite().nonzero(as_tuple=True)  # M: what is not padding
    readout_MR = marginal.readout_BTSR.flatten(0, 1)[place_N[row_M], source_M]
    each_M = output.likelihood(readout_MR, gold_N[row_M], smoothing=smoothing)

    def summed(log_p_M: Tensor) -> Tensor:
        empty_NS = torch.full_like(log_weight_NS, -torch.inf, dtype=log_p_M.dtype)
        spread_NS = empty_NS.index_put((row_M, source_M), log_p_M)
        # where the weight is 0 the gradient of -inf - inf would be no number
        return (spread_NS + log_weight_NS.masked_fill(log_weight_NS.isinf(), 0.0)).logsumexp(dim=1)

    is_best_NS = torch.zeros_like(log_weight_NS, dtype=torch.bool).index_put((row_M, source_M), each_M.is_best_N)
    heaviest_N1 = log_weight_NS.argmax(dim=1, keepdim=True)
    return TokenLoss(
        objective=-summed(each_M.smoothed_N).sum(),
        cross_entropy_N=-summed(each_M.log_p_N).detach(),
        correct=is_best_NS.gather(1, heaviest_N1).sum(),
    )
