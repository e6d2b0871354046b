"""Settings of the layers in a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nmt.config.structure import Structure

Rate = Annotated[float, Field(ge=0.0, le=0.99)]
Size = Annotated[int, Field(gt=0, le=1 << 20)]
Layers = Annotated[int, Field(gt=0, le=1000)]


class EmbeddingConfig(Structure):
    """Word embeddings and what they share (Press & Wolf 2017, "Using the Output Embedding to Improve LMs")."""

    size: Size = 256
    """Width of an embedding."""
    tie: Literal["none", "output", "all"] = "none"
    """``output``: the output layer's weight is the target embedding; ``all``: the source embedding too (needs a joint
    vocabulary). A tied output layer needs a readout as wide as the embedding."""


class DropoutConfig(Structure):
    """Rates of dropout (Srivastava 2014), as probabilities of dropping."""

    embedding: Rate = 0.2
    """On source and target embeddings."""
    layers: Rate = 0.2
    """Recurrent: between stacked layers, on the encoder's states and on the decoder's readout. Transformer: on what
    each block adds to the residual connection."""
    attention: Rate = 0.0
    """On attention weights."""
    feed_forward: Rate = 0.0
    """For a Transformer: inside its feed-forward blocks."""
    variational: bool = False
    """For recurrent encoders and decoders: one mask for all positions of a sentence instead of one for each (Gal &
    Ghahramani 2016)."""
