"""Passes of training and steps of searches as CUDA graphs.

An update of a small model consists of a thousand short kernels or more, and a step of a search of about a hundred: the
GPU computes them in less time than the host takes to launch them. A CUDA graph launches all of them at once. It is
recorded for one shape of its inputs, and reads and writes the same memory each time. Batches of pairs that are sorted
by length have about a hundred shapes, which recur in each epoch; the steps of a search have few.

Shapes as in ``nmt.models.seq2seq``; X any.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MethodType
from typing import Any, Generic, NoReturn, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nmt.attention.attention import Attention
from nmt.attention.multihead import KeyValues
from nmt.attention.weights.softmax import Softmax
from nmt.core.record import BatchRecord, shared
from nmt.models.feed import Feed, TeacherForcing
from nmt.models.loss import decode
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Seq2Seq, Step, decoder_step
from nmt.models.transformer.decoder import TransformerDecoder, TransformerState
from nmt.nn.output import OutputLayer
from nmt.nn.recompute import is_recomputing
from nmt.search.beam import Advance, Beams, advance_unconstrained

G = TypeVar("G")

MEMORY_SHARE = 8
"""Divisor of the device's memory: the graphs of a model hold at most this part of it."""
SHAPES = 512
"""Number of shapes that are remembered."""
ROOM = 32
"""Smallest number of positions by which the memory of keys and values of a search grows."""


class Graphs(Generic[G]):
    """The graphs of a model by the shapes of their inputs, the most recently used last."""

    def __init__(self, device: torch.device) -> None:
        self._graphs: OrderedDict[object, tuple[G, int] | None] = OrderedDict()
        self.lock = threading.RLock()
        """Lock that is held while the memory of graphs is read or written."""
        # one memory for all graphs: each runs when the results of others are no longer needed
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    @contextmanager
    def recorded(self) -> Iterator[torch.cuda.CUDAGraph]:
        """Context manager that records a graph of the operations in its body. Other threads may use the GPU meanwhile.
        It does not use ``torch.cuda.graph``, which returns all free memory first."""
        graph, collects = torch.cuda.CUDAGraph(), gc.isenabled()
        gc.disable()  # GPU memory must not be freed meanwhile
        # weights that were cast before, outside of the graph, would not change any more
        torch.clear_autocast_cache()
        try:
            # also makes the device of the stream the current one
            with torch.cuda.stream(self._stream):
                self._stream.wait_stream(torch.cuda.default_stream(self._stream.device))
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    yield graph
                finally:
                    graph.capture_end()
            torch.cuda.default_stream(self._stream.device).wait_stream(self._stream)
        finally:
            torch.clear_autocast_cache()
            if collects:
                gc.enable()

    def of(self, shape: object, size: int, device: torch.device, record: Callable[[], G]) -> G | None:
        """Returns the graph of a shape, which holds ``size`` bytes. It is recorded when the shape occurs for the second
        time; before that, and if memory is short, the result is None."""
        is_new = shape not in self._graphs
        found = self._graphs.pop(shape, None)
        if found is None and not is_new:
            room = torch.cuda.get_device_properties(device).total_memory // MEMORY_SHARE - size
            held = [(key, of[1]) for key, of in self._graphs.items() if of is not None]
            while held and sum(bytes_held for _, bytes_held in held) > room:
                del self._graphs[held.pop(0)[0]]
            found = (record(), size) if room > 0 else None
        self._graphs[shape] = found
        while len(self._graphs) > SHAPES:
            self._graphs.popitem(last=False)
        return None if found is None else found[0]


_of_models: WeakKeyDictionary[nn.Module, Graphs[Any]] = WeakKeyDictionary()


def _graphs_of(model: nn.Module, device: torch.device) -> Graphs[Any]:
    if model not in _of_models:
        _of_models[model] = Graphs(device)
    return _of_models[model]


def _dtype() -> torch.dtype | None:
    """Returns the dtype of autocast; None if autocast is off."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


# ------------------------------------------------------------------------------------------------------ training


def graphed_decode(
    model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, feed: Feed, needs_weights: bool
) -> Decoded:
    """``nmt.models.loss.decode``, in training on CUDA by a graph. Its body runs where a pass is not a function of
    tokens, weights and the generator alone, and where there are gradients already, which may be those of this graph."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    graph = None
    if (
        source_BS.device.type == "cuda"
        and torch.is_grad_enabled()
        and model.training
        and isinstance(feed, TeacherForcing)
        and not needs_weights
        and type(model) is Seq2Seq
        and not is_recomputing()
        and all(parameter.grad is None for parameter in trained)
        and isinstance(model.decoder, RNNDecoder | TransformerDecoder)
        and all(isinstance(each.weighting, Softmax) for each in model.modules() if isinstance(each, Attention))
        and not any(getattr(each, "learns_from_rewards", False) for each in model.modules())  # as a sensor of glimpses
    ):
        graphs, size = _graphs_of(model, source_BS.device), sum(parameter.nbytes for parameter in trained)
        record = partial(PassGraph, model, source_BS, target_BT, graphs)
        graph = graphs.of((source_BS.shape, target_BT.shape, _dtype()), size, source_BS.device, record)
    if graph is None:
        return decode.body(model, source_BS, target_BT, feed, needs_weights)
    readout_BTR = _Replay.apply(graph, source_BS, target_BT, *trained)  # type: ignore[no-untyped-call]
    return Decoded(readout_BTR, _no_weights)


def _no_weights() -> NoReturn:
    raise AssertionError("a graph has no weights of attention")


@contextmanager
def _aliased(model: nn.Module) -> Iterator[None]:
    """Replaces a model's parameters, in the body of the context, by others in the same memory."""
    places = [
        (module, name, each)
        for module in model.modules()
        for name, each in module._parameters.items()
        if each is not None
    ]
    aliases = {each: nn.Parameter(each.detach(), each.requires_grad) for _, _, each in places}
    try:
        for module, name, each in places:
            setattr(module, name, aliases[each])  # a recurrent layer also has a list of them
        yield
    finally:
        for module, name, each in places:
            setattr(module, name, each)


class PassGraph:
    """A forward and a backward pass over batches of one shape."""

    def __init__(self, model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, graphs: Graphs[Any]) -> None:
        self.source_BS, self.target_BT = source_BS.clone(), target_BT.clone()
        # not of the parameters themselves: while an earlier loss exists, autograd remembers the stream on which it was
        # computed from them, and would wait for that stream
        with _aliased(model):
            with graphs.recorded() as self.forward:
                readout_BTR = decode.body(model, self.source_BS, self.target_BT, TeacherForcing(), False).readout_BTR
            self.readout_gradient_BTR = torch.empty_like(readout_BTR)
            with graphs.recorded() as self.backward:
                trained = [each for each in model.parameters() if each.requires_grad]
                self.gradients = torch.autograd.grad(
                    readout_BTR, trained, grad_outputs=self.readout_gradient_BTR, allow_unused=True
                )
        self.readout_BTR = readout_BTR.detach()


class _Replay(torch.autograd.Function):
    """Runs the passes of a ``PassGraph`` on another batch."""

    @staticmethod
    def forward(ctx: Any, graph: PassGraph, source_BS: Tensor, target_BT: Tensor, *_: Tensor) -> Tensor:
        ctx.graph = graph
        graph.source_BS.copy_(source_BS)
        graph.target_BT.copy_(target_BT)
        graph.forward.replay()
        return graph.readout_BTR.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BTR: Tensor) -> tuple[Tensor | None, ...]:
        graph = ctx.graph
        graph.readout_gradient_BTR.copy_(gradient_BTR)
        graph.backward.replay()
        return (None, None, None, *(None if each is None else each.detach() for each in graph.gradients))


# ------------------------------------------------------------------------------------------------------ searches


@dataclass(frozen=True)
class FixedKeyValues(KeyValues):
    """Keys and values in memory with room for further steps."""

    def extended(self, present: KeyValues, position_NT: Tensor) -> tuple[KeyValues, Tensor | None]:
        """See ``KeyValues.extended``. It writes in place."""
        index_NHTA = position_NT[:, None, :, None].expand_as(present.keys_BHSA)
        self.keys_BHSA.scatter_(2, index_NHTA, present.keys_BHSA)
        self.values_BHSA.scatter_(2, index_NHTA, present.values_BHSA)
        return self, torch.arange(self.keys_BHSA.shape[2], device=position_NT.device) > position_NT


@dataclass(frozen=True)
class JoinedState(BatchRecord):
    """The state of a Transformer decoder in a few tensors, whose shapes do not change in most steps."""

    past_NLXHTA: Tensor
    """The keys (X = 0) and values (X = 1) of each layer, with room for further steps."""
    position_N: Tensor
    """Number of steps so far."""
    steps: int = shared()
    """Number of steps so far, on the host."""

    @staticmethod
    def of(state: Any) -> Any:
        """Converts a state to one with room for the next step; the state of another kind of decoder is returned
        unchanged."""
        if isinstance(state, TransformerState):
            pairs = [torch.stack([layer.keys_BHSA, layer.values_BHSA], dim=1) for layer in state.layers]
            state = JoinedState(torch.stack(pairs, dim=1), state.position_N, steps=pairs[0].shape[3])
        if not isinstance(state, JoinedState) or state.steps < (room := state.past_NLXHTA.shape[4]):
            return state
        return replace(state, past_NLXHTA=F.pad(state.past_NLXHTA, (0, 0, 0, max(ROOM, room))))

    def apart(self) -> TransformerState:
        """Returns the state in the decoder's own form, in the same memory."""
        layers = tuple(FixedKeyValues(*layer_NXHTA.unbind(1)) for layer_NXHTA in self.past_NLXHTA.unbind(1))
        return TransformerState(layers, self.position_N)


def _step(decoder: Decoder[Any, Any], token_N: Tensor, memory: BatchRecord, state: Any) -> DecoderStep[Any]:
    """Computes a step from a state of ``JoinedState.of``, which may be overwritten, to another such state."""
    if not isinstance(state, JoinedState):
        return decoder_step.body(decoder, token_N, memory, state)
    step = decoder_step.body(decoder, token_N, memory, state.apart())
    after = JoinedState(state.past_NLXHTA, step.state.position_N, steps=state.steps + 1)
    return DecoderStep(step.readout_NR, step.weights, after)


def graphed_step(decoder: Decoder[Any, Any], token_N: Tensor, memory: BatchRecord, state: Any) -> DecoderStep[Any]:
    """Runs ``nmt.models.seq2seq.decoder_step``, in a search on CUDA by a graph."""
    if (
        token_N.device.type != "cuda"
        or torch.is_grad_enabled()
        or decoder.training
        or not isinstance(decoder, RNNDecoder | TransformerDecoder)
    ):
        return decoder_step.body(decoder, token_N, memory, state)
    state = JoinedState.of(state)
    inputs = (token_N, *state.tensors(), *memory.tensors())
    shape = (*((each.shape, each.dtype) for each in inputs), _dtype())

    def run(token_N: Tensor, *tensors: Tensor) -> list[Tensor]:
        count = len(state.tensors())
        step = _step(decoder, token_N, memory.with_tensors(tensors[count:]), state.with_tensors(tensors[:count]))
        return [step.readout_NR, *step.state.tensors()]

    graphs, size = _graphs_of(decoder, token_N.device), sum(each.nbytes for each in inputs)
    with graphs.lock:
        record = partial(TensorGraph, run, inputs, graphs)
        graph: TensorGraph | None = graphs.of(shape, size, token_N.device, record)
        if graph is None:
            return _step(decoder, token_N, memory, state)
        # in most steps the memory is that of the step before
        is_new, graph.memory = graph.memory is None or graph.memory() is not memory, ref(memory)
        readout_NR, *tensors = graph(inputs if is_new else inputs[: -len(memory.tensors())])
    after = state.with_tensors(tensors)
    if isinstance(after, JoinedState):
        after = replace(after, steps=after.steps + 1)
    return DecoderStep(readout_NR, lambda: _step(decoder, token_N, memory, state).weights(), after)


class TensorGraph:
    """A graph of a function that maps tensors of one shape to tensors."""

    def __init__(
        self, function: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor], graphs: Graphs[Any]
    ) -> None:
        # tensors of inference mode could not be written outside of it
        self.memory: ReferenceType[BatchRecord] | None = None
        """The memory of sentences that the graph's inputs hold already, so that it need not be copied again."""
        with torch.inference_mode(False), torch.no_grad():
            self._inputs = [each.clone() for each in inputs]
            with graphs.recorded() as self._graph:
                self._results = list(function(*self._inputs))

    def __call__(self, inputs: tuple[Tensor, ...]) -> list[Tensor]:
        """Computes the results."""
        torch._foreach_copy_(self._inputs[: len(inputs)], inputs)
        self._graph.replay()
        return [each.clone() for each in self._results]


def graphed_advance(beams: Beams, forward: Step[Any], beam: int, eos: int) -> Advance:
    """Runs ``nmt.search.beam.advance_unconstrained``, on CUDA by a graph that starts from the readouts."""
    top: Any = forward.top_tokens
    device = beams.log_prob_N.device
    output = top.func.__self__ if isinstance(top, partial) and isinstance(top.func, MethodType) else None
    if device.type != "cuda" or not isinstance(output, OutputLayer):
        return advance_unconstrained.body(beams, forward, beam, eos)
    # a graph for all numbers of tokens up to 32, up to 64, and so on; no token is -1
    padded_NP = F.pad(beams.tokens_NT, (-beams.tokens_NT.shape[1] % 32, 0), value=-1)
    own = Beams(padded_NP, beams.log_prob_N, repetitions=beams.repetitions)
    inputs = (*own.tensors(), *top.args)

    def run(*inputs: Tensor) -> list[Tensor]:
        again = replace(forward, top_tokens=partial(output.top_tokens, inputs[-1]))
        step = advance_unconstrained.body(own.with_tensors(inputs), again, beam, eos)
        return [step.parents_N, step.ended_BW, step.ended_parent_BW, *step.beams.tensors()]

    graphs, size = _graphs_of(output, device), sum(each.nbytes for each in inputs)
    margin = own.repetitions and own.repetitions.margin
    shape = (*((each.shape, each.dtype) for each in inputs), beam, eos, margin, _dtype())
    with graphs.lock:
        graph = graphs.of(shape, size, device, partial(TensorGraph, run, inputs, graphs))
        parents_N, ended_BW, ended_parent_BW, *tensors = run(*inputs) if graph is None else graph(inputs)
    parents, following = beams.select(parents_N), own.with_tensors(tensors)
    tokens_NT = torch.cat([parents.tokens_NT, following.tokens_NT[:, -1:]], dim=1)
    beams = replace(following, tokens_NT=tokens_NT, attended_NS=parents.attended_NS)
    return Advance(beams, parents_N, ended_BW, ended_parent_BW)
