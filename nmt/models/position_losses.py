"""Losses of attention to one source position: REINFORCE for positions that are drawn, or a likelihood summed over all
positions. Shapes as in ``reinforce`` and ``seq2seq``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nmt.attention.reinforce import SampledPositions
from nmt.models.loss import AllReduce, Criterion, TargetTokens
from nmt.models.seq2seq import Decoded
from nmt.nn.output import OutputLayer, TokenLoss


def reinforce_loss(
    choices: Sequence[SampledPositions], log_p_BT: Tensor, is_pad_BT: Tensor, all_reduce: AllReduce = lambda sums: sums
) -> Tensor:
    """REINFORCE's loss of a batch (see ``HardAttention``), given the log-probability of each gold token after the
    draws: the terms of the policy, the baseline and the entropy, summed over layers and heads, sentences and steps.
    Layers and heads have the same reward, and one mean of R - b. Only the gradient is meaningful. ``all_reduce`` adds
    sums over the batches of other processes to those of this one, (3,).
    """
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
    all_3 = all_reduce(own_B3.sum(dim=0))
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


@dataclass(frozen=True)
class Reinforce(Criterion):
    """Another loss, with that of REINFORCE for the positions that attention has drawn."""

    learns_from_rewards = True

    of_tokens: Criterion
    all_reduce: AllReduce = lambda sums: sums
    """See ``reinforce_loss``."""

    def __call__(self, output: OutputLayer, decoded: Decoded, tokens: TargetTokens) -> TokenLoss:
        """See ``Criterion``."""
        loss, is_pad_BT = self.of_tokens(output, decoded, tokens), tokens.is_pad_BT
        # the reward of a drawn position is log p of the words that follow, back in their sentences
        log_p_X = loss.cross_entropy_N.new_zeros(is_pad_BT.numel())
        log_p_BT = log_p_X.index_copy(0, tokens.token_index_N, -loss.cross_entropy_N).view(is_pad_BT.shape)
        rewards = reinforce_loss(decoded.sampled, log_p_BT, is_pad_BT, all_reduce=self.all_reduce)
        return replace(loss, objective=loss.objective + rewards)


@dataclass(frozen=True)
class MarginalLikelihood(Criterion):
    """-log of the sum over source positions s of weight_s p(gold | s) (Wu et al. 2018, equation 4).

    Label smoothing enters into each p(gold | s).
    """

    smoothing: float = 0.0

    def __call__(self, output: OutputLayer, decoded: Decoded, tokens: TargetTokens) -> TokenLoss:
        """See ``Criterion``. Padding takes part with weight 0: to leave it out the host would wait for a GPU."""
        assert decoded.marginal is not None, "attention does not sum over positions"
        log_weight_NS = tokens.rows(decoded.marginal.log_weight_BTS)
        positions = log_weight_NS.shape[1]
        # every source position as if it were a row of its own
        readout_XR = tokens.rows(decoded.marginal.readout_BTSR).flatten(0, 1)  # X: N x S
        each_X = output.likelihood(readout_XR, tokens.gold_N.repeat_interleave(positions), smoothing=self.smoothing)

        def marginal(log_p_X: Tensor) -> Tensor:
            # log sum over s of exp(log p(gold | s) + log weight_s)
            return (log_p_X.view_as(log_weight_NS) + log_weight_NS).logsumexp(dim=1)

        # a word counts as right if the position with the largest weight finds it
        heaviest_N1 = log_weight_NS.argmax(dim=1, keepdim=True)
        return TokenLoss(
            objective=-marginal(each_X.smoothed_N).sum(),
            cross_entropy_N=-marginal(each_X.log_p_N).detach(),
            correct=each_X.is_best_N.view_as(log_weight_NS).gather(1, heaviest_N1).sum(),
        )
