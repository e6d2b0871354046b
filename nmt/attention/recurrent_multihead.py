"""Several heads for a recurrent decoder (Vaswani et al. 2017, section 3.2.2), with any score and weighting in a head.

Shapes as in ``attention``; A width of the query, key and value of one head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attention, AttentionMemory, AttentionOutput, AttentionState, matrix
from nmt.attention.config import AttentionConfig
from nmt.core.record import BatchRecord


@dataclass(frozen=True)
class RecurrentHeadsMemory(BatchRecord):
    """One memory for each head."""

    heads: tuple[AttentionMemory, ...]


@dataclass(frozen=True)
class RecurrentHeadsState(BatchRecord):
    """One state for each head of a mechanism that has a state."""

    heads: tuple[AttentionState, ...]


class RecurrentMultiHead(nn.Module):
    """head_h = attend_h(q W_h, k U_h, v V_h), context = [head_1; ...; head_H].

    Each head is an ``Attention`` with parameters of its own, as wide as the values divided by H. The paper multiplies
    the heads by a further matrix; here the cell or the readout, which read the context, begin with one.
    """

    marginalizes = learns_from_rewards = False

    def __init__(
        self, config: AttentionConfig, *, query_size: int, key_size: int, value_size: int, dropout: float
    ) -> None:
        """``value_size`` is a multiple of the number of heads."""
        super().__init__()
        self.heads = config.heads
        width = value_size // config.heads
        self.query_weight_VQ = matrix(value_size, query_size)
        self.key_weight_VK = matrix(value_size, key_size)
        self.value_weight_VV = matrix(value_size, value_size)
        one = config.model_copy(update={"heads": 1})
        self.each = nn.ModuleList(
            Attention(one, query_size=width, key_size=width, value_size=width, dropout=dropout)
            for _ in range(config.heads)
        )

    @property
    def attentions(self) -> Sequence[Attention]:
        """The attention of each head."""
        return list(self.each)  # type: ignore[arg-type]

    @property
    def is_stateful(self) -> bool:
        """See ``Attention.is_stateful``."""
        return self.attentions[0].is_stateful

    @property
    def update(self) -> int:
        """See ``Attention.update``."""
        return self.attentions[0].update

    @update.setter
    def update(self, update: int) -> None:
        for attention in self.attentions:
            attention.update = update

    def memory(self, keys_BSK: Tensor, values_BSV: Tensor, is_pad_BS: Tensor) -> RecurrentHeadsMemory:
        """Builds the memory of a batch of sentences."""
        # k U_h and v V_h, once for a sentence
        keys_HBSA = F.linear(keys_BSK, self.key_weight_VK).chunk(self.heads, dim=-1)
        values_HBSA = F.linear(values_BSV, self.value_weight_VV).chunk(self.heads, dim=-1)
        parts = zip(self.attentions, keys_HBSA, values_HBSA, strict=True)
        return RecurrentHeadsMemory(tuple(head.memory(keys, values, is_pad_BS) for head, keys, values in parts))

    def start(self, memory: RecurrentHeadsMemory) -> RecurrentHeadsState | None:
        """See ``Attention.start``."""
        states = [head.start(own) for head, own in zip(self.attentions, memory.heads, strict=True)]
        return RecurrentHeadsState(tuple(each for each in states if each is not None)) if self.is_stateful else None

    def forward(
        self,
        query_NTQ: Tensor,
        position_NT: Tensor,
        memory: RecurrentHeadsMemory,
        state: RecurrentHeadsState | None = None,
    ) -> AttentionOutput:
        """See ``Attention.forward``; the weights are those of all heads."""
        queries_HNTA = F.linear(query_NTQ, self.query_weight_VQ).chunk(self.heads, dim=-1)
        states = [None] * self.heads if state is None else state.heads
        parts = zip(self.each, queries_HNTA, memory.heads, states, strict=True)
        heads: list[AttentionOutput] = [
            head(query_NTA, position_NT, own, before) for head, query_NTA, own, before in parts
        ]
        if state is not None:
            state = replace(state, heads=tuple(head.state for head in heads))  # type: ignore[misc]
        return AttentionOutput(
            torch.cat([head.context_NTV for head in heads], dim=-1),
            torch.cat([head.weights_NHTS for head in heads], dim=1),
            None,
            state,
        )
