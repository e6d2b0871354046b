"""The recurrent encoder's and decoder's sections of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from nmt.attention.registry import AnyScoreOrNone, NoScore
from nmt.config.kinds import BareName
from nmt.config.structure import Structure
from nmt.nn.config import Layers, Size

Cell = Literal["elman", "gru", "lstm"]
Transitions = Annotated[int, Field(ge=0, le=16)]
AnyRNN = TypeVar("AnyRNN", "RNNEncoderConfig", "RNNDecoderConfig")


def _check_residual(config: AnyRNN) -> AnyRNN:
    if config.residual and config.layers == 1:
        raise ValueError("residual: true adds what a layer reads to what it gives, from layer 2 on; set layers")
    return config


class RNNEncoderConfig(Structure):
    """A recurrent encoder."""

    kind: Literal["rnn"] = "rnn"
    cell: Cell = "lstm"
    """``elman`` (Elman 1990), ``gru`` (Cho et al. 2014) or ``lstm`` (Hochreiter & Schmidhuber 1997)."""
    layers: Layers = 1
    """Recurrent layers, one above the other."""
    size: Size = 256
    """Width of the state of each direction."""
    bidirectional: bool = True
    """Add a second stack that reads the sentence from its end (Schuster & Paliwal 1997)."""
    residual: bool = False
    """Add the input of each layer above the bottom one to its output (Wu et al. 2016, section 3.1)."""
    layer_norm: bool = False
    """Normalise each gate of a cell over its units (Ba et al. 2016). Training then runs step by step."""
    transitions: Transitions = 0
    """Further cells in each step of a layer, which read only the state (deep transitions, Miceli Barone et al. 2017).
    Training then runs step by step."""
    _residual_has_layers = model_validator(mode="after")(_check_residual)

    @property
    def memory_size(self) -> int:
        """Width of an encoder state."""
        return self.size * (2 if self.bidirectional else 1)

    @property
    def words(self) -> str:
        """A description for people."""
        both = " in each direction" if self.bidirectional else ""
        return f"{_stack(self)}{both}"


class DecoderContextConfig(Structure):
    """Steps whose input contains the vector c of the sentence, with attention or without."""

    enters: Literal["nothing", "every_step", "first_step"] = "nothing"
    """Steps at which c is part of the cell's input: ``every_step`` (Cho et al. 2014), only the ``first_step``, or
    ``nothing``."""
    placeholder: Literal["zeros", "learnt"] = "learnt"
    """Vector that replaces c in the later inputs with ``first_step``."""

    @model_validator(mode="after")
    def _placeholder_has_a_place(self) -> DecoderContextConfig:
        if self.placeholder == "zeros" and self.enters != "first_step":
            raise ValueError(f"placeholder: zeros is for enters: first_step, not {self.enters}; leave it out")
        return self


class RNNDecoderConfig(Structure):
    """A recurrent decoder."""

    kind: Literal["rnn"] = "rnn"
    cell: Cell = "lstm"
    """``elman`` (Elman 1990), ``gru`` (Cho et al. 2014) or ``lstm`` (Hochreiter & Schmidhuber 1997)."""
    layers: Layers = 1
    """Recurrent layers, one above the other."""
    size: Size = 512
    """Width of the state."""
    residual: bool = False
    """Add the input of each layer above the bottom one to its output. The query and the readout use the output of the
    top layer."""
    layer_norm: bool = False
    """Normalise each gate of a cell over its units (Ba et al. 2016). Training then runs step by step."""
    transitions: Transitions = 0
    """Further cells in each step of a layer, which read only the state (deep transitions, Miceli Barone et al. 2017).
    With query: between, the top layer has them, after its second cell, as in Nematus. Training then runs step by
    step."""
    query: Literal["previous", "current", "between", "bottom"] = "current"
    """State that is the query: the state of this step (current, Luong) or of the step before (previous, Bahdanau). With
    previous, the context vector is an input of the cell. With between, a step has two cells: the first reads the word,
    its state is the query, and the second reads the context vector (Nematus, Sennrich et al. 2017). With bottom, the
    query is the state of the bottom layer in the step before, and the context vector an input of all layers (GNMT, Wu
    et al. 2016)."""
    query_embedding: bool = False
    """Use [s; y'], the state and the embedding of the last word, as the query, instead of the state s."""
    input_feeding: bool = True
    """Make the last step's readout part of the cell's input (Luong et al. 2015, section 3.3)."""
    readout_size: Size | None = None
    """Width of the readout, which the output layer reads; null means the decoder's size, or the embedding's if tied."""
    readout_embedding: bool = False
    """Let the readout also read the last word's embedding (Bahdanau et al. 2015, appendix A.2.2)."""
    readout_context: bool = True
    """Let the readout read the context vector, as in Luong et al. 2015. If not, it is tanh(W s + b), and the context
    reaches a word through the cell alone, which needs query: previous."""
    context_gate: bool = False
    """Let a gate, computed from the last word, the state and the context vector, weigh in the readout what comes from
    the context vector against the rest (Tu et al. 2017)."""
    self_attention: AnyScoreOrNone = NoScore()
    """Score of attention from each state s_t to the decoder's own states s_1 to s_t, with softmax weights; the readout
    reads the result too (Cheng et al. 2016). none: it does not."""
    summary: Literal["last", "mean"] = "last"
    """c, the vector of the sentence: each direction's last state of the encoder's top layer, or the mean of all
    states."""
    start: Literal["zeros", "raw", "projected"] = "projected"
    """First state of each layer: 0, c (Sutskever et al. 2014) or tanh(W c + b) (Bahdanau et al. 2015)."""
    start_layers: Layers = 1
    """Layers of the network between c and the first state with start: projected: tanh(W_n ... tanh(W_1 c + b_1))."""
    context: Annotated[DecoderContextConfig, BareName("enters")] = DecoderContextConfig()
    """Inputs of the cell that c is part of, given by name or together with the placeholder."""
    _residual_has_layers = model_validator(mode="after")(_check_residual)

    @model_validator(mode="after")
    def _parts_have_a_use(self) -> RNNDecoderConfig:
        if self.start_layers > 1 and self.start != "projected":
            raise ValueError(f"start_layers is for start: projected, not {self.start}; leave it out")
        if not self.readout_context and self.query == "current":
            raise ValueError(
                "readout_context: false leaves no use of what attention finds, unless it is an input of the cell: set "
                "query: previous, between or bottom"
            )
        if self.self_attention.is_stateful:
            raise ValueError(
                f"self_attention: {self.self_attention.kind} has a state for each of a fixed number of words, and the "
                "decoder's states grow in number; use another score"
            )
        if self.context_gate and not self.readout_context:
            raise ValueError("context_gate has nothing to weigh with readout_context: false; leave one of them out")
        if self.query == "bottom" and self.layers == 1:
            raise ValueError("query: bottom asks from below other layers: set layers, or use query: previous")
        if self.residual and self.query == "between":
            raise ValueError("residual: true has no place for the second cell of query: between; leave one of them out")
        return self

    @property
    def words(self) -> str:
        """A description for people."""
        parts = [_stack(self)]
        parts += [f"query {self.query}{' with the last word' * self.query_embedding}"]
        parts += ["input feeding"] * self.input_feeding + [f"start {self.start}"] * (self.start != "projected")
        return ", ".join(parts + [f"context {self.context.enters}"] * (self.context.enters != "nothing"))

    def readout_width(self, embedding: int, *, tied: bool) -> int:
        """Width of the input of the output layer."""
        if self.readout_size is not None:
            return self.readout_size
        return embedding if tied else self.size

    def head_names(self, count: int) -> tuple[str, ...]:
        """The names of the heads of the attention."""
        return tuple(f"head{head}" for head in range(1, count + 1))


class ContextConfig(Structure):
    """Shorthands of earlier releases: ``every_step`` and ``first_step`` are decoder.context of that name with
    decoder.start: zeros, ``initial_state`` is decoder.start: raw, ``projected_initial_state`` decoder.start: projected.
    """

    kind: Literal["every_step", "first_step", "initial_state", "projected_initial_state"] = "projected_initial_state"
    summary: Literal["last", "mean"] = "last"
    """See decoder.summary."""

    def apply(self, decoder: RNNDecoderConfig) -> RNNDecoderConfig:
        """Returns the decoder with the keys that the shorthand stands for; raises ValueError if one of them is set to
        another value."""
        start, enters = _SHORTHANDS[self.kind]
        keys = {"start": start, "context": DecoderContextConfig(enters=enters)}
        keys |= {"summary": self.summary} if "summary" in self.model_fields_set else {}
        for key, value in keys.items():
            if key in decoder.model_fields_set and getattr(decoder, key) != value:
                raise ValueError(
                    f"context: {self.kind} stands for decoder.start: {start} and decoder.context: {enters}, but "
                    f"decoder.{key} is set to something else; set these keys instead of context"
                )
        return decoder.model_copy(update=keys)


_SHORTHANDS: dict[str, tuple[str, Literal["nothing", "every_step", "first_step"]]] = {
    "every_step": ("zeros", "every_step"),
    "first_step": ("zeros", "first_step"),
    "initial_state": ("raw", "nothing"),
    "projected_initial_state": ("projected", "nothing"),
}


def _stack(config: RNNEncoderConfig | RNNDecoderConfig) -> str:
    name = config.cell.upper() if config.cell != "elman" else "Elman"
    parts = [f"{name}, {config.layers} layer{'s' if config.layers > 1 else ''} of {config.size}"]
    parts += ["residual"] * config.residual + ["normalised"] * config.layer_norm
    return ", ".join(parts + [f"{1 + config.transitions} cells a step"] * (config.transitions > 0))
