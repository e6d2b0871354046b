"""The Transformer decoder (Vaswani et al. 2017, section 3.1).

Shapes as in ``seq2seq``; D width of a state, A width of the part of it that a head sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.attention.multihead import KeyValues, MultiHead, MultiHeadOutput
from nmt.attention.reinforce import SampledPositions
from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded, NextToken
from nmt.models.transformer.block import EmbeddingLayer, Residual, feed_forward, last_norm, self_attention
from nmt.models.transformer.config import TransformerDecoderConfig
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding
from nmt.nn.precision import compute_dtype
from nmt.nn.recompute import recomputed


@dataclass(frozen=True)
class TransformerMemory(BatchRecord):
    """A batch of source sentences as each layer sees them, bottom first."""

    layers: tuple[BatchRecord, ...]
    empty_B0: Tensor
    """An empty tensor whose rows are the sentences and whose dtype is that of the products."""


@dataclass(frozen=True)
class TransformerState(BatchRecord):
    """The keys and values of all steps so far, of each layer, bottom first."""

    layers: tuple[KeyValues, ...]
    position_N: Tensor
    """Number of steps so far."""


class LayerOutput(NamedTuple):
    """Result of a layer."""

    x_NTD: Tensor
    attended: MultiHeadOutput
    """Attention to the source."""
    key_values: KeyValues
    """Keys and values of self-attention, including those of earlier steps."""


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
            bias=config.attention_bias,
        )
        self.attention_residual = Residual(config, dropout)
        self.feed_forward = feed_forward(config, dropout)
        self.feed_forward_residual = Residual(config, dropout)

    def forward(
        self, x_NTD: Tensor, position_NT: Tensor, memory: BatchRecord, past: KeyValues | None = None
    ) -> LayerOutput:
        """Computes the next states of T positions, which attend to each other causally and to all of the ``past``."""
        # padding is at the end, after every word, so the causal mask hides it
        to_self, key_values = self.self_attention.attend_to_self(
            self.self_attention_residual.read(x_NTD), position_NT, None, past
        )
        # attention to the words so far, then to the source, then each position separately
        x_NTD = self.self_attention_residual.add(x_NTD, to_self.context_NTQ)
        attended: MultiHeadOutput = self.attention(self.attention_residual.read(x_NTD), position_NT, memory)
        x_NTD = self.attention_residual.add(x_NTD, attended.context_NTQ)
        output_NTD = self.feed_forward(self.feed_forward_residual.read(x_NTD))
        return LayerOutput(self.feed_forward_residual.add(x_NTD, output_NTD), attended, key_values)


class TransformerDecoder(Decoder[TransformerMemory, TransformerState]):
    """Layers over the embeddings of the words so far. Heads are numbered layer by layer from the bottom."""

    def __init__(
        self, config: TransformerDecoderConfig, attention: AttentionConfig, embedding: Embedding, *, width: int,
        memory_size: int, readout_size: int, dropout: DropoutConfig,
    ) -> None:  # fmt: skip
        super().__init__()
        self.readout_size = readout_size
        self.embedding = embedding
        self.entrance = EmbeddingLayer(config, width=width, dropout=dropout)
        self.layers = nn.ModuleList(
            DecoderLayer(config, attention, dropout, memory_size=memory_size) for _ in range(config.layers)
        )
        self.norm = last_norm(config)
        self.readout = nn.Linear(config.size, readout_size) if readout_size != config.size else nn.Identity()
        self.head_names = config.head_names(attention.weights.heads)
        self.returned_heads: tuple[int, ...] = ()
        """Heads whose weights training returns."""

    def return_weights_of(self, heads: Sequence[int]) -> list[int]:
        """See ``Decoder.return_weights_of``."""
        self.returned_heads = tuple(dict.fromkeys((*self.returned_heads, *heads)))
        return [self.returned_heads.index(head) for head in heads]

    def at_update(self, update: int) -> None:
        """See ``Decoder.at_update``."""
        for module in self.modules():
            if isinstance(module, Attention):
                module.update = update

    def memory(self, encoded: Encoded) -> TransformerMemory:
        """See ``Decoder.memory``."""
        layers = tuple(layer.attention.memory(encoded.states_BSD, encoded.is_pad_BS) for layer in self.layers)  # type: ignore[operator,union-attr]
        states_BSD = encoded.states_BSD
        return TransformerMemory(layers, states_BSD.new_empty(states_BSD.shape[0], 0, dtype=compute_dtype(states_BSD)))

    def start(self, memory: TransformerMemory) -> TransformerState:
        """See ``Decoder.start``."""
        empty_B0 = memory.empty_B0
        layers = tuple(layer.self_attention.no_past(empty_B0.shape[0], empty_B0) for layer in self.layers)  # type: ignore[operator,union-attr]
        return TransformerState(layers, torch.zeros(empty_B0.shape[0], dtype=torch.int64, device=empty_B0.device))

    def step(
        self, token_N: Tensor, memory: TransformerMemory, state: TransformerState
    ) -> DecoderStep[TransformerState]:
        """See ``Decoder.step``."""
        readout_N1R, layers = self._run_layers(token_N[:, None], state.position_N[:, None], memory, state)
        weights = [layer.attended.weights for layer in layers]
        return DecoderStep(
            readout_N1R[:, 0],
            lambda: torch.cat([form() for form in weights], dim=1)[:, :, 0].float(),
            TransformerState(tuple(layer.key_values for layer in layers), state.position_N + 1),
        )

    def teacher_forced(self, input_BT: Tensor, memory: TransformerMemory) -> Decoded:
        """See ``Decoder.teacher_forced``."""
        # all positions at once: the mask, and not the order of steps, hides later words
        position_BT = torch.arange(input_BT.shape[1], device=input_BT.device).expand(input_BT.shape)
        readout_BTR, layers = self._run_layers(input_BT, position_BT, memory, None)
        return Decoded(
            readout_BTR,
            lambda: self._weights(layers, input_BT, memory),
            tuple(sampled for layer in layers for sampled in layer.attended.sampled),
        )

    def free_running(self, first_B: Tensor, memory: TransformerMemory, steps: int, next_token: NextToken) -> Decoded:
        """See ``Decoder.free_running``."""
        token_B, state = first_B, self.start(memory)
        readouts, weights, sampled = list[Tensor](), list[Tensor](), list[tuple[SampledPositions, ...]]()
        for time in range(steps):
            if time > 0:
                token_B = next_token(time - 1, readouts[-1][:, 0], lambda: weights[-1][:, :, 0])
            readout_B1R, layers = self._run_layers(token_B[:, None], state.position_N[:, None], memory, state)
            readouts.append(readout_B1R)
            weights.append(self._weights(layers, token_B[:, None], memory))
            sampled.append(tuple(each for layer in layers for each in layer.attended.sampled))
            state = TransformerState(tuple(layer.key_values for layer in layers), state.position_N + 1)
        joined = [SampledPositions.joined(of_steps) for of_steps in zip(*sampled, strict=True)]
        return Decoded(
            torch.cat(readouts, dim=1),
            lambda: torch.cat(weights, dim=2),
            tuple(positions for positions in joined if positions is not None),
        )

    def _run_layers(
        self, token_NT: Tensor, position_NT: Tensor, memory: TransformerMemory, state: TransformerState | None
    ) -> tuple[Tensor, list[LayerOutput]]:
        """Computes the readouts of T positions, (N, T, R), and the result of each layer."""
        x_NTD, outputs = self.entrance(self.embedding(token_NT), position_NT), list[LayerOutput]()
        for number, (layer, source) in enumerate(zip(self.layers, memory.layers, strict=True)):
            past = None if state is None else state.layers[number]
            outputs.append(recomputed(layer)(x_NTD, position_NT, source, past))
            x_NTD = outputs[-1].x_NTD
        return self.readout(self.norm(x_NTD)), outputs

    def _weights(self, layers: Sequence[LayerOutput], token_BT: Tensor, memory: TransformerMemory) -> Tensor:
        """Computes the weights of all heads, (B, H, T, S); in training only those of ``returned_heads``."""
        if not self.training:
            return torch.cat([layer.attended.weights() for layer in layers], dim=1).float()
        # heads are numbered layer by layer, so a head's number gives its layer
        each = len(self.head_names) // len(self.layers)
        if self.returned_heads:
            heads = [layers[head // each].attended.weights()[:, head % each] for head in self.returned_heads]
            return torch.stack(heads, dim=1).float()
        return memory.empty_B0.new_empty(*token_BT.shape[:1], 0, token_BT.shape[1], 0)
