"""The recurrent decoder, with attention wired as in Bahdanau's or in Luong's model, or without attention.

Shapes as in ``seq2seq``; E width of an embedding, D width of a state, K width of a context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attention, AttentionMemory, AttentionOutput, NoAttention
from nmt.attention.config import AttentionConfig
from nmt.attention.registry import NoScore
from nmt.attention.reinforce import SampledPositions
from nmt.core.record import BatchRecord
from nmt.models.rnn.config import RNNDecoderConfig
from nmt.models.rnn.context import ContextInjection
from nmt.models.rnn.stack import recurrent_stack
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded, MarginalReadouts, NextToken, mean_state
from nmt.nn.config import DropoutConfig
from nmt.nn.dropout import Dropout
from nmt.nn.embedding import Embedding
from nmt.nn.precision import compute_dtype
from nmt.nn.recurrent import RecurrentStack, StackState

if TYPE_CHECKING:
    from nmt.attention.recurrent_multihead import RecurrentMultiHead


@dataclass(frozen=True)
class RNNMemory(BatchRecord):
    """A batch of source sentences as the decoder sees them."""

    attention: BatchRecord
    """The memory of ``Attention``, or of another kind of attention."""
    summary_BD: Tensor
    """One vector for the whole sentence."""


@dataclass(frozen=True)
class RNNState(BatchRecord):
    """State carried from step to step."""

    stack: StackState
    readout_NR: Tensor | None
    """The readout of the last step; None if there is no input feeding."""
    position_N: Tensor
    """Number of steps so far."""
    attention: BatchRecord | None = None
    """State of a mechanism that has one."""
    own: AttentionMemory | None = None
    """The states so far, for self-attention."""


class _DropoutMasks(NamedTuple):
    """Dropout masks, 0 or the scale, for one step; None means that nothing is dropped."""

    layers: Sequence[Tensor | None] = ()
    """Dropout masks, 0 or the scale, for the input of each layer above the bottom one."""
    readout_NR: Tensor | None = None


class _Step(NamedTuple):
    """Result of one step."""

    readout_NR: Tensor
    attended: AttentionOutput
    state: RNNState


class RNNDecoder(Decoder[RNNMemory, RNNState]):
    """y' = embedding of the last word, s = output of the top layer, c = context, r = readout.

    ``query: previous`` (Bahdanau et al. 2015, appendix A.1.2):   c_t = attend(s_{t-1}); s_t = cell([y'; c_t], s_{t-1})
    ``query: current``  (Luong et al. 2015, figure 2):            s_t = cell(y', s_{t-1}); c_t = attend(s_t)
    ``query: between``  (Sennrich et al. 2017, section 2.1):      s'_t = cell(y', s_{t-1}); c_t = attend(s'_t);
                                                                  s_t = cell'(c_t, s'_t)
    ``query: bottom``   (Wu et al. 2016, section 3):              c_t = attend(s_{t-1}) with s of the bottom layer; c_t
                                                                  is an input of all layers
    all:                                                          r_t = tanh(W [s_t; c_t] + b)
    ``input_feeding``   (Luong et al. 2015, section 3.3):         r_{t-1} is part of the input of the cell as well.
    ``query_embedding``:                                          c_t = attend([s; y']) with the s of ``query``.
    without attention:                                            s_t = cell(y', s_{t-1}); r_t = tanh(W s_t + b)

    ``self_attention``  (Cheng et al. 2016, section 3):           r_t = tanh(W [s_t; c_t; o_t] + b) with o_t =
                                                                  attend(s_t) over s_1 to s_t

    ``context_gate``    (Tu et al. 2017, section 3.2):            r_t = tanh((1 - z) * (W s_t + b) + z * (V c_t + b')),
                                                                  z = sigmoid(Z [s_t; y'; c_t] + d); in the paper, the
                                                                  gate is in the cell

    The vector of the sentence gives s_0 and may be part of the input of the cell: see ``ContextInjection``. The readout
    of Bahdanau is a maxout layer over the previous state, the word and the context; here it is Luong's in both wirings,
    over the current state; ``readout_embedding`` adds the word, and without ``readout_context`` c is left out.
    """

    def __init__(
        self, config: RNNDecoderConfig, attention: AttentionConfig, embedding: Embedding, *, width: int,
        memory_size: int, readout_size: int, dropout: DropoutConfig, context_source: NoAttention | None = None,
    ) -> None:  # fmt: skip
        """``context_source`` gives the contexts where the score of ``attention`` is none."""
        super().__init__()
        self.readout_size = readout_size
        self.query = config.query
        self.input_feeding = config.input_feeding
        self.query_embedding = config.query_embedding
        self.readout_embedding = config.readout_embedding
        self.readout_context = config.readout_context
        self.summary = config.summary
        self.embedding = embedding
        self.embedding_dropout = Dropout(dropout.embedding, variational=dropout.variational)
        self.dropout = Dropout(dropout.layers, variational=dropout.variational)
        self.attention: Attention | RecurrentMultiHead | NoAttention = context_source or NoAttention()
        context_size = 0 if context_source is None else context_source.context_size
        if not attention.is_none:
            kind: type[Attention | RecurrentMultiHead] = Attention
            if attention.heads > 1:
                from nmt.attention.recurrent_multihead import RecurrentMultiHead as kind
            self.attention = kind(
                attention,
                query_size=config.size + width * config.query_embedding,
                key_size=memory_size,
                value_size=memory_size,
                dropout=dropout.attention,
            )
            context_size = memory_size
        self.head_names = config.head_names(attention.head_count)
        self.handover = ContextInjection(config, summary_size=memory_size)
        # Bahdanau's cell reads the context, so attention comes before it
        attends_first = config.query in ("previous", "bottom") and context_size > 0
        self.is_sequential = config.query != "current" or config.input_feeding or self.attention.is_stateful
        """True if a step reads a result of the preceding step other than the state of the cell, so that steps are
        computed one by one."""
        has_second_cell = config.query == "between"
        self.stack = recurrent_stack(
            config,
            input_size=width
            + self.handover.input_size
            + context_size * attends_first
            + readout_size * config.input_feeding,
            layers=config.layers,
            residual=config.residual,
            shared_size=context_size * (config.query == "bottom"),
            # the chain of cells ends a step, as in Nematus
            transitions=config.transitions * (not has_second_cell),
        )
        self.transition: RecurrentStack | None = None
        """The second cell, on the state of the top layer."""
        if has_second_cell:
            self.transition = recurrent_stack(config, input_size=context_size, transitions=config.transitions)
        self.self_attention: Attention | None = None
        if not isinstance(config.self_attention, NoScore):
            self.self_attention = Attention(
                AttentionConfig(score=config.self_attention),
                query_size=config.size,
                key_size=config.size,
                value_size=config.size,
                dropout=dropout.attention,
                causal=True,
            )
        reads_context = self.readout_context and not config.context_gate
        inputs = [config.size, context_size * reads_context, width * self.readout_embedding]
        self.readout = nn.Linear(sum(inputs) + config.size * (self.self_attention is not None), readout_size)
        self.context_gate = self.context_readout = None
        if config.context_gate:
            self.context_gate = nn.Linear(config.size + width + context_size, readout_size)
            self.context_readout = nn.Linear(context_size, readout_size)
        for layer in filter(None, (self.readout, self.context_gate, self.context_readout)):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def at_update(self, update: int) -> None:
        """See ``Decoder.at_update``."""
        self.attention.update = update

    def memory(self, encoded: Encoded) -> RNNMemory:
        """See ``Decoder.memory``."""
        states_BSD, is_pad_BS = encoded.states_BSD, encoded.is_pad_BS
        attention = self.attention.memory(states_BSD, states_BSD, is_pad_BS)
        summary_BD = encoded.final_BD if self.summary == "last" else mean_state(states_BSD, is_pad_BS)
        return RNNMemory(attention, summary_BD)

    def start(self, memory: RNNMemory) -> RNNState:
        """See ``Decoder.start``."""
        stack = self.stack.start(self.handover.start(memory.summary_BD))
        rows = stack.top_BD.shape[0]
        readout_BR = stack.top_BD.new_zeros(rows, self.readout_size) if self.input_feeding else None
        position_B = torch.zeros(rows, dtype=torch.int64, device=stack.top_BD.device)
        attention = self.attention.start(memory.attention)  # type: ignore[arg-type]
        own = None if self.self_attention is None else self._own_memory(stack.top_BD[:, None, :].expand(-1, 0, -1))
        return RNNState(stack, readout_BR, position_B, attention, own)

    def step(self, token_N: Tensor, memory: RNNMemory, state: RNNState) -> DecoderStep[RNNState]:
        """See ``Decoder.step``."""
        step = self._step(self.embedding(token_N), memory, state, _DropoutMasks())
        return DecoderStep(step.readout_NR, lambda: step.attended.weights_NHTS[:, :, 0], step.state)

    def _step(self, embedded_NE: Tensor, memory: RNNMemory, state: RNNState, masks: _DropoutMasks) -> _Step:
        """Computes the equations of the class for the next word of N rows."""
        position_N1 = state.position_N[:, None]
        # y' and, if it is an input of every step, the vector of the sentence
        inputs = [embedded_NE, self._sentence(memory, position_N1)[:, 0]]
        # r_{t-1}, with input feeding
        feeding = [] if state.readout_NR is None else [state.readout_NR]
        if self.query in ("previous", "bottom"):
            # Bahdanau: c_t = attend(s_{t-1}); GNMT asks from the bottom layer, and every layer reads c_t
            is_bottom = self.query == "bottom"
            query_NQ = self._query(state.stack.hidden[0] if is_bottom else state.stack.top_BD, embedded_NE)
            attended: AttentionOutput = self.attention(
                query_NQ[:, None], position_N1, memory.attention, state.attention
            )
            context_NV = attended.context_NTV[:, 0]
            inputs_NX = torch.cat([*inputs, context_NV, *feeding], dim=1)
            stack = self.stack.step(inputs_NX, state.stack, masks.layers, context_NV if is_bottom else None)
        else:
            # Luong: s_t = cell(y', s_{t-1}), before attention
            stack = self.stack.step(torch.cat([*inputs, *feeding], dim=1), state.stack, masks.layers)
            query_NQ = self._query(stack.top_BD, embedded_NE)
            # c_t = attend(s_t)
            attended = self.attention(query_NQ[:, None], position_N1, memory.attention, state.attention)
            if self.transition is not None:
                # s_t = cell'(c_t, s'_t), for the top layer
                top = StackState(stack.hidden[-1:], stack.cell[-1:], stack.top_BD)
                top = self.transition.step(attended.context_NTV[:, 0], top)
                stack = StackState((*stack.hidden[:-1], *top.hidden), (*stack.cell[:-1], *top.cell), top.top_BD)
        own = state.own
        if own is not None:
            # s_1 to s_t, for self-attention
            own = own.extended(self._own_memory(stack.top_BD[:, None]))
        # r_t = tanh(W [s_t; c_t] + b), in all wirings
        readout_NR = self._readout(stack.top_BD, attended.context_NTV[:, 0], embedded_NE, position_N1, own)
        if masks.readout_NR is not None:
            readout_NR = readout_NR * masks.readout_NR
        # the readout that is fed back has dropout, too
        fed_NR = readout_NR if self.input_feeding else None
        return _Step(readout_NR, attended, RNNState(stack, fed_NR, state.position_N + 1, attended.state, own))

    def teacher_forced(self, input_BT: Tensor, memory: RNNMemory) -> Decoded:
        """See ``Decoder.teacher_forced``. All steps run at once if no step reads the readout of the one before."""
        embedded_BTE = self.embedding_dropout(self.embedding(input_BT))
        rows, steps = input_BT.shape
        if self.is_sequential:
            return self._unroll(memory, rows, steps, lambda time, _: embedded_BTE[:, time])
        # no step needs a readout, so the stack runs over all words, then attention from all states
        position_BT = torch.arange(steps, device=input_BT.device).expand(rows, steps)
        inputs_BTE = torch.cat([embedded_BTE, self._sentence(memory, position_BT)], dim=-1)
        top_BTD = self.stack(inputs_BTE, self.start(memory).stack, self.dropout)
        attended: AttentionOutput = self.attention(self._query(top_BTD, embedded_BTE), position_BT, memory.attention)
        own = None if self.self_attention is None else self._own_memory(top_BTD)
        readout_BTR = self.dropout(self._readout(top_BTD, attended.context_NTV, embedded_BTE, position_BT, own))
        marginal = self._marginal_readouts(embedded_BTE, top_BTD, attended, memory) if self.marginalizes else None
        sampled = () if attended.sampled is None else (attended.sampled,)
        return Decoded(readout_BTR, lambda: attended.weights_NHTS, sampled, marginal)

    def free_running(self, first_B: Tensor, memory: RNNMemory, steps: int, next_token: NextToken) -> Decoded:
        """See ``Decoder.free_running``."""
        assert not self.marginalizes, "a marginal over all positions is decoded at once"
        rows, table_VE = len(first_B), self.embedding.weight_VD
        # drawn for all steps at once, because variational dropout shares them
        mask_BTE = self.embedding_dropout.mask((rows, steps, table_VE.shape[1]), table_VE.dtype, first_B.device)

        def embed(time: int, before: _Step | None) -> Tensor:
            token_B = first_B
            if before is not None:
                token_B = next_token(time - 1, before.readout_NR, lambda: before.attended.weights_NHTS[:, :, 0])
            embedded_BE: Tensor = self.embedding(token_B)
            return embedded_BE if mask_BTE is None else embedded_BE * mask_BTE[:, time]

        return self._unroll(memory, rows, steps, embed)

    def _unroll(
        self, memory: RNNMemory, rows: int, steps: int, embed: Callable[[int, _Step | None], Tensor]
    ) -> Decoded:
        """Runs steps one by one; ``embed`` computes the input of a step from its number and the step before."""
        state, before = self.start(memory), None
        unrolled: list[_Step] = []
        for time, masks in enumerate(self._dropout_masks(rows, steps, memory)):
            before = self._step(embed(time, before), memory, state, masks)
            state = before.state
            unrolled.append(before)
        sampled = SampledPositions.joined([step.attended.sampled for step in unrolled])
        weights_BHTS = torch.cat([step.attended.weights_NHTS for step in unrolled], dim=2)
        return Decoded(
            torch.stack([step.readout_NR for step in unrolled], dim=1),
            lambda: weights_BHTS,
            () if sampled is None else (sampled,),
        )

    def _dropout_masks(self, rows: int, steps: int, memory: RNNMemory) -> list[_DropoutMasks]:
        """Draws the dropout masks of all steps together, so that ``variational`` masks are shared by all steps."""
        dtype, device = compute_dtype(memory.summary_BD), memory.summary_BD.device
        # between the layers of the stack, and on the readout
        widths = [*[self.stack.size] * (self.stack.layers - 1), self.readout_size]
        drawn = [self.dropout.mask((rows, steps, width), dtype, device) for width in widths]
        return [
            _DropoutMasks([None if each is None else each[:, time] for each in drawn[:-1]], readout_mask)
            for time, readout_mask in enumerate([None] * steps if drawn[-1] is None else drawn[-1].unbind(dim=1))
        ]

    def _sentence(self, memory: RNNMemory, position_NT: Tensor) -> Tensor:
        """Computes the part of the cell's input that comes from the vector of the sentence."""
        beams = position_NT.shape[0] // memory.summary_BD.shape[0]
        # the beams of a sentence share its vector, which may be no input
        is_shared = beams > 1 and self.handover.input_size > 0
        summary_ND = memory.summary_BD.repeat_interleave(beams, dim=0) if is_shared else memory.summary_BD
        return self.handover.inputs(summary_ND, position_NT)

    def _query(self, top: Tensor, embedded: Tensor) -> Tensor:
        """Returns the query, s or [s; y'], for one step or for all."""
        return torch.cat([top, embedded], dim=-1) if self.query_embedding else top

    def _own_memory(self, top_NTD: Tensor) -> AttentionMemory:
        """Builds the memory of states for self-attention."""
        assert self.self_attention is not None
        return self.self_attention.memory(top_NTD, top_NTD, top_NTD.new_zeros(top_NTD.shape[:2], dtype=torch.bool))

    def _readout(
        self, top: Tensor, context: Tensor, embedded: Tensor, position_NT: Tensor, own: AttentionMemory | None
    ) -> Tensor:
        """Computes the readout, tanh(W [s; c] + b), for one step or for all. ``own`` are the states for
        self-attention."""
        is_gated = self.context_gate is not None
        parts = [top, *[context] * (self.readout_context and not is_gated), *[embedded] * self.readout_embedding]
        if self.self_attention is not None:
            # o_t = attend(s_t) over s_1 to s_t
            query_NTD = top if top.dim() == 3 else top[:, None]
            parts.append(self.self_attention(query_NTD, position_NT, own).context_NTV.view_as(top))
        # W s + b
        summed: Tensor = self.readout(torch.cat(parts, dim=-1))
        if self.context_gate is not None and self.context_readout is not None:
            # z = sigmoid(Z [s; y'; c] + d), then (1 - z) * (W s + b) + z * (V c + b')
            gate = self.context_gate(torch.cat([top, embedded, context], dim=-1)).sigmoid()
            summed = torch.lerp(summed, self.context_readout(context), gate)
        return summed.tanh()

    @property
    def marginalizes(self) -> bool:
        """Returns True if training sums the likelihood over every source position."""
        return self.training and self.attention.marginalizes

    def _marginal_readouts(
        self, embedded_BTE: Tensor, top_BTD: Tensor, attended: AttentionOutput, memory: RNNMemory
    ) -> MarginalReadouts:
        """Computes the readout with the value of each source position as the context: W [s; v] = W_s s + W_v v."""
        assert isinstance(memory.attention, AttentionMemory)
        values_BSV = memory.attention.values_BSV
        sizes = [top_BTD.shape[-1], values_BSV.shape[-1], embedded_BTE.shape[-1] * self.readout_embedding]
        state_RD, value_RV, embedding_RE = torch.split(self.readout.weight, sizes, dim=1)
        # W_s s + b, the same for every source position
        own_BTR = F.linear(top_BTD, state_RD, self.readout.bias)
        if self.readout_embedding:
            own_BTR = own_BTR + F.linear(embedded_BTE, embedding_RE)
        # tanh(W_s s + W_v v + b), for every pair of a target and a source position
        readout_BTSR = (own_BTR[:, :, None] + F.linear(values_BSV, value_RV)[:, None]).tanh()
        readout_BTSR = self.dropout(readout_BTSR.flatten(1, 2)).view_as(readout_BTSR)
        weights_BTS = attended.weights_NHTS[:, 0]
        # the logarithm of 0 has no finite gradient
        log_weight_BTS = weights_BTS.clamp(min=torch.finfo(weights_BTS.dtype).tiny).log()
        is_pad_BS = memory.attention.is_pad_BS
        return MarginalReadouts(readout_BTSR, log_weight_BTS.masked_fill(is_pad_BS[:, None], -torch.inf))
