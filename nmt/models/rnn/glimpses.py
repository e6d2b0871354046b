"""The recurrent attention model on text: before each word, a policy draws several positions of which the decoder takes
glimpses.

Mnih, Heess, Graves & Kavukcuoglu 2014, "Recurrent Models of Visual Attention", sections 3 and 4. Shapes as in
``decoder``; K windows of a glimpse, X a width of several parts.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional as F

from nmt.attention.attention import AttentionMemory, AttentionOutput, NoAttention, matrix
from nmt.attention.reinforce import SampledPositions
from nmt.models.rnn.decoder import RNNDecoder, RNNMemory, RNNState, _DropoutMasks, _Step
from nmt.models.rnn.readers_config import GlimpsesConfig


class GlimpseSensor(NoAttention):
    """One glimpse from a state s, of a sentence of S words:

    location network: mean = S sigmoid(w . s + b); l ~ N(mean, deviation^2) in training, l = mean in decoding
    sensor:           rho_k = mean of the words within 2^k - 1 of l: 1, 3, 7 ... words
    glimpse network:  g = ReLU(W [ReLU(W_rho [rho_1; ...; rho_K] + b); ReLU(W_l l + b)] + b)

    If l is between two words, the window is the mixture of the windows round both: word i has the weight clamp(2^k - |i
    - l|, 0, 1), divided by the sum of all weights. An l outside the sentence is moved to its first or last word. W_l
    reads 2 l / S - 1.

    The policy learns by REINFORCE (see ``HardAttention``), with the baseline w' . s + b': the log-density of l has a
    gradient, the draw has none. A step that looks through the expectation takes the mean, which has a derivative.
    """

    learns_from_rewards = True

    def __init__(self, config: GlimpsesConfig, memory_size: int) -> None:
        super().__init__()
        self.config, self.context_size = config, config.size
        self.policy_2Q = matrix(2, config.size)
        self.policy_offset_2 = nn.Parameter(torch.zeros(2))
        self.windows = nn.Linear(config.scales * memory_size, config.size)
        self.place = nn.Linear(1, config.size)
        self.glimpse = nn.Linear(2 * config.size, config.size)

    def forward(
        self, query_NTQ: Tensor, position_NT: Tensor, memory: AttentionMemory, state: None = None
    ) -> AttentionOutput:
        """See ``Attention.forward``. The context is g; the one head of weights is the mean of the windows."""
        values_BSV, is_pad_BS, (rows, time, width) = memory.values_BSV, memory.is_pad_BS, query_NTQ.shape
        length_B1 = (~is_pad_BS).sum(dim=1, keepdim=True)
        with torch.autocast(query_NTQ.device.type, enabled=False):
            place_BT, sampled = self._sample(query_NTQ.reshape(len(values_BSV), -1, width).float(), length_B1)
            # a place outside of the sentence is its first or last word
            place_BT = place_BT.clamp(min=0.0).minimum(length_B1 - 1.0)
            source_S = torch.arange(values_BSV.shape[1], device=place_BT.device)
            # 2^k, the reach of each scale
            reach_K1 = 2.0 ** torch.arange(self.config.scales, device=place_BT.device)[:, None]
            # clamp(2^k - |i - l|, 0, 1): 1 inside the window, a fraction at its edge
            window_BTKS = (reach_K1 - (source_S - place_BT[:, :, None, None]).abs()).clamp(0.0, 1.0)
            # divided by their sum, without padding
            window_BTKS = F.normalize(window_BTKS.masked_fill(is_pad_BS[:, None, None], 0.0), p=1.0, dim=-1)
        # rho_1 ... rho_K side by side
        rho_BTX = (window_BTKS.to(values_BSV.dtype).flatten(1, 2) @ values_BSV).view(*place_BT.shape, -1)
        # the position scaled from -1 at the start to 1 at the end
        relative_BT1 = (2.0 * place_BT / length_B1 - 1.0)[:, :, None].to(values_BSV.dtype)
        # ReLU(W_rho rho + b) and ReLU(W_l l + b)
        hidden_BTX = torch.cat([self.windows(rho_BTX), self.place(relative_BT1)], dim=-1).relu()
        # g
        glimpse_NTV = self.glimpse(hidden_BTX).relu().view(rows, time, -1)
        return AttentionOutput(glimpse_NTV, window_BTKS.mean(dim=2).view(rows, 1, time, -1), sampled)

    def _sample(self, query_BTQ: Tensor, length_B1: Tensor) -> tuple[Tensor, SampledPositions | None]:
        """The places l (B, T), and in training the draws."""
        policy_2Q, offset_2 = self.policy_2Q.float(), self.policy_offset_2.float()
        # mean = S sigmoid(w . s + b)
        mean_BT = length_B1 * F.linear(query_BTQ, policy_2Q, offset_2)[:, :, 0].sigmoid()
        if not self.training:
            return mean_BT, None
        # the baseline learns by its own loss, whose gradient does not reach the state
        baseline_BT = F.linear(query_BTQ.detach(), policy_2Q, offset_2)[:, :, 1]
        density = Normal(mean_BT, torch.full_like(mean_BT, self.config.deviation), validate_args=False)
        # the draw has no gradient, its log-density has one
        draw_BT = mean_BT.detach() + density.scale * torch.randn_like(mean_BT)
        # some steps use the mean instead
        is_drawn_BT = torch.rand_like(mean_BT) >= self.config.expected
        log_prob_BT, entropy_BT = density.log_prob(draw_BT), density.entropy()  # type: ignore[no-untyped-call]
        sampled = SampledPositions(self.config, log_prob_BT, entropy_BT, baseline_BT, is_drawn_BT)
        return torch.where(is_drawn_BT, draw_BT, mean_BT), sampled


class GlimpseDecoder(RNNDecoder):
    """s = s_{t-1}; ``count`` times: g = glimpse(s), s = cell([y'; g], s); then s_t = s, r_t = tanh(W [s_t; g] + b).

    All glimpses of a step share its reward, and the baseline is computed anew for each of them. The paper's action
    reads s_t; here the readout is the same as in the other decoders, with the last g.
    """

    def _step(self, embedded_NE: Tensor, memory: RNNMemory, state: RNNState, masks: _DropoutMasks) -> _Step:
        """Computes the equations of the class for the next word of N rows; the weights have a head for each glimpse."""
        steps: list[_Step] = []
        for _ in self.head_names:
            steps.append(super()._step(embedded_NE, memory, state, masks))
            state = replace(state, stack=steps[-1].state.stack)
        seen, weights, draws, _ = zip(*(step.attended for step in steps), strict=True)
        output = AttentionOutput(seen[-1], torch.cat(weights, 1), SampledPositions.joined(draws))
        return steps[-1]._replace(attended=output)
