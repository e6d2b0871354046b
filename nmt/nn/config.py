"""Settings of the layers in a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nmt.config.file_path import FilePath
from nmt.config.structure import Structure

Rate = Annotated[float, Field(ge=0.0, le=0.99)]
Size = Annotated[int, Field(gt=0, le=1 << 20)]
Layers = Annotated[int, Field(gt=0, le=1000)]


class PretrainedConfig(Structure):
    """Word vectors that embeddings start from, in the text format of word2vec and fastText. A plain path is a file for
    both sides. With tie: all, both files fill one table, and a token that is in both gets its vector from source."""

    source: FilePath | None = None
    """File of the source embedding; null means random vectors."""
    target: FilePath | None = None
    """File of the target embedding, which with ``tie`` is also the output layer's weight; null means random vectors."""
    frozen: bool = False
    """Do not train the tables that have a file; tokens without a vector then keep a random one."""

    @property
    def files(self) -> list[Path]:
        """Returns the paths of the files, one or two."""
        return [path for path in (self.source, self.target) if path is not None]

    @model_validator(mode="after")
    def _some_file(self) -> Self:
        if not self.files:
            raise ValueError("names no file; give source, target, or a bare path for both")
        return self


def _for_both(value: Any) -> Any:
    return {"source": value, "target": value} if isinstance(value, str) else value


class EmbeddingConfig(Structure):
    """Word embeddings and what they share (Press & Wolf 2017, "Using the Output Embedding to Improve LMs")."""

    size: Size = 256
    """Width of an embedding."""
    tie: Literal["none", "output", "all"] = "none"
    """Weights that are shared: with ``output`` the output layer's weight is the target embedding, with ``all`` the
    source embedding is the same matrix too (needs a joint vocabulary). A tied output layer needs a readout as wide as
    the embedding."""
    pretrained: Annotated[
        PretrainedConfig | None, BeforeValidator(_for_both, json_schema_input_type=FilePath | PretrainedConfig | None)
    ] = None
    """Word vectors to start from; null means random vectors."""


class DropoutConfig(Structure):
    """Rates of dropout (Srivastava 2014), as probabilities of dropping."""

    embedding: Rate = 0.2
    """Rate for source and target embeddings."""
    layers: Rate = 0.2
    """Rate in a recurrent model between stacked layers, on the encoder's states and on the decoder's readout; in a
    Transformer on the output of each block, before the residual connection adds it."""
    attention: Rate = 0.0
    """Rate for attention weights."""
    feed_forward: Rate = 0.0
    """Rate inside a Transformer's feed-forward blocks."""
    variational: bool = False
    """Use one mask for all positions of a sentence, in recurrent encoders and decoders, instead of one for each
    position (Gal & Ghahramani 2016)."""
