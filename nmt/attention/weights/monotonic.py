"""Monotonic weights: the position only moves on.

Raffel, Luong, Liu, Weiss & Eck 2017, "Online and Linear-Time Attention by Enforcing Monotonic Alignments".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameter, Parameters, Sizes, StatefulWeighting

if TYPE_CHECKING:
    from torch import Tensor


class Monotonic(StatefulWeighting):
    """Each step goes on from the position t of the step before (the first word at first) and stops at the first word j
    >= t that its draw chooses, with probability p_j = sigmoid(g score_j + r).

    Training uses the expectation over all such walks (equations 7 and 8): weight_j = p_j q_j, where q_j = (1 - p_{j-1})
    q_{j-1} + (weight_j of the step before) is the probability of coming to j. Decoding stops at the first word with p_j
    > 1/2 (section 2.4). Noise before the sigmoid makes training prefer probabilities near 0 and 1.

    In the paper a walk may run off the end, and the weights then sum to less than 1. Here it stops at the last word at
    the latest, so that all weights sum to 1. The gain g, 1 at first, and the offset r are one learnt number each, with
    any score; the paper normalises v of the additive score.
    """

    formula: ClassVar[str] = "pⱼ qⱼ, p = σ(g·scores + r), qⱼ = (1 - pⱼ₋₁) qⱼ₋₁ + last weightⱼ"
    source: ClassVar[str] = "Raffel et al. 2017"

    kind: Literal["monotonic"] = "monotonic"
    offset: float = -1.0
    """Initial value of r; a negative one lets the walks of an untrained model come far (section 2.5)."""
    noise: Annotated[float, Field(ge=0.0)] = 1.0
    """Standard deviation of the noise that training adds before the sigmoid."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """g, and what r has learnt beside its initial value."""
        return {"gain_1": Parameter((1,), "ones"), "offset_1": Parameter((1,), "zeros")}

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """The state is the weights themselves."""
        weights_BTS = self.positions(scores_BHTS, context, parameters)
        return AttentionWeights(weights_BTS[:, None], state_BTX=weights_BTS)

    def positions(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> Tensor:
        """The probability that a step stops at each position, (B, T, S); in decoding 1 at one of them."""
        import torch

        last_BTS = self.state(scores_BHTS, context)
        is_pad_BTS = scores_BHTS[:, 0].isinf()
        energy_BTS = scores_BHTS[:, 0].masked_fill(is_pad_BTS, 0.0) * parameters["gain_1"]
        energy_BTS = energy_BTS + self.offset + parameters["offset_1"]
        if context.is_training and self.noise > 0.0:
            energy_BTS = energy_BTS + self.noise * torch.randn_like(energy_BTS)
        # the last word stops every walk
        source_S = energy_BTS.new_ones(energy_BTS.shape[-1]).cumsum(dim=0)
        is_last_BTS = source_S == self.allowed(scores_BHTS)
        if not context.is_training:
            # the first word from the last position on whose probability is above 1/2
            stops_BTS = ((energy_BTS > 0.0) | is_last_BTS) & (last_BTS.cumsum(dim=-1) > 0.5)
            return (stops_BTS & (stops_BTS.cumsum(dim=-1) == 1)).float()
        # log(1 - p_j), and its sums over the words before j: the logarithm of the product of 1 - p_k over k < j
        log_pass_BTS = torch.nn.functional.logsigmoid(-energy_BTS).masked_fill(is_pad_BTS, 0.0)
        before_BTS = log_pass_BTS.cumsum(dim=-1) - log_pass_BTS
        # from i to j, a walk passes by the words i ... j - 1: exp of the difference of two sums, 0 for j < i
        passes_BTSS = (before_BTS[..., None, :] - before_BTS[..., :, None]).masked_fill(
            source_S[None, :] < source_S[:, None], -torch.inf
        )
        # q_j, the sum over i of (last weight at i) x (product of 1 - p_k over i <= k < j)
        reach_BTS = (last_BTS[..., None, :] @ passes_BTSS.exp())[..., 0, :]
        stop_BTS = energy_BTS.sigmoid().masked_fill(is_last_BTS, 1.0)
        return (stop_BTS * reach_BTS).masked_fill(is_pad_BTS, 0.0)
