"""Loss of a model on given targets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nmt.attention.reinforce import RewardSums
from nmt.models.feed import Feed
from nmt.models.seq2seq import Decoded, Seq2Seq
from nmt.nn.output import TokenLoss
from nmt.ops import Operation

if TYPE_CHECKING:
    from nmt.models.guidance import Guide


@Operation
def decode(model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, feed: Feed, needs_weights: bool) -> Decoded:
    """Runs all steps over a batch of pairs on a GPU, with the inputs that ``feed`` chooses. ``needs_weights`` says if
    the loss reads the weights of attention."""
    return model.decode(target_BT, model.encode(source_BS), feed)


def token_loss(
    model: Seq2Seq[Any, Any],
    source_BS: Tensor,
    target_BT: Tensor,
    feed: Feed,
    *,
    tokens: int | None = None,
    smoothing: float = 0.0,
    r_drop: float = 0.0,
    summed: RewardSums = lambda own_3: own_3,
) -> TokenLoss:
    """Computes the loss summed over the tokens of the target, end-of-sentence included. Output layer and loss run once
    over all positions of all sentences, without padding. The REINFORCE loss of attention that draws positions is part
    of the objective; ``summed`` adds its sums to those of other processes. If the caller passes the number of
    ``tokens``, the host need not wait for a GPU.

    With ``r_drop`` (Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", equation 3, its alpha) each
    sentence goes through the model twice, under two draws of dropout, and their divergence is part of the loss: (L_1 +
    L_2 + alpha (KL(p_1 || p_2) + KL(p_2 || p_1)) / 2) / 2, which is half the paper's, so that the loss keeps its size.
    """
    return guided_loss(
        model, source_BS, target_BT, feed, None, tokens=tokens, smoothing=smoothing, r_drop=r_drop, summed=summed
    )[0]


def guided_loss(
    model: Seq2Seq[Any, Any],
    source_BS: Tensor,
    target_BT: Tensor,
    feed: Feed,
    guide: Guide | None,
    *,
    tokens: int | None = None,
    smoothing: float = 0.0,
    r_drop: float = 0.0,
    summed: RewardSums = lambda own_3: own_3,
) -> tuple[TokenLoss, Tensor | None]:
    """Computes ``token_loss`` and, from the same pass, the loss of a guide, which ``token_loss`` does not include. With
    ``r_drop`` the guide's loss is the mean of both passes."""
    passes = 2 if r_drop > 0.0 else 1
    # R-Drop: both passes are one batch of twice the sentences, with a draw of dropout for each row
    source_BS, target_BT = source_BS.repeat(passes, 1), target_BT.repeat(passes, 1)
    if source_BS.device.type == "cpu":
        decoded = model.decode(target_BT, model.encode(source_BS), feed)
    else:
        decoded = decode(model, source_BS, target_BT, feed, guide is not None)
    # indices of tokens in the flattened target: in the output layer padding would cost as much as a token
    is_token_X = (target_BT != model.pad).flatten()
    place_N = (is_token_X.nonzero() if tokens is None else is_token_X.nonzero_static(size=passes * tokens))[:, 0]
    loss, readout_NR = _loss_and_readouts(model, target_BT, decoded, place_N, smoothing, summed)
    guidance = None
    if guide is not None:
        # each pass has weights of its own
        guidance = torch.stack([guide.loss(weights) for weights in decoded.weights_BHTS.chunk(passes)]).mean()
    if r_drop == 0.0:
        return loss, guidance
    assert readout_NR is not None, "a sum over all positions has no single readout"
    # (KL(p_1 || p_2) + KL(p_2 || p_1)) / 2
    divergence = model.output.divergence(*readout_NR.chunk(2))
    both = TokenLoss(
        objective=0.5 * (loss.objective + r_drop * divergence),
        cross_entropy_N=loss.cross_entropy_N.view(2, -1).mean(dim=0),
        correct=None if loss.correct is None else loss.correct // 2,
    )
    return both, guidance


def _loss_and_readouts(
    model: Seq2Seq[Any, Any], target_BT: Tensor, decoded: Decoded, place_N: Tensor, smoothing: float, summed: RewardSums
) -> tuple[TokenLoss, Tensor | None]:
    """Computes the loss, and the readouts of all tokens (N, R), sentence by sentence. The readouts are None for a sum
    over all positions. ``place_N`` are the indices of tokens in the flattened target."""
    gold_N = target_BT.flatten()[place_N]
    if decoded.marginal is not None:
        from nmt.models.position_losses import marginal_loss

        return marginal_loss(model.output, decoded.marginal, place_N, gold_N, smoothing), None
    # the output layer reads the tokens only, no padding
    readout_NR = decoded.readout_BTR.flatten(0, 1).index_select(0, place_N)
    loss = model.output.loss(readout_NR, gold_N, smoothing=smoothing)
    if not decoded.sampled:
        return loss, readout_NR
    from nmt.models.position_losses import reinforce_loss

    # the reward of a drawn position is log p of the words that follow, so log p gets its shape (B, T) back
    log_p_BT = loss.cross_entropy_N.new_zeros(target_BT.numel()).index_copy(0, place_N, -loss.cross_entropy_N)
    log_p_BT = log_p_BT.view(target_BT.shape)
    reward_loss = reinforce_loss(decoded.sampled, log_p_BT, target_BT == model.pad, summed=summed)
    return dataclasses.replace(loss, objective=loss.objective + reward_loss), readout_NR
