"""The recurrent decoder with attention, wired as Bahdanau's or as Luong's.

Shapes as in ``seq2seq``; E width of an embedding, D width of a state, G of the cell's gates, K of a context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.attention.attention import Attention, AttentionMemory
from nmt.attention.config import AttentionConfig
from nmt.core.record import BatchRecord
from nmt.layers.config import DropoutConfig
from nmt.layers.deferred import DeferredLinear
from nmt.layers.dropout import Dropout
from nmt.layers.embedding import Embedding
from nmt.layers.recurrent import RecurrentStack, StackState
from nmt.models.rnn.config import RNNDecoderConfig
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded


@dataclass(frozen=True)
class RNNMemory(BatchRecord):
    """A batch of source sentences as the decoder sees them."""

    attention: AttentionMemory
    final_BD: Tensor


@dataclass(frozen=True)
class RNNState(BatchRecord):
    """What goes from step to step."""

    stack: StackState
    feed_NR: Tensor | None
    """The last readout; None without input feeding."""


class RNNDecoder(Decoder[RNNMemory, RNNState]):
    """y' = embedding of the last word, s = state of the top layer, c = context, r = readout.

    ``query: previous`` (Bahdanau et al. 2015, appendix A.1.2):   c_t = attend(s_{t-1}); s_t = cell([y'; c_t], s_{t-1})
    ``query: current``  (Luong et al. 2015, figure 2):            s_t = cell(y', s_{t-1}); c_t = attend(s_t)
    both:                                                         r_t = tanh(W [s_t; c_t] + b)
    ``input_feeding``   (Luong et al. 2015, section 3.3):         r_{t-1} is part of the cell's input as well.

    The first state of each layer is tanh(W f + b), f the encoder's one vector of the sentence. Bahdanau's own readout
    is a maxout layer over the previous state, the word and the context; here it is Luong's in both wirings, over the
    current state, and ``readout_embedding`` adds the word.
    """

    def __init__(
        self,
        config: RNNDecoderConfig,
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
        self.attends_first = config.query == "previous"
        self.input_feeding = config.input_feeding
        self.readout_embedding = config.readout_embedding
        self.embedding = embedding
        self.embedding_dropout = Dropout(dropout.embedding, variational=dropout.variational)
        self.dropout = Dropout(dropout.layers, variational=dropout.variational)
        self.fed_size = memory_size * self.attends_first + readout_size * self.input_feeding
        self.stack = RecurrentStack(
            config.cell, input_size=width + self.fed_size, size=config.size, layers=config.layers
        )
        self.attention = Attention(attention, query_size=config.size, key_size=memory_size)
        self.bridge = nn.ModuleList(nn.Linear(memory_size, config.size) for _ in range(config.layers))
        self.readout = nn.Linear(config.size + memory_size + width * self.readout_embedding, readout_size)
        for linear in (*self.bridge, self.readout):
            assert isinstance(linear, nn.Linear)
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def memory(self, encoded: Encoded) -> RNNMemory:
        """See ``Decoder.memory``."""
        return RNNMemory(self.attention.memory(encoded.states_BSD, encoded.is_pad_BS), encoded.final_BD)

    def start(self, memory: RNNMemory) -> RNNState:
        """See ``Decoder.start``."""
        stack = self.stack.start([linear(memory.final_BD).tanh() for linear in self.bridge])
        feed_BR = stack.top_BD.new_zeros(len(stack), self.readout_size) if self.input_feeding else None
        return RNNState(stack, feed_BR)

    def step(self, token_N: Tensor, memory: RNNMemory, state: RNNState) -> DecoderStep[RNNState]:
        """See ``Decoder.step``."""
        embedded_NTE = self.embedding_dropout(self.embedding(token_N[:, None]))
        loop = _Loop(self, memory, embedded_NTE)
        state, top_ND, context_NK, weights_NHS = loop.step(0, state)
        readout_NR = state.feed_NR
        if readout_NR is None:
            readout_NR = self._readout(embedded_NTE, top_ND[:, None], context_NK[:, None])[:, 0]
        return DecoderStep(readout_NR, weights_NHS, state)

    def forced(self, input_BT: Tensor, memory: RNNMemory) -> Decoded:
        """See ``Decoder.forced``. What no step's outcome enters is done for all steps at once."""
        embedded_BTE = self.embedding_dropout(self.embedding(input_BT))
        state = self.start(memory)
        if not self.fed_size:
            top_BTD = self.stack(embedded_BTE, state.stack, self.dropout)
            context_BTK, weights_BHTS = self.attention(top_BTD, memory.attention)
            return Decoded(self._readout(embedded_BTE, top_BTD, context_BTK), weights_BHTS)
        loop = _Loop(self, memory, embedded_BTE)
        tops, contexts, weights, readouts = [], [], [], []
        for time in range(input_BT.shape[1]):
            state, top_BD, context_BK, weights_BHS = loop.step(time, state)
            weights.append(weights_BHS)
            if state.feed_NR is not None:
                readouts.append(state.feed_NR)
            else:
                tops.append(top_BD)
                contexts.append(context_BK)
        weights_BHTS = torch.stack(weights, dim=2)
        if readouts:
            return Decoded(torch.stack(readouts, dim=1), weights_BHTS)
        readout_BTR = self._readout(embedded_BTE, torch.stack(tops, dim=1), torch.stack(contexts, dim=1))
        return Decoded(readout_BTR, weights_BHTS)

    def _readout(self, embedded_BTE: Tensor, top_BTD: Tensor, context_BTK: Tensor) -> Tensor:
        parts = [top_BTD, context_BTK] + [embedded_BTE.to(top_BTD.dtype)] * self.readout_embedding
        readout_BTR: Tensor = self.dropout(self.readout(torch.cat(parts, dim=-1)).tanh())
        return readout_BTR


class _Loop:
    """The steps over one batch, with what they share: weights cast once, word projections and dropout masks of all
    steps drawn and multiplied before the first."""

    def __init__(self, decoder: RNNDecoder, memory: RNNMemory, embedded_BTE: Tensor) -> None:
        self._decoder = decoder
        self._attend = decoder.attention.loop(memory.attention)
        self._stepper = decoder.stack.stepper(fed=decoder.fed_size)
        self._embedded_BTE = embedded_BTE
        self._known = self._stepper.known(embedded_BTE).unbind(dim=1)
        self._linear = DeferredLinear(decoder.readout.weight)
        batch, time, _ = embedded_BTE.shape

        def masks(width: int) -> Sequence[Tensor | None]:
            mask_BTD = decoder.dropout.mask(batch, time, width, embedded_BTE.device)
            return [None] * time if mask_BTD is None else mask_BTD.unbind(dim=1)

        self._between = [masks(decoder.stack.size) for _ in range(decoder.stack.layers - 1)]
        self._readout_masks = masks(decoder.readout_size) if decoder.input_feeding else ()

    def step(self, time: int, state: RNNState) -> tuple[RNNState, Tensor, Tensor, Tensor]:
        """The new state, its top layer, the context (N, K) and the weights (N, H, S) of one step."""
        decoder, stack = self._decoder, state.stack
        masks = [each[time] for each in self._between]
        fed = [] if state.feed_NR is None else [state.feed_NR]
        if decoder.attends_first:
            context_N1K, weights_NH1S = self._attend(stack.top_BD[:, None])
            fed = [context_N1K[:, 0], *fed]
        stack = self._stepper(
            self._known[time], torch.cat(fed, dim=1) if fed else None, stack, masks, decoder.dropout.scale
        )
        if not decoder.attends_first:
            context_N1K, weights_NH1S = self._attend(stack.top_BD[:, None])
        context_NK = context_N1K[:, 0]
        feed_NR = self._readout(stack.top_BD, context_NK, time) if decoder.input_feeding else None
        return RNNState(stack, feed_NR), stack.top_BD, context_NK, weights_NH1S[:, :, 0]

    def _readout(self, top_ND: Tensor, context_NK: Tensor, time: int) -> Tensor:
        decoder = self._decoder
        parts = [top_ND, context_NK]
        if decoder.readout_embedding:
            parts.append(self._embedded_BTE[:, time].to(top_ND.dtype))
        product_NR = self._linear(torch.cat(parts, dim=1))
        readout_NR = (product_NR + decoder.readout.bias.to(product_NR.dtype)).tanh()
        mask = self._readout_masks[time]
        return readout_NR if mask is None else decoder.dropout.apply_mask(readout_NR, mask)
