"""Learning from a reward which position to choose, for the weightings that draw one.

Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning"; for
attention Mnih et al. 2014, "Recurrent Models of Visual Attention", section 3.1, and Xu et al. 2015, "Show, Attend and
Tell", section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from nmt.attention.mechanism import Asked, Parameter, Sizes, Weighting

if TYPE_CHECKING:
    from torch import Tensor


class Sampled(Weighting):
    """A weighting that looks at one position: drawn from softmax(scores) in training, the best one in decoding.

    A draw has no derivative, so the scores learn by REINFORCE. The reward of step t is R_t = log p(y_t) + discount x
    R_{t+1}, and the gradient's estimate is (R_t - b_t) times that of log softmax(scores)[chosen]. The baseline b_t =
    w . query + c is learnt by least squares from R_t; neither passes a gradient on. The difference is centred over the
    batch and, where its deviation is above 1, divided by it (Mnih & Gregor 2014, "Neural Variational Inference and
    Learning in Belief Networks", section 2.3). An entropy bonus keeps the draws from settling too soon (Xu et al. 2015,
    equation 11).

    In place of a draw a training step may look through the expectation, softmax(scores), which has a derivative; Xu et
    al. 2015, section 4.1, do so for half of the images, here each step tosses for itself. Without it the draws of a
    large vocabulary soon settle on a few positions, the same for every word.
    """

    chooses: ClassVar[bool] = True

    discount: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """How much a later word's log-probability counts: 0 rewards a choice for its own word alone, 1 for all that follow.
    A choice reaches later words by way of the decoder's state alone; where it does not, they are noise."""
    entropy: Annotated[float, Field(ge=0.0)] = 0.01
    """Weight of the entropy bonus, per nat."""
    expected: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.5
    """Probability that a training step looks through the expectation instead of a draw."""

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """w and c of the baseline."""
        return {"baseline_Q": Parameter((sizes.query,), "zeros"), "baseline_offset_1": Parameter((1,), "zeros")}

    def look(self, scores_BHTS: Tensor, asked: Asked, parameters: Mapping[str, Tensor]) -> tuple[Tensor, Choice | None]:
        """Where each step looks, (B, T, S): all weight on one position, or in training the expectation; and in training
        how it was drawn."""
        scores_BTS = scores_BHTS[:, 0]
        if not asked.is_training:
            return _one_hot(scores_BTS.argmax(dim=-1), scores_BTS), None
        log_p_BTS = scores_BTS.log_softmax(dim=-1)
        p_BTS = log_p_BTS.exp()
        chosen_BT = p_BTS.detach().flatten(0, 1).multinomial(1).view(p_BTS.shape[:2])
        is_drawn_BT = p_BTS.new_empty(chosen_BT.shape).uniform_() >= self.expected
        look_BTS = p_BTS.where(~is_drawn_BT[:, :, None], _one_hot(chosen_BT, scores_BTS))
        # -inf x 0 would be no number, and its gradient neither
        plogp_BTS = p_BTS * log_p_BTS.masked_fill(p_BTS == 0.0, 0.0)
        baseline_BT = asked.query_BTQ.detach() @ parameters["baseline_Q"] + parameters["baseline_offset_1"]
        log_prob_BT = log_p_BTS.gather(2, chosen_BT[:, :, None])[:, :, 0]
        return look_BTS, Choice(self, log_prob_BT, -plogp_BTS.sum(dim=-1), baseline_BT, is_drawn_BT)


def _one_hot(chosen_BT: Tensor, like_BTS: Tensor) -> Tensor:
    return like_BTS.new_zeros(like_BTS.shape).scatter(-1, chosen_BT[:, :, None], 1.0)


@dataclass(frozen=True)
class Choice:
    """Positions drawn for a batch of steps."""

    rule: Sampled
    log_prob_BT: Tensor
    """Log-probability of each draw."""
    entropy_BT: Tensor
    """In nats, of the distribution that it came from."""
    baseline_BT: Tensor
    """The reward that was expected before the draw."""
    is_drawn_BT: Tensor
    """Where the step looked at what was drawn; elsewhere it looked through the expectation."""

    def loss(self, log_p_BT: Tensor, is_pad_BT: Tensor) -> Tensor:
        """What to add to the loss, summed over the batch, given the log-probability of each gold token after the draws.

        Its gradient with respect to the scores is REINFORCE's; its value means nothing.
        """
        is_token_BT = ~is_pad_BT
        reward_BT = self._rewards(log_p_BT.detach() * is_token_BT)
        drawn_BT = (is_token_BT & self.is_drawn_BT).to(reward_BT.dtype)
        count = drawn_BT.sum().clamp(min=1.0)
        left_BT = (reward_BT - self.baseline_BT.detach()) * drawn_BT
        left_BT = (left_BT - left_BT.sum() / count) * drawn_BT
        deviation = (left_BT.square().sum() / count).sqrt().clamp(min=1.0)
        chosen_BT = -self.log_prob_BT * left_BT / deviation
        surprise_BT = (self.baseline_BT - reward_BT).square() * drawn_BT
        return (chosen_BT + 0.5 * surprise_BT - self.rule.entropy * self.entropy_BT * is_token_BT).sum()

    def _rewards(self, log_p_BT: Tensor) -> Tensor:
        """R_t = log p_t + discount x R_{t+1}."""
        rewards_BT = log_p_BT.clone()
        for time in range(log_p_BT.shape[1] - 2, -1, -1):
            rewards_BT[:, time] += self.rule.discount * rewards_BT[:, time + 1]
        return rewards_BT

    @staticmethod
    def joined(parts: Sequence[Choice | None]) -> Choice | None:
        """The choices of steps that follow one another, or None where nothing is drawn."""
        import torch

        drawn = [each for each in parts if each is not None]
        if not drawn:
            return None
        return Choice(
            drawn[0].rule,
            torch.cat([each.log_prob_BT for each in drawn], dim=1),
            torch.cat([each.entropy_BT for each in drawn], dim=1),
            torch.cat([each.baseline_BT for each in drawn], dim=1),
            torch.cat([each.is_drawn_BT for each in drawn], dim=1),
        )
