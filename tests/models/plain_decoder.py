"""The recurrent decoder written out again: one sentence, one step, one layer at a time, from the model's weights.

Cells are torch's own; attention is that of the oracles. Nothing of the package's loops, parallel passes or deferred
products is used, and the sentence has no padding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.attention import NoAttention
from nmt.attention.recurrent_multihead import RecurrentMultiHead
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.recurrent import RecurrentStack
from tests.attention.oracles import Past, attend

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


def _cells(stack: RecurrentStack) -> list[Any]:
    made: list[nn.Module] = []
    for layer in range(stack.layers):
        parameters = list(stack.rnns[layer].parameters())
        weight_GI = parameters[0]
        cell = CELLS[stack.kind](weight_GI.shape[1], stack.size, dtype=weight_GI.dtype)
        for name, parameter in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), parameters, strict=True):
            getattr(cell, name).data = parameter.data
        made.append(cell)
    return made


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


@torch.no_grad()
def decode(model: Seq2Seq[Any, Any], source: list[int], target: list[int]) -> Plain:
    """Readouts and weights of all steps of one sentence, each step reading the gold word before it."""
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    source_1S = torch.tensor([source])
    encoded = model.encoder(model.encoder.embed(source_1S), source_1S == model.pad)
    states_SD, final_D = encoded.states_BSD[0], encoded.final_BD[0]
    summary_D = final_D if decoder.summary == "last" else sum(states_SD) / len(states_SD)

    hidden = _start(decoder, summary_D)
    memory = [torch.zeros_like(each) for each in hidden]
    cells = _cells(decoder.stack)
    second = _cells(decoder.transition)[0] if decoder.transition is not None else None
    top_D, readout_R = hidden[-1], torch.zeros(decoder.readout_size, dtype=final_D.dtype)
    weights_HTS: list[list[list[float]]] = [[] for _ in decoder.head_names]
    tops: list[Tensor] = []
    readouts, past, pasts = [], Past(), [Past() for _ in decoder.head_names]

    def of_heads(attention: RecurrentMultiHead, query_Q: Tensor, step: int) -> list[Tensor]:
        contexts: list[float] = []
        for number, (head, own) in enumerate(zip(attention.attentions, pasts, strict=True)):
            rows = slice(
                number * len(states_SD[0]) // attention.heads, (number + 1) * len(states_SD[0]) // attention.heads
            )
            keys_SA, values_SA = (
                torch.stack([weight[rows] @ state_D for state_D in states_SD])
                for weight in (attention.key_weight_VK, attention.value_weight_VV)
            )
            (weights_S,), context = attend(
                head, attention.query_weight_VQ[rows] @ query_Q, step, keys_SA, values_SA, own
            )
            weights_HTS[number].append(weights_S)
            contexts += context
        return [torch.tensor(contexts, dtype=query_Q.dtype)]

    def attended(state_D: Tensor, word_E: Tensor, step: int) -> list[Tensor]:
        if isinstance(decoder.attention, NoAttention):
            return []
        query_Q = torch.cat([state_D, word_E]) if decoder.query_embedding else state_D
        if isinstance(decoder.attention, RecurrentMultiHead):
            return of_heads(decoder.attention, query_Q, step)
        weights_HS, context = attend(decoder.attention, query_Q, step, states_SD, states_SD, past)
        for head, weights_S in enumerate(weights_HS):
            weights_HTS[head].append(weights_S)
        return [torch.tensor(context, dtype=state_D.dtype)]

    for step, token in enumerate([model.bos, *target[:-1]]):
        word_E = decoder.embedding.weight_VD[token]
        read = [word_E, *_added(decoder, summary_D, step)]
        asks_first = decoder.query in ("previous", "bottom")
        if asks_first:
            context = attended(top_D if decoder.query == "previous" else hidden[0], word_E, step)
            read += context
        if decoder.input_feeding:
            read.append(readout_R)
        below_D = torch.cat(read)
        for layer, cell in enumerate(cells):
            input_D = torch.cat([below_D, *context]) if decoder.query == "bottom" and layer > 0 else below_D
            if decoder.stack.kind == "lstm":
                hidden[layer], memory[layer] = cell(input_D, (hidden[layer], memory[layer]))
            else:
                hidden[layer] = cell(input_D, hidden[layer])
            below_D = hidden[layer] + below_D if decoder.stack.residual and layer > 0 else hidden[layer]
        top_D = below_D
        if not asks_first:
            context = attended(top_D, word_E, step)
        if decoder.query == "between":
            if decoder.stack.kind == "lstm":
                hidden[-1], memory[-1] = second(context[0], (hidden[-1], memory[-1]))
            else:
                hidden[-1] = second(context[0], hidden[-1])
            top_D = hidden[-1]
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
