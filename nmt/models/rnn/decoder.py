"""The recurrent decoder, with attention wired as Bahdanau's or as Luong's, or without.

Shapes as in ``seq2seq``; E width of an embedding, D width of a state, G of the cell's gates, K of a context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attended, Attention, AttentionMemory
from nmt.attention.config import AttentionConfig
from nmt.attention.reinforce import Choice
from nmt.core.record import BatchRecord
from nmt.models.rnn.config import ContextConfig, RNNDecoderConfig
from nmt.models.rnn.context import handover, summary
from nmt.models.seq2seq import Branches, Decoded, Decoder, DecoderStep, Encoded
from nmt.nn.config import DropoutConfig
from nmt.nn.deferred import DeferredLinear
from nmt.nn.dropout import Dropout
from nmt.nn.embedding import Embedding
from nmt.nn.precision import compute_dtype
from nmt.nn.recurrent import Known, RecurrentStack, StackState


@dataclass(frozen=True)
class RNNMemory(BatchRecord):
    """A batch of source sentences as the decoder sees them."""

    attention: AttentionMemory | None
    """None without attention."""
    summary_BD: Tensor
    """The sentence's one vector."""
    is_pad_BS: Tensor


@dataclass(frozen=True)
class RNNState(BatchRecord):
    """What goes from step to step."""

    stack: StackState
    feed_NR: Tensor | None
    """The last readout; None without input feeding."""
    position_N: Tensor
    """How many steps are done."""


class RNNDecoder(Decoder[RNNMemory, RNNState]):
    """y' = embedding of the last word, s = what the top layer gives out, c = context, r = readout.

    ``query: previous`` (Bahdanau et al. 2015, appendix A.1.2):   c_t = attend(s_{t-1}); s_t = cell([y'; c_t], s_{t-1})
    ``query: current``  (Luong et al. 2015, figure 2):            s_t = cell(y', s_{t-1}); c_t = attend(s_t)
    both:                                                         r_t = tanh(W [s_t; c_t] + b)
    ``input_feeding``   (Luong et al. 2015, section 3.3):         r_{t-1} is part of the cell's input as well.
    without attention:                                            s_t = cell([y'; f_t], s_{t-1}); r_t = tanh(W s_t + b)

    With attention the first state of each layer is tanh(W f + b), f the encoder's one vector of the sentence; without,
    f comes in as ``context`` says. Bahdanau's own readout is a maxout layer over the previous state, the word and the
    context; here it is Luong's in both wirings, over the current state, and ``readout_embedding`` adds the word.
    """

    def __init__(
        self,
        config: RNNDecoderConfig,
        attention: AttentionConfig,
        context: ContextConfig,
        embedding: Embedding,
        *,
        width: int,
        memory_size: int,
        readout_size: int,
        dropout: DropoutConfig,
    ) -> None:
        super().__init__()
        self.readout_size = readout_size
        self.input_feeding = config.input_feeding
        self.readout_embedding = config.readout_embedding
        self.context = context
        self.embedding = embedding
        self.embedding_dropout = Dropout(dropout.embedding, variational=dropout.variational)
        self.dropout = Dropout(dropout.layers, variational=dropout.variational)
        self.attention: Attention | None = None
        if not attention.is_none:
            self.attention = Attention(
                attention,
                query_size=config.size,
                key_size=memory_size,
                value_size=memory_size,
                dropout=dropout.attention,
            )
        self.head_names = config.head_names(0 if self.attention is None else attention.weights.heads)
        context_size = 0 if self.attention is None else memory_size
        self.attends_first = self.attention is not None and config.query == "previous"
        self.handover = handover(context, summary_size=memory_size, size=config.size, layers=config.layers)
        self.fed_size = context_size * self.attends_first + readout_size * self.input_feeding
        self.stack = RecurrentStack(
            config.cell,
            input_size=width + self.handover.input_size + self.fed_size,
            size=config.size,
            layers=config.layers,
            residual=config.residual,
        )
        self.readout = nn.Linear(config.size + context_size + width * self.readout_embedding, readout_size)
        nn.init.xavier_uniform_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)

    def at_update(self, update: int) -> None:
        """See ``Decoder.at_update``."""
        if self.attention is not None:
            self.attention.update = update

    def memory(self, encoded: Encoded) -> RNNMemory:
        """See ``Decoder.memory``."""
        states_BSD, is_pad_BS = encoded.states_BSD, encoded.is_pad_BS
        attention = None if self.attention is None else self.attention.memory(states_BSD, states_BSD, is_pad_BS)
        return RNNMemory(attention, summary(self.context, states_BSD, encoded.final_BD, is_pad_BS), is_pad_BS)

    def start(self, memory: RNNMemory) -> RNNState:
        """See ``Decoder.start``."""
        stack = self.stack.start(self.handover.start(memory.summary_BD))
        feed_BR = stack.top_BD.new_zeros(stack.top_BD.shape[0], self.readout_size) if self.input_feeding else None
        position_B = torch.zeros(stack.top_BD.shape[0], dtype=torch.int64, device=stack.top_BD.device)
        return RNNState(stack, feed_BR, position_B)

    def step(self, token_N: Tensor, memory: RNNMemory, state: RNNState) -> DecoderStep[RNNState]:
        """See ``Decoder.step``."""
        loop = _Loop(self, memory, rows=token_N.shape[0], steps=1, reads=True)
        embedded_N1E = self.embedding_dropout(self.embedding(token_N[:, None]))
        (known,) = loop.known(embedded_N1E, state.position_N[:, None])
        step = loop.step(0, embedded_N1E[:, 0], known, state)
        return DecoderStep(loop.readout(0, step, embedded_N1E[:, 0]), lambda: step.weights_NHTS[:, :, 0], step.state)

    def forced(self, input_BT: Tensor, memory: RNNMemory) -> Decoded:
        """See ``Decoder.forced``. What no step's outcome enters is done for all steps at once."""
        embedded_BTE = self.embedding_dropout(self.embedding(input_BT))
        state = self.start(memory)
        rows, steps = input_BT.shape
        position_BT = torch.arange(steps, device=input_BT.device).expand(rows, steps)
        if not self.fed_size:
            top_BTD = self.stack(self.inputs(embedded_BTE, position_BT, memory), state.stack, self.dropout)
            return self._decoded(embedded_BTE, top_BTD, self._attend(top_BTD, position_BT, memory), memory)
        loop = _Loop(self, memory, rows=rows, steps=steps, reads=self.input_feeding, in_turn=True)
        known = loop.known(embedded_BTE, position_BT)
        trail: list[_Stepped] = []
        for time in range(steps):
            trail.append(loop.step(time, embedded_BTE[:, time], known[time], state))
            state = trail[-1].state
        if self.input_feeding:
            return _joined(trail, [each.state.feed_NR for each in trail])
        attended = Attended(
            torch.stack([each.context_NK for each in trail], dim=1),
            torch.cat([each.weights_NHTS for each in trail], dim=2),
            Choice.joined([each.choice for each in trail]),
        )
        top_BTD = torch.stack([each.state.stack.top_BD for each in trail], dim=1)
        return self._decoded(embedded_BTE, top_BTD, attended, memory)

    def unrolled(
        self, first_B: Tensor, memory: RNNMemory, steps: int, following: Callable[[int, Tensor], Tensor]
    ) -> Decoded:
        """See ``Decoder.unrolled``."""
        assert not self.enumerates, "what is summed over all positions is decoded at once"
        rows, token_B, state = len(first_B), first_B, self.start(memory)
        table_VE = self.embedding.weight_VD
        factors_BTE = self.embedding_dropout.factors((rows, steps, table_VE.shape[1]), table_VE.dtype, first_B.device)
        loop = _Loop(self, memory, rows=rows, steps=steps, reads=True)
        trail: list[_Stepped] = []
        readouts: list[Tensor | None] = []
        for time in range(steps):
            embedded_B1E = self.embedding(token_B[:, None])
            if factors_BTE is not None:
                embedded_B1E = embedded_B1E * factors_BTE[:, time : time + 1]
            (known,) = loop.known(embedded_B1E, state.position_N[:, None])
            step = loop.step(time, embedded_B1E[:, 0], known, state)
            readout_BR = loop.readout(time, step, embedded_B1E[:, 0])
            trail.append(step)
            readouts.append(readout_BR)
            token_B, state = following(time, readout_BR), step.state
        return _joined(trail, readouts)

    @property
    def enumerates(self) -> bool:
        """Whether this pass is to sum the likelihood over every source position."""
        return self.training and self.attention is not None and self.attention.weighting.enumerates

    def inputs(self, embedded_BTE: Tensor, position_BT: Tensor, memory: RNNMemory) -> Tensor:
        """What is known of the cell's input before the step; also of N rows, a sentence's side by side."""
        beams = embedded_BTE.shape[0] // memory.summary_BD.shape[0]
        summary_BD = memory.summary_BD if beams == 1 else memory.summary_BD.repeat_interleave(beams, dim=0)
        added_BTD = self.handover.inputs(summary_BD, position_BT)
        return embedded_BTE if added_BTD is None else torch.cat([embedded_BTE.to(added_BTD.dtype), added_BTD], dim=-1)

    def _attend(self, top_BTD: Tensor, position_BT: Tensor, memory: RNNMemory) -> Attended:
        if self.attention is None or memory.attention is None:
            return _no_attention(top_BTD, memory)
        attended: Attended = self.attention(top_BTD, position_BT, memory.attention)
        return attended

    def _decoded(self, embedded_BTE: Tensor, top_BTD: Tensor, attended: Attended, memory: RNNMemory) -> Decoded:
        """The readouts of all steps at once."""
        parts = [top_BTD, attended.context_BTV] + [embedded_BTE.to(top_BTD.dtype)] * self.readout_embedding
        readout_BTR = self.dropout(self.readout(torch.cat(parts, dim=-1)).tanh())
        branches = self._branches(embedded_BTE, top_BTD, attended, memory) if self.enumerates else None
        return Decoded(readout_BTR, attended.weights_BHTS, _choices(attended.choice), branches)

    def _branches(self, embedded_BTE: Tensor, top_BTD: Tensor, attended: Attended, memory: RNNMemory) -> Branches:
        """The readout with each source position's value for the context: W [s; v] = W_s s + W_v v."""
        assert memory.attention is not None
        values_BSV = memory.attention.values_BSV
        own, looked_at = top_BTD.shape[-1], top_BTD.shape[-1] + values_BSV.shape[-1]
        weight_RI = self.readout.weight
        own_BTR = F.linear(top_BTD, weight_RI[:, :own], self.readout.bias)
        if self.readout_embedding:
            own_BTR = own_BTR + F.linear(embedded_BTE, weight_RI[:, looked_at:])
        value_BSR = F.linear(values_BSV, weight_RI[:, own:looked_at])
        readout_BTSR = (own_BTR[:, :, None] + value_BSR[:, None]).tanh()
        dropped_BTSR = self.dropout(readout_BTSR.flatten(1, 2)).view_as(readout_BTSR)
        weights_BTS = attended.weights_BHTS[:, 0]
        # the logarithm of 0 would have no gradient that is a number
        log_weight_BTS = weights_BTS.clamp(min=torch.finfo(weights_BTS.dtype).tiny).log()
        return Branches(dropped_BTSR, log_weight_BTS.masked_fill(memory.is_pad_BS[:, None], -torch.inf))


def _no_attention(top_NTD: Tensor, memory: RNNMemory) -> Attended:
    """A context of width 0 and no heads."""
    rows, time, _ = top_NTD.shape
    no_weights = torch.empty(rows, 0, time, memory.is_pad_BS.shape[1], device=top_NTD.device)
    return Attended(top_NTD.new_empty(rows, time, 0), no_weights, None)


class _Stepped(NamedTuple):
    """What one step leaves behind."""

    state: RNNState
    context_NK: Tensor
    weights_NHTS: Tensor
    choice: Choice | None


def _joined(trail: Sequence[_Stepped], readouts: Sequence[Tensor | None]) -> Decoded:
    return Decoded(
        torch.stack([each for each in readouts if each is not None], dim=1),
        torch.cat([each.weights_NHTS for each in trail], dim=2),
        _choices(Choice.joined([each.choice for each in trail])),
    )


def _choices(choice: Choice | None) -> tuple[Choice, ...]:
    return () if choice is None else (choice,)


class _Loop:
    """Steps over one batch, with what they share: weights cast once, dropout of all steps drawn before the first."""

    def __init__(
        self, decoder: RNNDecoder, memory: RNNMemory, *, rows: int, steps: int, reads: bool, in_turn: bool = False
    ) -> None:
        """``reads`` says whether steps have readouts; ``in_turn`` is the stepper's."""
        self._decoder = decoder
        self._memory = memory
        self._attend = None
        if decoder.attention is not None and memory.attention is not None:
            self._attend = decoder.attention.loop(memory.attention)
        self._stepper = decoder.stack.stepper(fed=decoder.fed_size, in_turn=in_turn)
        self._linear = DeferredLinear(decoder.readout.weight)

        dtype, device = compute_dtype(memory.summary_BD), memory.is_pad_BS.device

        def factors(width: int) -> Sequence[Tensor | None]:
            factors_BTD = decoder.dropout.factors((rows, steps, width), dtype, device)
            return [None] * steps if factors_BTD is None else factors_BTD.unbind(dim=1)

        self._between = [factors(decoder.stack.size) for _ in range(decoder.stack.layers - 1)]
        self._readout_factors = factors(decoder.readout_size) if reads else ()

    def known(self, embedded_NTE: Tensor, position_NT: Tensor) -> Sequence[Known]:
        """The inputs known before the loop, for each of T steps."""
        return self._stepper.known(self._decoder.inputs(embedded_NTE, position_NT, self._memory))

    def step(self, time: int, embedded_NE: Tensor, known: Known, state: RNNState) -> _Stepped:
        """One step of the cell and of attention; with input feeding, of the readout too."""
        decoder, stack = self._decoder, state.stack
        factors = [each[time] for each in self._between]
        fed = [] if state.feed_NR is None else [state.feed_NR]
        if decoder.attends_first:
            attended = self._attended(stack, state.position_N)
            fed = [attended.context_BTV[:, 0], *fed]
        stack = self._stepper(known, fed, stack, factors)
        if not decoder.attends_first:
            attended = self._attended(stack, state.position_N)
        context_NK = attended.context_BTV[:, 0]
        feed_NR = self._read(time, stack.top_BD, context_NK, embedded_NE) if decoder.input_feeding else None
        return _Stepped(
            RNNState(stack, feed_NR, state.position_N + 1), context_NK, attended.weights_BHTS, attended.choice
        )

    def readout(self, time: int, step: _Stepped, embedded_NE: Tensor) -> Tensor:
        """The readout of a step, which with input feeding is there already."""
        if step.state.feed_NR is not None:
            return step.state.feed_NR
        return self._read(time, step.state.stack.top_BD, step.context_NK, embedded_NE)

    def _attended(self, stack: StackState, position_N: Tensor) -> Attended:
        query_N1D = stack.top_BD[:, None]
        if self._attend is None:
            return _no_attention(query_N1D, self._memory)
        return self._attend(query_N1D, position_N[:, None])

    def _read(self, time: int, top_ND: Tensor, context_NK: Tensor, embedded_NE: Tensor) -> Tensor:
        decoder = self._decoder
        parts = [top_ND, context_NK]
        if decoder.readout_embedding:
            parts.append(embedded_NE.to(top_ND.dtype))
        readout_NR = self._linear(torch.cat(parts, dim=1), decoder.readout.bias).tanh()
        factor_NR = self._readout_factors[time]
        return readout_NR if factor_NR is None else readout_NR * factor_NR
