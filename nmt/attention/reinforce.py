"""Learning from a reward which position to choose, for the weightings that draw one.

Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning"; for
attention Mnih et al. 2014, "Recurrent Models of Visual Attention", section 3.1, and Xu et al. 2015, "Show, Attend and
Tell", section 4.1.

Shapes: C choices (layers x heads x glimpses), B sentences, T target steps, S source positions; 3: the number of draws,
the sum of R - b over them, and the sum of its squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from nmt.attention.mechanism import AttentionContext, Parameter, Parameters, Sizes, Weighting
from nmt.config.structure import Structure

if TYPE_CHECKING:
    from torch import Tensor


class ReinforceOptions(Structure):
    """The options of a choice that learns from a reward; see ``HardAttention``."""

    discount: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Weight of a later word's log-probability: 0 rewards a choice only for its own word, 1 for all later words. A
    choice affects later words only through the decoder's state: with ``input_feeding`` or ``query: previous``, in every
    decoder of ``kind: glimpses`` and in all but the last layer of a Transformer. There the gradient of the likelihood
    needs 1, which Mnih et al. 2014 use; elsewhere later words are noise."""
    expected: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.5
    """Probability that a training step uses the expectation instead of a draw."""
    variance_normalization: bool = True
    """Divide R - b - m by the deviation of R - b over the batch if that is above 1 (Mnih & Gregor 2014, "Neural
    Variational Inference and Learning in Belief Networks", section 2.3). Rewards differ by several nats from word to
    word; undivided, they outweigh the gradient that comes through the expectation, and the draws narrow before they
    are of use. The divided estimate is biased."""


class HardAttention(ReinforceOptions, Weighting):
    """A weighting that looks at one position: drawn from softmax(scores) in training, the best one in decoding.

    A draw has no derivative, so the scores learn by REINFORCE. The reward of step t is R_t = log p(y_t) + discount x
    R_{t+1}, and the gradient's estimate is (R_t - b_t - m) times that of log softmax(scores)[chosen]. The baseline
    b_t = w . query + c is learnt by least squares from R_t; m is the mean of R - b over the draws for the other
    sentences of the batch, 0 where there are none (Kool et al. 2019, "Buy 4 REINFORCE Samples, Get a Baseline for
    Free!", whose draws are all for one input). Neither depends on the draw or passes a gradient on. So without
    ``variance_normalization`` the estimate is unbiased, if R_t holds all that the draw changes: with ``discount: 1``,
    or where no draw reaches a later step. Other draws for the same sentence do not enter into m: by way of the
    decoder's state a draw changes the rewards after it. An entropy bonus keeps the draws from settling too soon (Xu et
    al. 2015, equation 11).

    In place of a draw a training step may look through the expectation, softmax(scores), which has a derivative; Xu et
    al. 2015, section 4.1, do so for half of the images, here each step tosses for itself. Without it the draws of a
    large vocabulary soon settle on a few positions, the same for every word.
    """

    chooses: ClassVar[bool] = True

    entropy: Annotated[float, Field(ge=0.0)] = 0.01
    """Weight of the entropy bonus, per nat."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """w and c of the baseline."""
        return {"baseline_Q": Parameter((sizes.query,), "zeros"), "baseline_offset_1": Parameter((1,), "zeros")}

    def sample(
        self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters
    ) -> tuple[Tensor, SampledPositions | None]:
        """Returns the weights of each step (B, T, S), which are on one position or, at some steps of training, the
        expectation; and in training the draws, else None."""
        scores_BTS = scores_BHTS[:, 0]
        if not context.is_training:
            return _one_hot(scores_BTS.argmax(dim=-1), scores_BTS), None
        log_p_BTS = scores_BTS.log_softmax(dim=-1)
        p_BTS = log_p_BTS.exp()
        # s ~ softmax(scores)
        chosen_BT = _draw(p_BTS.detach())
        # each step tosses for itself whether it looks at the draw or through the expectation
        is_drawn_BT = p_BTS.new_empty(chosen_BT.shape).uniform_() >= self.expected
        look_BTS = p_BTS.where(~is_drawn_BT[:, :, None], _one_hot(chosen_BT, scores_BTS))
        # -inf x 0 is NaN, and so is its gradient
        plogp_BTS = p_BTS * log_p_BTS.masked_fill(p_BTS == 0.0, 0.0)
        # b = w . query + c; the query does not learn to be predictable
        baseline_BT = context.query_BTQ.detach() @ parameters["baseline_Q"] + parameters["baseline_offset_1"]
        log_prob_BT = log_p_BTS.gather(2, chosen_BT[:, :, None])[:, :, 0]
        return look_BTS, SampledPositions(self, log_prob_BT, -plogp_BTS.sum(dim=-1), baseline_BT, is_drawn_BT)


def _draw(p_BTS: Tensor) -> Tensor:
    """Draws a position of each step as ``torch.multinomial`` does, without its checks, which make the host wait for a
    GPU."""
    # argmax of p / e with e ~ Exp(1) is a draw from p, as is argmax of log p + Gumbel noise
    return (p_BTS / p_BTS.new_empty(p_BTS.shape).exponential_()).argmax(dim=-1)


def _one_hot(chosen_BT: Tensor, like_BTS: Tensor) -> Tensor:
    return like_BTS.new_zeros(like_BTS.shape).scatter(-1, chosen_BT[:, :, None], 1.0)


@dataclass(frozen=True)
class SampledPositions:
    """Positions that one layer and head draws for a batch of steps; the glimpses of a step are neighbours along T."""

    rule: ReinforceOptions
    log_prob_BT: Tensor
    """Log-probability of each draw."""
    entropy_BT: Tensor
    """The entropy in nats of the distribution that each draw came from."""
    baseline_BT: Tensor
    """Reward that the baseline expects before the draw."""
    is_drawn_BT: Tensor
    """Mask of the steps that attended to the drawn position (True) and not to the expectation (False)."""

    @staticmethod
    def joined(parts: Sequence[SampledPositions | None]) -> SampledPositions | None:
        """Concatenates the draws of successive steps; returns None if nothing is drawn."""
        import torch

        samples = [part for part in parts if part is not None]
        if not samples:
            return None
        names = ("log_prob_BT", "entropy_BT", "baseline_BT", "is_drawn_BT")
        each = (torch.cat([getattr(sample, name) for sample in samples], dim=1) for name in names)
        return SampledPositions(samples[0].rule, *each)
