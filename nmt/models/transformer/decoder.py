"""The Transformer decoder (Vaswani et al. 2017, section 3.1).

Shapes as in ``seq2seq``; D width of a state, A of a head's part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.attention.multihead import HeadsAttended, MultiHead, Projected
from nmt.attention.reinforce import Choice
from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded
from nmt.models.transformer.block import Entrance, Residual, feed_forward, last_norm, self_attention
from nmt.models.transformer.config import TransformerDecoderConfig
from nmt.models.transformer.searching import SearchState, SearchSteps
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding
from nmt.nn.recompute import recomputed


@dataclass(frozen=True)
class TransformerMemory(BatchRecord):
    """A batch of source sentences as each layer sees them, bottom first."""

    layers: tuple[BatchRecord, ...]
    like_B0: Tensor
    """Holds no number: its rows are the sentences, its type is that of the products."""


@dataclass(frozen=True)
class TransformerState(BatchRecord):
    """What goes from step to step: the keys and values of all steps so far, of each layer, bottom first."""

    layers: tuple[Projected, ...]
    position_N: Tensor
    """How many steps are done."""


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, a feed-forward block, each with its residual connection."""

    def __init__(
        self, config: TransformerDecoderConfig, attention: AttentionConfig, dropout: DropoutConfig, *, memory_size: int
    ) -> None:
        super().__init__()
        self.self_attention = self_attention(config, dropout, causal=True)
        self.self_attention_residual = Residual(config, dropout)
        self.attention = MultiHead(
            attention,
            heads=config.heads,
            query_size=config.size,
            key_size=memory_size,
            dropout=dropout.attention,
        )
        self.attention_residual = Residual(config, dropout)
        self.feed_forward = feed_forward(config, dropout)
        self.feed_forward_residual = Residual(config, dropout)

    def forward(
        self, x_BTD: Tensor, position_BT: Tensor, memory: BatchRecord, look_back: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, HeadsAttended]:
        """The next states, and what they got of the source; ``look_back`` is the self-attention's context."""
        x_BTD = self.self_attention_residual(x_BTD, look_back)
        found: list[HeadsAttended] = []

        def look_across(query_BTD: Tensor) -> Tensor:
            found.append(self.attention(query_BTD, position_BT, memory))
            return found[0].context_BTQ

        x_BTD = self.attention_residual(x_BTD, look_across)
        return self.feed_forward_residual(x_BTD, self.feed_forward), found[0]


class TransformerDecoder(Decoder[TransformerMemory, "TransformerState | SearchState"]):
    """Layers over the embeddings of the words so far. Heads are counted layer by layer, the bottom one first."""

    def __init__(
        self,
        config: TransformerDecoderConfig,
        attention: AttentionConfig,
        embedding: Embedding,
        *,
        width: int,
        memory_size: int,
        readout_size: int,
        dropout: DropoutConfig,
    ) -> None:
        super().__init__()
        self.readout_size = readout_size
        self.embedding = embedding
        self.entrance = Entrance(config, width=width, dropout=dropout)
        self.layers = nn.ModuleList(
            DecoderLayer(config, attention, dropout, memory_size=memory_size) for _ in range(config.layers)
        )
        self.norm = last_norm(config)
        self.readout = nn.Linear(config.size, readout_size) if readout_size != config.size else nn.Identity()
        self.head_names = config.head_names(attention.weights.heads)
        self.search_steps: SearchSteps | None = None

    def hand_out(self, heads: Sequence[int]) -> list[int]:
        """See ``Decoder.hand_out``."""
        each = len(self.head_names) // len(self.layers)
        handed_out: list[int] = []
        for number, layer in enumerate(self.layers):
            wanted = [head % each for head in heads if head // each == number]
            given: list[int] = layer.attention.hand_out(wanted)  # type: ignore[operator,union-attr]
            handed_out += [number * each + head for head in given]
        return [handed_out.index(head) for head in heads]

    def at_update(self, update: int) -> None:
        """See ``Decoder.at_update``."""
        for module in self.modules():
            if isinstance(module, Attention):
                module.update = update

    def memory(self, encoded: Encoded) -> TransformerMemory:
        """See ``Decoder.memory``."""
        layers = tuple(layer.attention.memory(encoded.states_BSD, encoded.is_pad_BS) for layer in self.layers)  # type: ignore[operator,union-attr]
        return TransformerMemory(layers, layers[0].tensors()[0].new_empty(encoded.is_pad_BS.shape[0], 0))

    def settle(self) -> None:
        """See ``Decoder.settle``."""
        self.search_steps = SearchSteps(self.embedding, self.entrance, self.layers, self.norm, self.readout)

    def start(self, memory: TransformerMemory) -> TransformerState | SearchState:
        """See ``Decoder.start``."""
        rows = memory.like_B0.shape[0]
        if self.search_steps is not None and not torch.is_grad_enabled():
            return self.search_steps.start(rows, memory.like_B0)
        return self._start(rows, memory)

    def _start(self, rows: int, memory: TransformerMemory) -> TransformerState:
        layers = tuple(layer.self_attention.nothing(rows, memory.like_B0) for layer in self.layers)  # type: ignore[operator,union-attr]
        return TransformerState(layers, torch.zeros(rows, dtype=torch.int64, device=memory.like_B0.device))

    def step(
        self, token_N: Tensor, memory: TransformerMemory, state: TransformerState | SearchState
    ) -> DecoderStep[TransformerState | SearchState]:
        """See ``Decoder.step``."""
        if isinstance(state, SearchState):
            assert self.search_steps is not None
            return self.search_steps(token_N, memory.layers, state)  # type: ignore[return-value]
        stepped = self._step(token_N, memory, state)
        return DecoderStep(stepped.readout_N1R[:, 0], lambda: stepped.weights()[:, :, 0], stepped.state)

    def forced(self, input_BT: Tensor, memory: TransformerMemory) -> Decoded:
        """See ``Decoder.forced``."""
        rows, steps = input_BT.shape
        position_1T = torch.arange(steps, device=input_BT.device)[None]
        x_BTD = self.entrance(self.embedding(input_BT), position_1T)
        seen: list[HeadsAttended] = []
        for layer, kept in zip(self.layers, memory.layers, strict=True):
            attention = layer.self_attention

            def look_back(x: Tensor, attention: MultiHead = attention) -> Tensor:  # type: ignore[assignment]
                # padding stands at the end, ahead of every word
                return attention.itself(x, position_1T, None).context_BTQ

            x_BTD, attended = recomputed(layer, x_BTD, position_1T.expand(rows, steps), kept, look_back)
            seen.append(attended)
        return Decoded(
            self.readout(self.norm(x_BTD)),
            torch.cat([each.weights() for each in seen], dim=1),
            tuple(choice for each in seen for choice in each.choices),
        )

    def unrolled(
        self, first_B: Tensor, memory: TransformerMemory, steps: int, following: Callable[[int, Tensor], Tensor]
    ) -> Decoded:
        """See ``Decoder.unrolled``."""
        token_B, state = first_B, self._start(len(first_B), memory)
        trail: list[_Stepped] = []
        for time in range(steps):
            trail.append(self._step(token_B, memory, state))
            token_B, state = following(time, trail[-1].readout_N1R[:, 0]), trail[-1].state
        choices = [Choice.joined(each) for each in zip(*(step.choices for step in trail), strict=True)]
        return Decoded(
            torch.cat([each.readout_N1R for each in trail], dim=1),
            torch.cat([each.weights() for each in trail], dim=2),
            tuple(each for each in choices if each is not None),
        )

    def _step(self, token_N: Tensor, memory: TransformerMemory, state: TransformerState) -> _Stepped:
        position_N1 = state.position_N[:, None]
        x_N1D = self.entrance(self.embedding(token_N[:, None]), position_N1)
        seen: list[HeadsAttended] = []
        kept: list[Projected] = []
        for layer, source, past in zip(self.layers, memory.layers, state.layers, strict=True):

            def look_back(x: Tensor, layer: nn.Module = layer, past: Projected = past) -> Tensor:
                attended, now = layer.self_attention.step(x, state.position_N, past)  # type: ignore[operator,union-attr]
                kept.append(now)
                context: Tensor = attended.context_BTQ
                return context

            x_N1D, attended = layer(x_N1D, position_N1, source, look_back)
            seen.append(attended)
        return _Stepped(
            self.readout(self.norm(x_N1D)),
            lambda: torch.cat([each.weights() for each in seen], dim=1),
            tuple(choice for each in seen for choice in each.choices),
            TransformerState(tuple(kept), state.position_N + 1),
        )


@dataclass(frozen=True)
class _Stepped:
    """What one step leaves behind."""

    readout_N1R: Tensor
    weights: Callable[[], Tensor]
    """Forms the weights (N, H, 1, S)."""
    choices: tuple[Choice, ...]
    state: TransformerState
