"""The recurrent encoder's and decoder's sections of a configuration."""

from __future__ import annotations

from typing import Literal

from nmt.core.structure import Structure
from nmt.layers.config import Size

Cell = Literal["elman", "gru", "lstm"]


class RNNEncoderConfig(Structure):
    """A recurrent encoder."""

    kind: Literal["rnn"] = "rnn"
    cell: Cell = "lstm"
    layers: Size = 1
    size: Size = 256
    """Width of the state, per direction."""
    bidirectional: bool = True


class RNNDecoderConfig(Structure):
    """A recurrent decoder with attention."""

    kind: Literal["rnn"] = "rnn"
    cell: Cell = "lstm"
    layers: Size = 1
    size: Size = 512
    """Width of the state."""
    query: Literal["previous", "current"] = "current"
    """Which state asks: the one before this step, whose context enters the cell (Bahdanau), or this step's (Luong)."""
    input_feeding: bool = True
    """Whether the last step's readout is part of the cell's input (Luong et al. 2015, section 3.3)."""
    readout_size: Size | None = None
    """Width of the readout, which the output layer reads; null: the decoder's size, or the embedding's if tied."""
    readout_embedding: bool = False
    """Whether the readout also sees the last word's embedding (Bahdanau et al. 2015, appendix A.2.2)."""
