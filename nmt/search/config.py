"""The search section of a configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nmt.core.structure import Structure


class SearchConfig(Structure):
    """How translations are looked for."""

    beam: Annotated[int, Field(gt=0, le=1000)] = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: Annotated[float, Field(ge=0.0)] = 1.0
    """Exponent of the GNMT length penalty; 0 ranks by plain log-probability. See ``nmt.search.scoring``."""
    max_length_ratio: Annotated[float, Field(gt=0.0)] = 2.0
    """A translation has at most this many tokens for each source token, and ten more."""
    max_source_tokens: Annotated[int, Field(gt=0)] = 1000
    """A longer source sentence is cut there, with a warning."""
    batch_tokens: Annotated[int, Field(gt=0)] = 2048
    """Source tokens decoded together, padding included."""
