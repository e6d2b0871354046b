"""The recurrent layers that a configuration asks for."""

from __future__ import annotations

from nmt.models.rnn.config import RNNDecoderConfig, RNNEncoderConfig
from nmt.nn.recurrent import RecurrentStack


def recurrent_stack(
    config: RNNEncoderConfig | RNNDecoderConfig,
    *,
    input_size: int,
    layers: int = 1,
    residual: bool = False,
    shared_size: int = 0,
    transitions: int,
) -> RecurrentStack:
    """Builds layers with the cell, the size and the normalisation of the configuration."""
    if not (config.layer_norm or transitions):
        return RecurrentStack(
            config.cell,
            input_size=input_size,
            size=config.size,
            layers=layers,
            residual=residual,
            shared_size=shared_size,
        )
    from nmt.nn.deep_recurrent import DeepStack

    return DeepStack(
        config.cell,
        input_size=input_size,
        size=config.size,
        layers=layers,
        residual=residual,
        shared_size=shared_size,
        layer_norm=config.layer_norm,
        transitions=transitions,
    )
