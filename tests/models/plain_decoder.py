"""The recurrent decoder written out again: one sentence, one step, one layer at a time, from the model's weights.

Cells are torch's own; attention is that of the oracles. Nothing of the package's loops, parallel passes or deferred
products is used, and the sentence has no padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.attention import NoAttention
from nmt.attention.recurrent_multihead import RecurrentMultiHead
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.rnn.glimpses import GlimpseSensor
from nmt.models.rnn.reencoding import SourceReader
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.recurrent import RecurrentStack
from tests.attention.oracles import Past, attend, attend_by_heads
from tests.models.variants import make

SOURCES, TARGETS = [[4, 5, 1, 4, 3], [5, 3], [5, 5, 4, 3]], [[4, 5, 4, 3], [5, 3], [1, 4, 3]]
"""A batch of sentences of different lengths, in the vocabulary of ``variants``."""

CELLS = {"elman": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}


def padded(sentences: list[list[int]]) -> Tensor:
    """The sentences in one tensor."""
    longest = max(map(len, sentences))
    return torch.tensor([each + [0] * (longest - len(each)) for each in sentences])


class Plain(NamedTuple):
    """The results of the loop."""

    readout_TR: Tensor
    weights_HTS: list[list[list[float]]]


class PlainStack:
    """Layers of torch's own cells with the weights of a stack, for one sentence."""

    def __init__(self, stack: RecurrentStack, hidden: list[Tensor], *, residual: bool = False) -> None:
        self.stack, self.residual, self.cells = stack, residual, []
        for rnn in stack.rnns:
            cell = CELLS[stack.kind](rnn.input_size, rnn.hidden_size, dtype=rnn.weight_ih_l0.dtype)
            cell.load_state_dict({name.removesuffix("_l0"): value for name, value in rnn.state_dict().items()})
            self.cells.append(cell)
        self.hidden, self.memory = list(hidden), [torch.zeros_like(each) for each in hidden]
        self.top_D = hidden[-1]

    def step(self, below_D: Tensor, of_all: Sequence[Tensor] = ()) -> Tensor:
        """One step of all layers; those above the bottom one also read ``of_all``."""
        for layer, cell in enumerate(self.cells):
            input_D = torch.cat([below_D, *of_all]) if layer > 0 else below_D
            if self.stack.kind == "lstm":
                self.hidden[layer], self.memory[layer] = cell(input_D, (self.hidden[layer], self.memory[layer]))
            else:
                self.hidden[layer] = cell(input_D, self.hidden[layer])
            below_D = self.hidden[layer] + below_D if self.residual and layer > 0 else self.hidden[layer]
        self.top_D = below_D
        return below_D


def _start(decoder: RNNDecoder, summary_D: Tensor) -> list[Tensor]:
    """The first state of each layer."""
    start, layers = decoder.handover.config.start, decoder.stack.layers
    if start == "projected":
        projections: list[Any] = list(decoder.handover.layers)
        states = [torch.tanh(each.weight @ summary_D + each.bias) for each in projections]
        for layer, state_D in enumerate(states):
            upper: Any = decoder.handover.upper[layer]
            for above in upper[::2]:
                state_D = torch.tanh(above.weight @ state_D + above.bias)
            states[layer] = state_D
        return states
    first_D = {"raw": summary_D, "zeros": torch.zeros(decoder.stack.size, dtype=summary_D.dtype)}[start]
    return [first_D] * layers


def _added(decoder: RNNDecoder, summary_D: Tensor, step: int) -> list[Tensor]:
    """Returns the vectors of the sentence that a step reads in addition to the word."""
    context = decoder.handover.config.context
    if context.enters == "every_step" or (context.enters == "first_step" and step == 0):
        return [summary_D]
    later = {"zeros": torch.zeros_like(summary_D), "learnt": decoder.handover.placeholder_D}
    return [later[context.placeholder]] if context.enters == "first_step" else []  # type: ignore[list-item]


def _read_again(reader: SourceReader, states_SD: Tensor, query_D: Tensor, residual: bool) -> Tensor:
    """The state of a recurrence that starts from the query, after the last word."""
    stack = PlainStack(reader.stack, [query_D] * reader.stack.layers, residual=residual)
    for state_D in states_SD:
        stack.step(state_D)
    return stack.top_D


def _glimpse(sensor: GlimpseSensor, states_SD: Tensor, query_D: Tensor) -> tuple[Tensor, list[float]]:
    """Computes the glimpse from the mean place, and the mean weights of its windows, by the windows of the neighbouring
    words."""
    words, scales = len(states_SD), sensor.config.scales
    logit = float(sensor.policy_2Q[0] @ query_D + sensor.policy_offset_2[0])
    place = min(words / (1.0 + math.exp(-logit)), words - 1.0)
    left, mean_weights, windows = math.floor(place), [0.0] * words, []
    for k in range(scales):
        weights = [0.0] * words
        for centre, share in ((left, left + 1 - place), (left + 1, place - left)):
            for word in range(words):
                weights[word] += share * (abs(word - centre) <= 2**k - 1)
        weights = [weight / sum(weights) for weight in weights]
        windows.append(sum(weight * state_D for weight, state_D in zip(weights, states_SD, strict=True)))
        mean_weights = [old + weight / scales for old, weight in zip(mean_weights, weights, strict=True)]

    def linear(layer: Any, x_D: Tensor) -> Tensor:
        return torch.relu(layer.weight @ x_D + layer.bias)

    seen = linear(sensor.windows, torch.cat(windows))  # type: ignore[arg-type]
    where = linear(sensor.place, torch.tensor([2 * place / words - 1], dtype=seen.dtype))
    return linear(sensor.glimpse, torch.cat([seen, where])), mean_weights


@torch.no_grad()
def decode(model: Seq2Seq[Any, Any], source: list[int], target: list[int]) -> Plain:
    """Readouts and weights of all steps of one sentence, each step reading the gold word before it."""
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    source_1S = torch.tensor([source])
    encoded = model.encoder(model.encoder.embed(source_1S), source_1S == model.pad)
    states_SD, final_D = encoded.states_BSD[0], encoded.final_BD[0]
    summary_D = final_D if decoder.summary == "last" else sum(states_SD) / len(states_SD)

    residual = decoder.handover.config.residual
    stack = PlainStack(decoder.stack, _start(decoder, summary_D), residual=residual)
    readout_R = torch.zeros(decoder.readout_size, dtype=final_D.dtype)
    weights_HTS: list[list[list[float]]] = [[] for _ in decoder.head_names]
    tops: list[Tensor] = []
    readouts, pasts = [], [Past() for _ in decoder.head_names]

    def attended(state_D: Tensor, word_E: Tensor, step: int, look: int) -> list[Tensor]:
        if isinstance(decoder.attention, SourceReader):
            return [_read_again(decoder.attention, states_SD, state_D, residual)]
        if isinstance(decoder.attention, GlimpseSensor):
            context_D, weights_S = _glimpse(decoder.attention, states_SD, state_D)
            weights_HTS[look].append(weights_S)
            return [context_D]
        if isinstance(decoder.attention, NoAttention):
            return []
        query_Q = torch.cat([state_D, word_E]) if decoder.query_embedding else state_D
        if isinstance(decoder.attention, RecurrentMultiHead):
            weights_HS, context = attend_by_heads(decoder.attention, query_Q, step, states_SD, pasts)
        else:
            weights_HS, context = attend(decoder.attention, query_Q, step, states_SD, states_SD, pasts[0])
        for head, weights_S in enumerate(weights_HS):
            weights_HTS[head].append(weights_S)
        return [torch.tensor(context, dtype=state_D.dtype)]

    looks = len(decoder.head_names) if isinstance(decoder.attention, GlimpseSensor) else 1
    for step, token in enumerate([model.bos, *target[:-1]]):
        word_E = decoder.embedding.weight_VD[token]
        read = [word_E, *_added(decoder, summary_D, step)]
        fed = [readout_R] if decoder.input_feeding else []
        if decoder.query == "previous":
            for look in range(looks):
                context = attended(stack.top_D, word_E, step, look)
                stack.step(torch.cat([*read, *context, *fed]))
        elif decoder.query == "bottom":
            context = attended(stack.hidden[0], word_E, step, 0)
            stack.step(torch.cat([*read, *context, *fed]), context)
        else:
            context = attended(stack.step(torch.cat([*read, *fed])), word_E, step, 0)
        if decoder.transition is not None:
            second = PlainStack(decoder.transition, stack.hidden[-1:])
            second.memory = stack.memory[-1:]
            stack.top_D = second.step(context[0])
            stack.hidden[-1], stack.memory[-1] = second.hidden[0], second.memory[0]
        top_D = stack.top_D
        reads_context = decoder.readout_context and decoder.context_gate is None
        seen = [top_D, *(context if reads_context else []), *([word_E] if decoder.readout_embedding else [])]
        tops.append(top_D)
        if decoder.self_attention is not None:
            _, own = attend(decoder.self_attention, top_D, step, torch.stack(tops), torch.stack(tops))
            seen.append(torch.tensor(own, dtype=top_D.dtype))
        readout_R = decoder.readout.weight @ torch.cat(seen) + decoder.readout.bias
        if (gate := decoder.context_gate) is not None:
            z_R = 1 / (1 + torch.exp(-(gate.weight @ torch.cat([top_D, word_E, *context]) + gate.bias)))
            source: Any = decoder.context_readout
            readout_R = (1 - z_R) * readout_R + z_R * (source.weight @ context[0] + source.bias)
        readout_R = torch.tanh(readout_R)
        readouts.append(readout_R)
    return Plain(torch.stack(readouts), weights_HTS)


@torch.no_grad()
def assert_decodes_as_plain_loop(config: dict[str, Any], *, atol: float = 2e-5, rtol: float = 1e-4) -> None:
    """Readouts and weights of a batch of sentences of different lengths; by default as exact as float32, which weights
    pass through."""
    model = make(config, scale=1.5).double()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    decoded = model.teacher_forced(target_BT, model.encode(source_BS))
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        expected = decode(model, source, target)
        torch.testing.assert_close(decoded.readout_BTR[row, : len(target)], expected.readout_TR, atol=atol, rtol=rtol)
        ours = decoded.weights_BHTS[row, :, : len(target)]
        assert len(ours) == len(expected.weights_HTS)
        if expected.weights_HTS:
            weights_HTS = torch.tensor(expected.weights_HTS)
            torch.testing.assert_close(ours[..., : len(source)], weights_HTS, atol=2e-5, rtol=1e-4)
        assert (ours[..., len(source) :] == 0).all()
