"""A model as two ONNX graphs (https://onnx.ai), which other programs can run: one encodes sentences, one computes a
step of the decoder.

Shapes as in ``seq2seq``. The step has a row of the memory for each row of its tokens: N = B.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.core.record import BatchRecord
from nmt.data.vocabulary import EOS
from nmt.extras.exchange.export.session import ENCODER, STEP
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.recurrent import RecurrentStack

OPSET = 20
"""Version of ONNX's operators that the graphs use."""

_SYMBOLS = {(2, 3): "batch", (5, 7): "source", (3, 4): "steps"}
"""Sizes in two examples; a dimension with the first size in one and the second in the other has this name."""

_GATES = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 3, 1, 2)}
"""ONNX's order of the gates, as indices into torch's: z, r, n of r, z, n, and i, o, f, g of i, f, g, o."""


@dataclass(frozen=True)
class Fields:
    """The tensors of a kind of record that are inputs and outputs of graphs, each of them once, even if the record has
    it twice."""

    like: BatchRecord
    first: tuple[int, ...]
    """The index of the first equal tensor, for each tensor of the record."""
    kept: tuple[int, ...]
    """The indices of the tensors that are inputs and outputs, in their order."""

    @classmethod
    def of(cls, *records: BatchRecord) -> Fields:
        """Finds the fields of records of one kind. Tensors are equal if they are the same object in all records."""
        ids = list(zip(*([id(tensor) for tensor in record.tensors()] for record in records), strict=True))
        first = tuple(map(ids.index, ids))
        return cls(records[0], first, tuple(sorted(set(first))))

    def names(self, prefix: str) -> list[str]:
        """Returns the names of the tensors."""
        names = self.like.names()
        return [f"{prefix}.{names[index]}" for index in self.kept]

    def tensors(self, record: BatchRecord) -> tuple[Tensor, ...]:
        """Returns these tensors of a record."""
        tensors = record.tensors()
        return tuple(tensors[index] for index in self.kept)

    def record(self, tensors: Sequence[Tensor]) -> Any:
        """Builds a record from these tensors, if none is left out."""
        by_index = dict(zip(self.kept, tensors, strict=True))
        return self.like.with_tensors([by_index[index] for index in self.first])

    def only(self, names: set[str], prefix: str) -> Fields:
        """Returns only the fields with these names."""
        kept = tuple(index for index, name in zip(self.kept, self.names(prefix), strict=True) if name in names)
        return replace(self, kept=kept)


class Recurrence(nn.Module):
    """A layer of torch's ``nn.RNN``, ``nn.GRU`` or ``nn.LSTM`` from zero states, as one ONNX operator; the exporter
    alone would write a loop over time. It works only during an export."""

    def __init__(self, rnn: nn.RNNBase) -> None:
        super().__init__()
        self.operator = rnn.mode.partition("_")[0]
        self.size = rnn.hidden_size
        self.weight_1GE = nn.Parameter(self._ordered(rnn.weight_ih_l0)[None], requires_grad=False)
        self.recurrent_1GD = nn.Parameter(self._ordered(rnn.weight_hh_l0)[None], requires_grad=False)
        biases = [self._ordered(bias) for bias in (rnn.bias_ih_l0, rnn.bias_hh_l0)]
        self.bias_1G = nn.Parameter(torch.cat(biases)[None], requires_grad=False)

    def forward(self, input_BSE: Tensor) -> Tensor:
        """Computes the hidden states (B, S, D)."""
        batch, source, _ = input_BSE.shape
        states_S1BD = torch.onnx.ops.symbolic(
            self.operator,
            (input_BSE.transpose(0, 1), self.weight_1GE, self.recurrent_1GD, self.bias_1G),
            {"hidden_size": self.size, **({"linear_before_reset": 1} if self.operator == "GRU" else {})},
            dtype=input_BSE.dtype,
            shape=(source, 1, batch, self.size),
        )
        return states_S1BD[:, 0].transpose(0, 1)

    def _ordered(self, weight: Any) -> Tensor:
        parts = weight.detach().chunk(len(_GATES[self.operator]))
        return torch.cat([parts[index] for index in _GATES[self.operator]])


class _ModelGraph(nn.Module):
    """A part of a model, whose records of memory and state are tensors outside of it."""

    def __init__(self, model: Seq2Seq[Any, Any], memory: Fields, state: Fields) -> None:
        super().__init__()
        self.model, self.memory, self.state = model, memory, state


class EncoderGraph(_ModelGraph):
    """Maps source tokens, with end-of-sentence and padding, to the tensors of their memory and of the decoder's first
    state."""

    def __init__(self, model: Seq2Seq[Any, Any], memory: Fields, state: Fields) -> None:
        super().__init__(copy.deepcopy(model, {id(each): each for each in model.parameters()}), memory, state)
        for stack in self.model.encoder.modules():
            if isinstance(stack, RecurrentStack):
                stack.rnns = nn.ModuleList(Recurrence(rnn) for rnn in stack.rnns)  # type: ignore[arg-type]
                stack.run_layer = lambda layer, input_BSE, _, rnns=stack.rnns: rnns[layer](input_BSE)  # type: ignore[method-assign,misc]

    def forward(self, source_BS: Tensor) -> tuple[Tensor, ...]:
        """See the class."""
        memory = self.model.encode(source_BS)
        return (*self.memory.tensors(memory), *self.state.tensors(self.model.start(memory)))


class StepGraph(_ModelGraph):
    """Maps the last tokens (N,), memory and state to logits (N, V), weights (N, H, S) and the next state."""

    def forward(self, token_N: Tensor, memory: list[Tensor], state: list[Tensor]) -> tuple[Tensor, ...]:
        """See the class."""
        step = self.model.step(token_N, self.memory.record(memory), self.state.record(state))
        return (step.logits_NV, step.weights_NHS, *self.state.tensors(step.state))


def _example(
    model: Seq2Seq[Any, Any], rows: int, positions: int, steps: int
) -> tuple[Tensor, BatchRecord, BatchRecord, BatchRecord]:
    """Computes example tensors, from which the graphs are exported: source tokens (B, S), their memory, the first state
    and the state after some steps."""
    source_BS = torch.full((rows, positions), EOS)
    memory = model.encode(source_BS)
    first = state = model.start(memory)
    for _ in range(steps):
        state = model.step(source_BS[:, 0], memory, state).state
    return source_BS, memory, first, state


@torch.no_grad()
def save(model: Seq2Seq[Any, Any], folder: Path) -> dict[str, Any]:
    """Writes a model in float32 and eval mode as ``encoder.onnx`` and ``step.onnx`` into a folder; returns their
    description.

    Batch size, source length and, for a Transformer, the number of steps so far are dynamic. Tensors of memory and
    state that no step reads are left out.
    """
    sizes, other_sizes = zip(*_SYMBOLS, strict=True)
    source_BS, one_memory, first, one_state = _example(model, *sizes)
    _, other_memory, _, other_state = _example(model, *other_sizes)
    memory, state = Fields.of(one_memory), Fields.of(first, one_state)
    memory_tensors, memory_sizes = _traced(memory.tensors(one_memory), memory.tensors(other_memory))
    state_tensors, state_sizes = _traced(state.tensors(one_state), state.tensors(other_state))
    memory_names, state_names, next_names = memory.names("memory"), state.names("state"), state.names("next")
    inputs, outputs = ["token", *memory_names, *state_names], ["logits", "weights", *next_names]
    arguments, symbols = (source_BS[:, 0], memory_tensors, state_tensors), ({0: "batch"}, memory_sizes, state_sizes)
    step = _exported(StepGraph(model, memory, state), arguments, symbols, inputs, outputs)
    graph = step.model.graph
    read = {"token"} | {str(value.name) for value in graph.inputs if value.uses() or value.is_graph_output()}
    dropped = {name for name, before in zip(next_names, state_names, strict=True) if before not in read}
    graph.inputs[:] = [value for value in graph.inputs if value.name in read]
    graph.outputs[:] = [value for value in graph.outputs if value.name not in dropped]
    memory, state = memory.only(read, "memory"), state.only(read, "state")
    sizes_BS, outputs = {0: "batch", 1: "source"}, [*memory.names("memory"), *state.names("state")]
    encoder = _exported(EncoderGraph(model, memory, state), (source_BS,), (sizes_BS,), ["source"], outputs)
    encoder.save(folder / ENCODER)
    step.save(folder / STEP)
    return {"opset": OPSET, "encoder": _described(ENCODER, encoder), "step": _described(STEP, step)}


def _traced(tensors: Sequence[Tensor], others: Sequence[Tensor]) -> tuple[list[Tensor], list[dict[int, str]]]:
    """Returns an example's tensors in memory of their own, and the names of their sizes that differ in the other
    example, by dimension."""
    symbols = []
    for tensor, other in zip(tensors, others, strict=True):
        sizes = enumerate(zip(tensor.shape, other.shape, strict=True))
        symbols.append({dimension: _SYMBOLS[both] for dimension, both in sizes if both[0] != both[1]})
    return [tensor.clone(memory_format=torch.contiguous_format) for tensor in tensors], symbols


def _exported(
    graph: nn.Module, arguments: tuple[Any, ...], symbols: tuple[Any, ...], inputs: list[str], outputs: list[str]
) -> torch.onnx.ONNXProgram:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # its messages about itself and missing packages
    with warnings.catch_warnings(action="ignore"):
        program = torch.onnx.export(
            graph.eval(),
            arguments,
            dynamo=True,
            dynamic_shapes=symbols,
            input_names=inputs,
            output_names=outputs,
            opset_version=OPSET,
            verbose=False,
        )
    assert program is not None
    return program


def _described(file: str, program: torch.onnx.ONNXProgram) -> dict[str, Any]:
    """Describes the graph of a file: name, type and shape of each input and output. A shape consists of sizes, and of
    names of sizes that differ from call to call."""

    def ports(values: Sequence[Any]) -> list[dict[str, Any]]:
        shapes = [[size if isinstance(size, int) else str(size.value) for size in each.shape] for each in values]
        return [
            {"name": value.name, "type": value.dtype.numpy().name, "shape": shape}
            for value, shape in zip(values, shapes, strict=True)
        ]

    return {"file": file, "inputs": ports(program.model.graph.inputs), "outputs": ports(program.model.graph.outputs)}
