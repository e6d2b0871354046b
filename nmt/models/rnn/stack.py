"""The recurrent layers that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nmt.models.rnn.config import RNNDecoderConfig, RNNEncoderConfig
from nmt.nn.recurrent import RecurrentStack


def recurrent_stack(
    config: RNNEncoderConfig | RNNDecoderConfig, *, input_size: int, transitions: int, layers: int = 1,
    residual: bool = False, shared_size: int = 0,
) -> RecurrentStack:  # fmt: skip
    """Builds layers with the cell, the size and the normalisation of the configuration."""
    kind: Callable[..., RecurrentStack] = RecurrentStack
    if config.layer_norm or transitions:
        from nmt.nn.deep_recurrent import DeepStack

        kind = partial(DeepStack, layer_norm=config.layer_norm, transitions=transitions)
    sizes = {"input_size": input_size, "size": config.size, "layers": layers, "shared_size": shared_size}
    return kind(config.cell, **sizes, residual=residual)
