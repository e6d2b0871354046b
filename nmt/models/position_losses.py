"""Losses of attention to one source position: REINFORCE for positions that are drawn, or a likelihood summed over all
positions. Shapes as in ``reinforce`` and ``seq2seq``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.attention.reinforce import RewardSums, SampledPositions
from nmt.models.seq2seq import MarginalReadouts
from nmt.nn.output import OutputLayer, TokenLoss


def reinforce_loss(
    choices: Sequence[SampledPositions],
    log_p_BT: Tensor,
    is_pad_BT: Tensor,
    *,
    summed: RewardSums = lambda own_3: own_3,
) -> Tensor:
    """Computes the loss of REINFORCE for a batch (see ``Sampled``) from the log-probability of each gold token after
    the draws. It is the sum of the terms of the policy, the baseline and the entropy over layers, heads, sentences and
    steps. All layers and heads share the reward and the mean of R - b. Only the gradient is meaningful."""
    rule, is_token_BT = choices[0].rule, ~is_pad_BT
    # R_t = log p(y_t) + discount R_{t+1}, computed from the last word backwards
    reward_BT = log_p_BT.detach() * is_token_BT
    for time in range(reward_BT.shape[1] - 2, -1, -1):
        reward_BT[:, time] += rule.discount * reward_BT[:, time + 1]

    def stacked(name: str) -> Tensor:  # (C, B, T)
        fields = (getattr(choice, name).unflatten(1, (reward_BT.shape[1], -1)) for choice in choices)
        return torch.cat([field.movedim(2, 0) for field in fields])

    is_drawn_CBT = stacked("is_drawn_BT") & is_token_BT
    # R - b, whose square is the loss of the baseline; as a reward it has no gradient
    error_CBT = (reward_BT - stacked("baseline_BT")) * is_drawn_CBT
    residual_CBT = error_CBT.detach()
    # for each sentence: the number of draws, the sum of R - b, and the sum of its square
    own_B3 = torch.stack(
        [x_CBT.sum(dim=(0, 2)) for x_CBT in (is_drawn_CBT, residual_CBT, residual_CBT.square())], dim=1
    )
    all_3 = summed(own_B3.sum(dim=0))
    # m is the mean over the draws for other sentences, in all processes, so that no draw is in its own m
    others_B3 = all_3 - own_B3
    mean_B = others_B3[:, 1] / others_B3[:, 0].clamp(min=1.0)
    advantage_CBT = (residual_CBT - mean_B[:, None]) * is_drawn_CBT
    if rule.variance_normalization:
        # the deviation of R - b over the batch: E[x^2] - E[x]^2
        mean, mean_square = all_3[1:] / all_3[0].clamp(min=1.0)
        advantage_CBT /= (mean_square - mean.square()).clamp(min=1.0).sqrt()
    bonus_CBT = getattr(rule, "entropy", 0.0) * stacked("entropy_BT") * is_token_BT  # constant for a Gaussian
    # least squares for the baseline, REINFORCE for the policy, and the entropy bonus
    return (0.5 * error_CBT.square() - stacked("log_prob_BT") * advantage_CBT - bonus_CBT).sum()


def marginal_loss(
    output: OutputLayer, marginal: MarginalReadouts, place_N: Tensor, gold_N: Tensor, smoothing: float
) -> TokenLoss:
    """Computes -log of the sum over source positions s of weight_s p(gold | s) (Wu et al. 2018, equation 4). Label
    smoothing applies to each p(gold | s). Padding is included with weight 0, because the host would have to wait for a
    GPU to leave it out."""
    log_weight_NS = marginal.log_weight_BTS.flatten(0, 1)[place_N]
    positions = log_weight_NS.shape[1]
    # every source position becomes a row of its own
    readout_XR = marginal.readout_BTSR.flatten(0, 1)[place_N].flatten(0, 1)  # X: N x S
    each_X = output.likelihood(readout_XR, gold_N.repeat_interleave(positions), smoothing=smoothing)

    def summed(log_p_X: Tensor) -> Tensor:
        # log sum over s of exp(log p(gold | s) + log weight_s)
        return (log_p_X.view_as(log_weight_NS) + log_weight_NS).logsumexp(dim=1)

    # a word counts as correct if it is the most probable one given the position with the largest weight
    heaviest_N1 = log_weight_NS.argmax(dim=1, keepdim=True)
    return TokenLoss(
        objective=-summed(each_X.smoothed_N).sum(),
        cross_entropy_N=-summed(each_X.log_p_N).detach(),
        correct=each_X.is_best_N.view_as(log_weight_NS).gather(1, heaviest_N1).sum(),
    )
