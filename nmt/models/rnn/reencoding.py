"""An encoder that reads the whole source again at every step of the decoder."""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.attention.attention import AttentionMemory, AttentionOutput, NoAttention
from nmt.models.rnn.config import RNNDecoderConfig
from nmt.models.rnn.stack import recurrent_stack
from nmt.nn.config import DropoutConfig
from nmt.nn.dropout import Dropout


class SourceReader(NoAttention):
    """A recurrence over the encoder's states x_1 ... x_S that starts from the decoder's state: in each layer h_0 =
    s_{t-1} (an LSTM's cell starts at 0), h_i = cell(x_i, h_{i-1}); c_t = h_S of the top layer, at the last word of the
    sentence.

    The entire input is encoded at every step, "conditioned on the hidden state of the output network", in place of
    attention with ``query: previous``. This takes T x S steps, and training keeps the results of all of them, unless
    ``training.recompute`` is set.
    """

    def __init__(self, config: RNNDecoderConfig, memory_size: int, *, dropout: DropoutConfig) -> None:
        super().__init__()
        self.context_size = config.size
        self.dropout = Dropout(dropout.layers, variational=dropout.variational)
        self.stack = recurrent_stack(
            config,
            input_size=memory_size,
            layers=config.layers,
            residual=config.residual,
            transitions=config.transitions,
        )

    def forward(
        self, query_NTQ: Tensor, position_NT: Tensor, memory: AttentionMemory, state: None = None
    ) -> AttentionOutput:
        """See ``Attention.forward``; T is 1. All rows, those of a beam too, are read at once."""
        rows, sentences = query_NTQ.shape[0], memory.is_pad_BS.shape[0]
        source = memory if rows == sentences else memory.repeat(rows // sentences)
        start = self.stack.start([query_NTQ[:, 0]] * self.stack.layers)
        states_NSD = self.stack(source.values_BSV, start, self.dropout)
        length_N = (~source.is_pad_BS).sum(dim=1)
        context_ND = states_NSD[torch.arange(rows, device=length_N.device), length_N - 1]
        return super().forward(query_NTQ, position_NT, memory)._replace(context_NTV=context_ND[:, None])
