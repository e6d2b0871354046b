"""Configurations of recurrent decoders that read the source by other means than attention."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nmt.attention.reinforce import Rewarded
from nmt.models.rnn.config import RNNDecoderConfig


class ReaderConfig(RNNDecoderConfig):
    """A recurrent decoder that reads the source without attention, with ``attention.score: none``."""

    query: Literal["previous"] = "previous"
    """The query is the state before this step, and its context vector is an input of the cell."""
    query_embedding: Literal[False] = False
    input_feeding: bool = False


class ReencodingConfig(ReaderConfig):
    """A recurrent decoder that runs another encoder over the whole source at each step, starting from the decoder's
    state."""

    kind: Literal["reencoding"] = "reencoding"  # type: ignore[assignment]


class GlimpsesConfig(ReaderConfig, Rewarded):
    """The recurrent attention model (Mnih et al. 2014): a decoder that takes glimpses of positions that it draws."""

    kind: Literal["glimpses"] = "glimpses"  # type: ignore[assignment]
    count: Annotated[int, Field(ge=1, le=16)] = 2
    """Number of glimpses before each word; the cell takes a step after each of them."""
    scales: Annotated[int, Field(ge=1, le=8)] = 3
    """Number of windows of a glimpse, which are 1, 3, 7 ... words wide."""
    deviation: Annotated[float, Field(gt=0.0)] = 1.0
    """Standard deviation of the positions that training draws, in subwords."""

    def head_names(self, count: int) -> tuple[str, ...]:
        """Names of the heads, one for each glimpse: its weights are the mean of its windows."""
        return tuple(f"glimpse{glimpse}" for glimpse in range(1, self.count + 1))


AnyRNNDecoder = RNNDecoderConfig | ReencodingConfig | GlimpsesConfig
