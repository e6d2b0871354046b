"""The recurrent encoder: stacked, bidirectional (Schuster & Paliwal 1997; Bahdanau et al. 2015, section 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.models.rnn.config import RNNEncoderConfig
from nmt.models.rnn.stack import recurrent_stack
from nmt.models.seq2seq import Encoded, Encoder
from nmt.nn.config import DropoutConfig
from nmt.nn.dropout import Dropout
from nmt.nn.embedding import Embedding


class RNNEncoder(Encoder):
    """Layers of a forward and a backward recurrence; a layer reads both directions of the one below.

    A state is [forward; backward]. The sentence's one vector is [forward at the last token; backward at the first] of
    the top layer. With ``residual`` the output of each layer above the bottom one is its state plus its input (Wu et
    al. 2016).
    """

    def __init__(self, config: RNNEncoderConfig, embedding: Embedding, *, width: int, dropout: DropoutConfig) -> None:
        super().__init__()
        self.size = config.size * (2 if config.bidirectional else 1)
        self.residual = config.residual
        self.embedding = embedding
        self.embedding_dropout = Dropout(dropout.embedding, variational=dropout.variational)
        self.dropout = Dropout(dropout.layers, variational=dropout.variational)

        def stacks() -> nn.ModuleList:
            return nn.ModuleList(
                recurrent_stack(config, input_size=self.size if layer else width, transitions=config.transitions)
                for layer in range(config.layers)
            )

        self.forwards = stacks()
        self.backwards = stacks() if config.bidirectional else None

    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        """See ``Encoder.forward``."""
        length_B = (~is_pad_BS).sum(dim=1)
        reversed_BS = _reversal(length_B, is_pad_BS.shape[1])
        row_B1 = torch.arange(is_pad_BS.shape[0], device=is_pad_BS.device)[:, None]
        states_BSD = self.embedding_dropout(embedded_BSE)
        outputs: list[Tensor] = []  # one for each direction
        for layer, forwards in enumerate(self.forwards):
            below_BSD = states_BSD
            if layer > 0:
                states_BSD = self.dropout(states_BSD)
            outputs = [forwards(states_BSD, None, self.dropout)]
            if self.backwards is not None:
                # each sentence is reversed separately, so that its padding comes last in this direction too
                back_BSD = self.backwards[layer](states_BSD[row_B1, reversed_BS], None, self.dropout)
                outputs.append(back_BSD[row_B1, reversed_BS])
            if layer > 0 and self.residual:
                below = below_BSD.chunk(len(outputs), dim=-1)
                outputs = [state_BSD + input_BSD for state_BSD, input_BSD in zip(outputs, below, strict=True)]
            states_BSD = torch.cat(outputs, dim=-1)
        # the states at which each direction has read the whole sentence
        ends = [outputs[0][row_B1, length_B[:, None] - 1][:, 0], *(states_BSD[:, 0] for states_BSD in outputs[1:])]
        return Encoded(self.dropout(states_BSD), torch.cat(ends, dim=-1), is_pad_BS)


def _reversal(length_B: Tensor, size: int) -> Tensor:
    """Computes the mirrored position of each position of a sentence, (B, S). Padding keeps its position, and the
    mapping is its own inverse."""
    position_S = torch.arange(size, device=length_B.device)
    mirrored_BS = length_B[:, None] - 1 - position_S
    return torch.where(mirrored_BS >= 0, mirrored_BS, position_S)
