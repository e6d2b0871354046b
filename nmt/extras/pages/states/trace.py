"""Gates and hidden states over a sentence, by the equations of the cells over the model's own weights.

With x_t the input of a layer, W x_t and U h_{t-1} with their biases, * the elementwise product:

    elman  h_t = tanh(W x_t + U h_{t-1})
    gru    r_t, z_t = sigmoid(W x_t + U h_{t-1});       n_t = tanh(W_n x_t + r_t * U_n h_{t-1})
           h_t = (1 - z_t) * n_t + z_t * h_{t-1}
    lstm   i_t, f_t, o_t = sigmoid(W x_t + U h_{t-1});  g_t = tanh(W_g x_t + U_g h_{t-1})
           c_t = f_t * c_{t-1} + i_t * g_t;             h_t = o_t * tanh(c_t)

The update gate z of the GRU keeps the old state where it is 1, as in PyTorch and in Cho et al. 2014, "Learning Phrase
Representations using RNN Encoder-Decoder", equation 7. In Chung et al. 2014, "Empirical Evaluation of Gated Recurrent
Neural Networks", and in Bahdanau et al. 2015 it lets the new one in: h_t = (1 - z_t) * h_{t-1} + z_t * n_t.

Shapes: T tokens, D units, G gates times D.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.core.errors import InputError
from nmt.data.vocabulary import EOS
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.rnn.encoder import RNNEncoder
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.recurrent import CellKind, CellState, RecurrentStack
from nmt.translator.loading import TrainedModel

Side: TypeAlias = Literal["encoder", "decoder"]
Direction: TypeAlias = Literal["forward", "backward"]

HIDDEN, CELL = "hidden state h", "cell state c"

GATES: Mapping[CellKind, Sequence[str | None]] = {
    "elman": (),
    "gru": ("reset gate r", "update gate z"),
    "lstm": ("input gate i", "forget gate f", None, "output gate o"),
}
"""Names of the parts of W x + U h that a sigmoid turns into gates."""


@dataclass(frozen=True)
class Trace:
    """States over a sentence."""

    tokens: Sequence[str]
    """Subwords with end-of-sentence; for the decoder, the subwords that are predicted from the states."""
    values: Mapping[str, NDArray[np.float32]]
    """Gates and states by their names, (T, D), hidden states last; for a Transformer only the outputs of its layers."""

    @property
    def states_TD(self) -> NDArray[np.float32]:
        return list(self.values.values())[-1]


def chosen_layer(
    model: Seq2Seq[Any, Any], side: Side, layer: int | None, direction: Direction
) -> tuple[RecurrentStack, int] | None:
    """Returns the stack with the layer, counted from 1, and its index in it; by default the top one. Returns None for a
    Transformer. Raises InputError for a layer or direction that does not exist."""
    coder = model.encoder if side == "encoder" else model.decoder
    stacks: list[tuple[RecurrentStack, int]] = []
    if isinstance(coder, RNNEncoder):
        stacks = [(each, 0) for each in (coder.forwards if direction == "forward" else coder.backwards) or ()]  # type: ignore[misc]
    elif isinstance(coder, RNNDecoder) and direction == "forward":
        stacks = [(coder.stack, index) for index in range(coder.stack.layers)]
    if direction == "backward" and not stacks:
        raise InputError(f"--direction backward: the {side} has no such layers; leave it out")
    if layer is not None and layer > len(stacks):
        raise InputError(f"--layer {layer}: the {side} has {len(stacks)} recurrent layers; choose one, or leave it out")
    return stacks[(layer or len(stacks)) - 1] if stacks else None


@torch.inference_mode()
def trace(
    trained: TrainedModel, source: str, target: str, *, side: Side, layer: int | None, direction: Direction, line: int
) -> Trace:
    """Computes the states over a sentence and the previous ones that it knows, or for the decoder over the target,
    under teacher forcing. ``line`` is the number of the pair in errors, which are those of
    ``TrainedModel.encode_pairs`` and ``chosen_layer``."""
    model, tokenizers = trained.model, trained.tokenizers
    ((source_words, target_words),) = trained.encode_pairs([source], [target], line)
    (source_ids,) = trained.prefixed([source_words.ids], [source])
    ids = [*source_ids, EOS], [*target_words.ids, EOS]
    source_1S, target_1T = (torch.tensor([each], device=trained.compute.device) for each in ids)
    chosen = chosen_layer(model, side, layer, direction)
    if chosen is not None:
        steps = _steps(model, *chosen, source_1S, target_1T if side == "decoder" else None)
        found = {name: torch.cat([step[name] for step in steps]) for name in steps[0]}
    elif side == "encoder":
        found = {"output": model.encoder(model.encoder.embed(source_1S), source_1S == model.pad).states_BSD[0]}
    else:
        found = {"output": model.teacher_forced(target_1T, model.encode(source_1S)).readout_BTR[0]}
    if direction == "backward":
        found = {name: value_TD.flip(0) for name, value_TD in found.items()}
    tokens = tokenizers.source.pieces(ids[0]) if side == "encoder" else tokenizers.target.pieces(ids[1])
    return Trace(tokens, {name: value_TD.float().cpu().numpy() for name, value_TD in found.items()})


def _steps(
    model: Seq2Seq[Any, Any], stack: RecurrentStack, layer: int, source_1S: Tensor, target_1T: Tensor | None
) -> list[dict[str, Tensor]]:
    """Computes gates and states of a layer at each of its steps, (1, D) each; without a target those of an encoder."""
    cell, cell_step, steps = stack.cell, stack.cell_step, list[dict[str, Tensor]]()

    def recording(of: int, input_1G: Tensor, recurrent_1G: Tensor, state: CellState, index: int = 0) -> CellState:
        after = cell_step(of, input_1G, recurrent_1G, state, index)
        if of == layer:
            gates = zip(GATES[stack.kind], (input_1G + recurrent_1G).sigmoid().chunk(cell.gates, dim=1), strict=False)
            cells = {} if after.cell_BD is None else {CELL: after.cell_BD}
            del steps[len(steps) - (index > 0) :]  # of a chain of cells the last one is shown
            steps.append({**{name: gate_1D for name, gate_1D in gates if name}, **cells, HIDDEN: after.hidden_BD})
        return after

    inputs: list[Tensor] = []
    hook = stack.register_forward_pre_hook(lambda _, given: inputs.extend(given[0].unbind(dim=1)))
    stack.cell_step = recording  # type: ignore[method-assign,assignment]
    try:
        memory = model.encode(source_1S)
        steps.clear()
        if target_1T is None:  # an encoder runs all steps at once, without access to the gates
            reading = stack.start([inputs[0].new_zeros(1, stack.size)])
            for input_1E in inputs:
                reading = stack.step(input_1E, reading)
        else:
            state, token_1 = model.start(memory), model.first_token(1, source_1S.device)
            for gold_1 in target_1T.unbind(dim=1):
                state, token_1 = model.step(token_1, memory, state).state, gold_1
    finally:
        del stack.cell_step
        hook.remove()
    return steps


def components(traces: Iterable[Trace]) -> tuple[list[NDArray[np.float64]], list[float]]:
    """Computes the first two principal components of the states of all sentences, (T, 2) each, and their shares of the
    variance; the largest loading of each is positive. Sutskever et al. 2014, figure 2, shows the last states of
    sentences in this way. Raises InputError for fewer than three states."""
    states = [trace.states_TD for trace in traces]
    all_ND = np.concatenate(states).astype(np.float64)
    if len(all_ND) < 3:
        raise InputError(f"{len(all_ND)} states make no plane; give longer sentences, or more of them")
    all_ND -= all_ND.mean(axis=0)
    _, size_K, loading_KD = np.linalg.svd(all_ND, full_matrices=False)
    loading_2D = [row_D * np.sign(row_D[np.abs(row_D).argmax()]) for row_D in loading_KD[:2]]
    shares = size_K[:2] ** 2 / max(float(size_K @ size_K), 1e-30)
    return np.split(all_ND @ np.array(loading_2D).T, np.cumsum([len(each) for each in states])[:-1]), shares.tolist()
