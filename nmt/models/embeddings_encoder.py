"""The encoder of word embeddings, for attention without an encoder that reads the sentence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nmt.models.config import EmbeddingsEncoderConfig
from nmt.models.seq2seq import Encoded, Encoder, mean_state
from nmt.nn.config import DropoutConfig
from nmt.nn.dropout import Dropout
from nmt.nn.embedding import Embedding
from nmt.nn.positions import absolute_positions

MAX_POSITIONS = 512
"""Number of learned positions."""


class EmbeddingsEncoder(Encoder):
    """A state is sqrt(E) times the embedding of its word, plus the vector of its position; the vector of the sentence
    is the mean of the states.

    The factor gives entries of a new ``Embedding`` variance 1 (Vaswani et al. 2017, section 3.4).
    """

    def __init__(
        self, config: EmbeddingsEncoderConfig, embedding: Embedding, *, width: int, dropout: DropoutConfig
    ) -> None:
        super().__init__()
        self.size = width
        self.embedding = embedding
        self.positions = absolute_positions(config.positions, MAX_POSITIONS, width)
        self.embedding_dropout = Dropout(dropout.embedding, variational=dropout.variational)

    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        """See ``Encoder.forward``."""
        position_1S = torch.arange(is_pad_BS.shape[1], device=is_pad_BS.device)[None]
        states_BSE = self.embedding_dropout(self.positions(embedded_BSE * math.sqrt(self.size), position_1S))
        return Encoded(states_BSE, mean_state(states_BSE, is_pad_BS), is_pad_BS)
