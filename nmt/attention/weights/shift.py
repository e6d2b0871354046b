"""Shifted weights: the addressing of a Neural Turing Machine.

Graves, Wayne & Danihelka 2014, "Neural Turing Machines", section 3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameter, Parameters, Sizes, StatefulWeighting

if TYPE_CHECKING:
    from torch import Tensor


class Shift(StatefulWeighting):
    """Weights by content, mixed with those of the step before, moved along the sentence and sharpened.

    content = softmax(scores) (equation 5, where ``score: cosine`` has the paper's similarity and key strength)
    mixed = g content + (1 - g) (weights of the step before), g = sigmoid(w_g . q) (equation 7)
    moved_s = sum over d from -reach to reach of a_d mixed_{s-d}, a = softmax(W_a q), positions modulo the sentence's
    length (equation 8)
    weights = moved^c / sum of moved^c, c = 1 + softplus(w_c . q) (equation 9)

    Before the first step all weight is on the first word.
    """

    formula: ClassVar[str] = "(a * (g·softmax(scores) + (1 - g)·the last weights))ᶜ, normalised"
    source: ClassVar[str] = "Graves et al. 2014"

    kind: Literal["shift"] = "shift"
    reach: Annotated[int, Field(ge=0)] = 1
    """Largest shift, in subwords; the paper has 1."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """w_g, W_a and w_c, as one matrix."""
        return {"controls_XQ": Parameter((2 * self.reach + 3, sizes.query))}

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """The state is the weights themselves."""
        import torch

        content_BTS, last_BTS = scores_BHTS[:, 0].softmax(dim=-1), self.state(scores_BHTS, context)
        gate_BT1, shift_BTD, sharpening_BT1 = torch.split(
            context.query_BTQ @ parameters["controls_XQ"].mT, [1, 2 * self.reach + 1, 1], dim=-1
        )
        # g content + (1 - g) last
        mixed_BTS = torch.lerp(last_BTS, content_BTS, gate_BT1.sigmoid())
        # s - d modulo the length, for each d; in the padding mixed is 0 and is read by no word
        length_BT1 = self.allowed(scores_BHTS)
        source_S = length_BT1.new_ones(scores_BHTS.shape[-1]).cumsum(dim=0) - 1
        is_pad_BTS = source_S >= length_BT1
        distance_D = torch.arange(-self.reach, self.reach + 1, device=source_S.device)
        origin_BTDS = (source_S - distance_D[:, None]).remainder(length_BT1[:, :, None])
        # sum over d of a_d mixed_{s-d}
        mixed_BTDS = mixed_BTS[:, :, None].expand(origin_BTDS.shape).gather(-1, origin_BTDS)
        moved_BTS = (shift_BTD.softmax(dim=-1)[:, :, None] @ mixed_BTDS)[:, :, 0]
        # moved^c = exp(c log moved); the logarithm of 0 has no finite gradient
        log_BTS = moved_BTS.clamp(min=torch.finfo(moved_BTS.dtype).tiny).log()
        log_BTS = (1.0 + torch.nn.functional.softplus(sharpening_BT1)) * log_BTS
        weights_BTS = log_BTS.masked_fill(is_pad_BTS, -torch.inf).softmax(dim=-1)
        return AttentionWeights(weights_BTS[:, None], state_BTX=weights_BTS)
