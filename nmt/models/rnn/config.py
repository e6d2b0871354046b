"""The recurrent encoder's and decoder's sections of a configuration."""

from __future__ import annotations

from typing import Literal, TypeVar

from pydantic import model_validator

from nmt.config.structure import Structure
from nmt.nn.config import Layers, Size

Cell = Literal["elman", "gru", "lstm"]
AnyRNN = TypeVar("AnyRNN", "RNNEncoderConfig", "RNNDecoderConfig")


def _check_residual(config: AnyRNN) -> AnyRNN:
    if config.residual and config.layers == 1:
        raise ValueError(
            "residual: true adds what a layer reads to what it gives, from the second layer on; set layers"
        )
    return config


class RNNEncoderConfig(Structure):
    """A recurrent encoder."""

    kind: Literal["rnn"] = "rnn"
    cell: Cell = "lstm"
    """``elman`` (Elman 1990), ``gru`` (Cho et al. 2014) or ``lstm`` (Hochreiter & Schmidhuber 1997)."""
    layers: Layers = 1
    """Recurrent layers, one above the other."""
    size: Size = 256
    """Width of the state, per direction."""
    bidirectional: bool = True
    """Whether a second stack reads the sentence from its end (Schuster & Paliwal 1997)."""
    residual: bool = False
    """Whether each layer above the bottom one adds its input to its output (Wu et al. 2016, section 3.1)."""
    _residual_has_layers = model_validator(mode="after")(_check_residual)

    @property
    def memory_size(self) -> int:
        """Width of an encoder state."""
        return self.size * (2 if self.bidirectional else 1)

    @property
    def words(self) -> str:
        """A description for people."""
        both = " in each direction" if self.bidirectional else ""
        return f"{_stack(self.cell, self.layers, self.size, self.residual)}{both}"


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
    """As the encoder's; attention asks and the readout reads with what the top layer gives out."""
    query: Literal["previous", "current"] = "current"
    """Which state asks: the one before this step, whose context enters the cell (Bahdanau), or this step's (Luong)."""
    input_feeding: bool = True
    """Whether the last step's readout is part of the cell's input (Luong et al. 2015, section 3.3)."""
    readout_size: Size | None = None
    """Width of the readout, which the output layer reads; null: the decoder's size, or the embedding's if tied."""
    readout_embedding: bool = False
    """Whether the readout also sees the last word's embedding (Bahdanau et al. 2015, appendix A.2.2)."""
    _residual_has_layers = model_validator(mode="after")(_check_residual)

    @property
    def words(self) -> str:
        """A description for people."""
        feeding = ", input feeding" if self.input_feeding else ""
        return f"{_stack(self.cell, self.layers, self.size, self.residual)}, query {self.query}{feeding}"

    def readout_width(self, embedding: int, *, tied: bool) -> int:
        """Width of the input of the output layer."""
        if self.readout_size is not None:
            return self.readout_size
        return embedding if tied else self.size

    def head_names(self, count: int) -> tuple[str, ...]:
        """The names of the heads of the attention."""
        return tuple(f"head{head}" for head in range(1, count + 1))


class ContextConfig(Structure):
    """How a decoder without attention gets the sentence's one vector c."""

    kind: Literal["every_step", "first_step", "initial_state", "projected_initial_state"] = "projected_initial_state"
    """``every_step``: c is part of the cell's input at each step, and the state starts at 0 (Cho et al. 2014).
    ``first_step``: c is part of the first input, a learnt placeholder of the others, and the state starts at 0.
    ``initial_state``: the state of each layer starts as c (Sutskever et al. 2014).
    ``projected_initial_state``: it starts as tanh(W c + b)."""
    summary: Literal["last", "mean"] = "last"
    """c: each direction's last state of the top layer, or the mean of all its states."""


def _stack(cell: str, layers: int, size: int, residual: bool) -> str:
    name = cell.upper() if cell != "elman" else "Elman"
    return f"{name}, {layers} layer{'s' if layers > 1 else ''} of {size}{', residual' if residual else ''}"
