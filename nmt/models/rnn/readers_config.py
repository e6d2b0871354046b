"""Configurations of recurrent decoders that read the source by other means than attention."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nmt.attention.reinforce import ReinforceOptions
from nmt.models.rnn.config import RNNDecoderConfig


class ContextSourceConfig(RNNDecoderConfig):
    """A recurrent decoder that looks at the source in a way of its own, with ``attention.score: none``."""

    query: Literal["previous"] = "previous"
    """The query is the state before this step, and its context vector is an input of the cell."""
    query_embedding: Literal[False] = False
    input_feeding: bool = False


class ReencodingConfig(ContextSourceConfig):
    """A recurrent decoder whose state starts another encoder at each step, which reads the whole source again."""

    kind: Literal["reencoding"] = "reencoding"  # type: ignore[assignment]


class GlimpsesConfig(ContextSourceConfig, ReinforceOptions):
    """The recurrent attention model (Mnih et al. 2014): a decoder that takes glimpses of places that it draws."""

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
