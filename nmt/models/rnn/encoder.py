"""The recurrent encoder: stacked, bidirectional (Schuster & Paliwal 1997; Bahdanau et al. 2015, section 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.layers.config import DropoutConfig
from nmt.layers.dropout import Dropout
from nmt.layers.embedding import Embedding
from nmt.layers.recurrent import RecurrentStack
from nmt.models.rnn.config import RNNEncoderConfig
from nmt.models.seq2seq import Encoded, Encoder


class RNNEncoder(Encoder):
    """Layers of a forward and a backward recurrence; a layer reads both directions of the one below.

    A state is [forward; backward]. The sentence's one vector is [forward at the last token; backward at the first].
    """

    def __init__(self, config: RNNEncoderConfig, embedding: Embedding, *, width: int, dropout: DropoutConfig) -> None:
        super().__init__()
        directions = 2 if config.bidirectional else 1
        self.size = config.size * directions
        self.embedding = embedding
        self.embedding_dropout = Dropout(dropout.embedding, variational=dropout.variational)
        self.dropout = Dropout(dropout.layers, variational=dropout.variational)

        def stacks() -> nn.ModuleList:
            return nn.ModuleList(
                RecurrentStack(config.cell, input_size=self.size if layer else width, size=config.size, layers=1)
                for layer in range(config.layers)
            )

        self.forwards = stacks()
        self.backwards = stacks() if config.bidirectional else None

    def embed(self, source_BS: Tensor) -> Tensor:
        """See ``Encoder.embed``."""
        embedded_BSE: Tensor = self.embedding(source_BS)
        return embedded_BSE

    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        """See ``Encoder.forward``."""
        length_B = (~is_pad_BS).sum(dim=1)
        reversed_BS = _reversal(length_B, is_pad_BS.shape[1])
        row_B1 = torch.arange(len(is_pad_BS), device=is_pad_BS.device)[:, None]
        states_BSD = self.embedding_dropout(embedded_BSE)
        for layer, forwards in enumerate(self.forwards):
            if layer > 0:
                states_BSD = self.dropout(states_BSD)
            ahead_BSD = forwards(states_BSD, None, self.dropout)
            final_B1D = ahead_BSD[row_B1, length_B[:, None] - 1]
            if self.backwards is None:
                states_BSD = ahead_BSD
                continue
            # Each sentence is reversed by itself, so that its padding comes last in this direction too.
            back_BSD = self.backwards[layer](states_BSD[row_B1, reversed_BS], None, self.dropout)[row_B1, reversed_BS]
            final_B1D = torch.cat([final_B1D, back_BSD[:, :1]], dim=-1)
            states_BSD = torch.cat([ahead_BSD, back_BSD], dim=-1)
        return Encoded(self.dropout(states_BSD), final_B1D[:, 0], is_pad_BS)


def _reversal(length_B: Tensor, size: int) -> Tensor:
    """For each position of a sentence the one that mirrors it, (B, S); padding stays where it is. Its own inverse."""
    position_S = torch.arange(size, device=length_B.device)
    mirrored_BS = length_B[:, None] - 1 - position_S
    return torch.where(mirrored_BS >= 0, mirrored_BS, position_S)
