"""The Transformer out of torch's own layers and plain formulas, over the weights of ours.

The weights are lent, not copied, so that autograd through torch's layers ends at our parameters. Ours have no biases in
the projections of attention: torch's get zeros.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from nmt.attention.multihead import MultiHead
from nmt.models.transformer.block import EmbeddingLayer
from nmt.models.transformer.config import TransformerConfig
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import TransformerEncoder


def sinusoid(position: int, size: int) -> list[float]:
    """PE(pos, 2i) = sin(pos / 10000^(2i / size)), PE(pos, 2i + 1) the cosine (Vaswani et al. 2017, section 3.5)."""
    found = []
    for place in range(size):
        angle = position / 10_000 ** ((place - place % 2) / size)
        found.append(math.cos(angle) if place % 2 else math.sin(angle))
    return found


def turned(x_A: Sequence[float], position: int) -> list[float]:
    """Each pair of entries as a complex number, times e^(i position theta) (Su et al. 2021, equations 12 to 15)."""
    found: list[float] = []
    for pair in range(len(x_A) // 2):
        theta = 10_000 ** (-2 * pair / len(x_A))
        product = complex(x_A[2 * pair], x_A[2 * pair + 1]) * cmath.exp(1j * position * theta)
        found += [product.real, product.imag]
    return found


def entered(config: TransformerConfig, entrance: EmbeddingLayer, embedded_BTE: Tensor) -> Tensor:
    """What the bottom layer reads."""
    rows = []
    for embedded_TE in embedded_BTE:
        states = []
        for position, embedded_E in enumerate(embedded_TE):
            state_D = math.sqrt(len(embedded_E)) * embedded_E
            if len(embedded_E) != config.size:
                assert entrance.widen is not None
                state_D = entrance.widen.weight @ state_D + entrance.widen.bias
            if config.positions == "sinusoidal":
                state_D = state_D + state_D.new_tensor(sinusoid(position, config.size))
            elif config.positions == "learned":
                state_D = state_D + dict(entrance.named_parameters())["positions.table_PD"][position]
            states.append(state_D)
        rows.append(torch.stack(states))
    return torch.stack(rows)


def encode(config: TransformerConfig, encoder: TransformerEncoder, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Tensor:
    """The states of torch's encoder."""
    stack = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**_layer(config)), config.layers, norm=_last_norm(config), enable_nested_tensor=False
    )
    lent: dict[str, Tensor] = _of("norm", encoder.norm)
    for number, layer in enumerate(encoder.layers):
        blocks: dict[str, Any] = dict(layer.named_children())
        lent |= {
            f"layers.{number}.{name}": weight
            for name, weight in {
                **_attention("self_attn", blocks["attention"]),
                **_of("norm1", blocks["attention_residual"].norm),
                **_feed_forward(blocks["feed_forward"]),
                **_of("norm2", blocks["feed_forward_residual"].norm),
            }.items()
        }
    entered_BSD = entered(config, encoder.entrance, embedded_BSE)
    return _call(stack, lent, entered_BSD, src_key_padding_mask=is_pad_BS)


class Decoded(NamedTuple):
    """The results of torch's decoder."""

    states_BTD: Tensor
    weights_BHTS: Tensor
    """Weights of attention to the source: all heads of the bottom layer, then those of the next."""


def decode(
    config: TransformerConfig, decoder: TransformerDecoder, input_BT: Tensor, memory_BSD: Tensor, is_pad_BS: Tensor
) -> Decoded:
    """The states and weights of torch's decoder."""
    stack = nn.TransformerDecoder(nn.TransformerDecoderLayer(**_layer(config)), config.layers, norm=_last_norm(config))
    lent: dict[str, Tensor] = _of("norm", decoder.norm)
    weights: list[Tensor] = []
    for number, layer in enumerate(decoder.layers):
        blocks: dict[str, Any] = dict(layer.named_children())
        lent |= {
            f"layers.{number}.{name}": weight
            for name, weight in {
                **_attention("self_attn", blocks["self_attention"]),
                **_of("norm1", blocks["self_attention_residual"].norm),
                **_attention("multihead_attn", blocks["attention"]),
                **_of("norm2", blocks["attention_residual"].norm),
                **_feed_forward(blocks["feed_forward"]),
                **_of("norm3", blocks["feed_forward_residual"].norm),
            }.items()
        }
        _listen(stack.get_submodule(f"layers.{number}.multihead_attn"), weights)
    # looking up padding trains nothing
    embedded_BTE = F.embedding(input_BT, decoder.embedding.weight_VD, padding_idx=0)
    entered_BTD = entered(config, decoder.entrance, embedded_BTE)
    steps = input_BT.shape[1]
    is_ahead_TT = torch.ones(steps, steps, dtype=torch.bool).triu(1)
    states_BTD = _call(stack, lent, entered_BTD, memory_BSD, tgt_mask=is_ahead_TT, memory_key_padding_mask=is_pad_BS)
    return Decoded(states_BTD, torch.cat(weights, dim=1))


def _layer(config: TransformerConfig) -> dict[str, Any]:
    return {
        "d_model": config.size,
        "nhead": config.heads,
        "dim_feedforward": config.feed_forward,
        "dropout": 0.0,
        "activation": config.activation,
        "norm_first": config.norm == "pre",
        "batch_first": True,
        "dtype": torch.float64,
    }


def _last_norm(config: TransformerConfig) -> nn.LayerNorm | None:
    return nn.LayerNorm(config.size, dtype=torch.float64) if config.norm == "pre" else None


def _of(name: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{name}.{each}": parameter for each, parameter in module.named_parameters()}


def _attention(name: str, attention: MultiHead) -> dict[str, Tensor]:
    assert attention.key_weight_QK is not None
    parts = [attention.query_weight_QQ, attention.key_weight_QK, attention.value_weight_QK]
    stacked = torch.cat(parts)
    return {
        f"{name}.in_proj_weight": stacked,
        f"{name}.in_proj_bias": stacked.new_zeros(len(stacked)),
        f"{name}.out_proj.weight": attention.out_weight_QQ,
        f"{name}.out_proj.bias": stacked.new_zeros(len(attention.out_weight_QQ)),
    }


def _feed_forward(block: nn.Module) -> dict[str, Tensor]:
    return {**_of("linear1", block.get_submodule("rise")), **_of("linear2", block.get_submodule("fall"))}


def _listen(attention: nn.Module, weights: list[Tensor]) -> None:
    """Has torch's attention form its weights, each head's, and notes them."""

    def ask(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return given, {**named, "need_weights": True, "average_attn_weights": False}

    attention.register_forward_pre_hook(ask, with_kwargs=True)
    attention.register_forward_hook(lambda module, given, found: weights.append(found[1]))


def _call(stack: nn.Module, lent: dict[str, Tensor], *given: Tensor, **named: Tensor) -> Tensor:
    assert lent.keys() == dict(stack.named_parameters()).keys()
    states_BTD: Tensor = functional_call(stack, lent, given, named)
    return states_BTD
