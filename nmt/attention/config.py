"""The attention section of a configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from nmt.attention.mechanism import Score
from nmt.attention.registry import AnyScoreOrNone, AnyWeighting, NoScore
from nmt.attention.reinforce import HardAttention
from nmt.attention.scores.additive import Additive
from nmt.attention.weights.softmax import Softmax
from nmt.config.structure import Structure
from nmt.nn.config import Size


class AttentionConfig(Structure):
    """Score and weights, each by name or with its settings: ``additive`` or ``{kind: additive, size: 512}``."""

    score: AnyScoreOrNone = Additive()
    """How well a query of the decoder and a key, a state of the encoder, go together; ``none``: no attention."""
    weights: AnyWeighting = Softmax()
    """Weighting function, which turns the scores of all source positions into weights."""
    key_size: Size | None = None
    """Width of the keys of a recurrent decoder: the score reads W x in place of each encoder state x, which stays the
    value. null means that the states are the keys as well."""

    heads: Annotated[int, Field(ge=1)] = 1
    """Number of heads of a recurrent decoder: each projects query, keys and values to its part of the width, and has
    score and weights of its own. A Transformer has ``decoder.heads``."""

    @property
    def is_none(self) -> bool:
        """Returns True if the decoder has no attention."""
        return isinstance(self.score, NoScore)

    @property
    def head_count(self) -> int:
        """Number of sets of weights that one attention gives."""
        return 0 if self.is_none else self.heads * self.weights.heads

    @model_validator(mode="after")
    def _weights_have_a_score(self) -> AttentionConfig:
        if self.is_none and self.weights != Softmax():
            raise ValueError(f"score: none leaves weights: {self.weights.kind} nothing to weigh; leave weights out")
        if self.key_size is not None and not (isinstance(self.score, Score) and self.score.reads_keys):
            raise ValueError(f"key_size: score: {self.score.kind} reads no keys; leave key_size out")
        if self.heads > 1:
            self._check_heads()
        return self

    def _check_heads(self) -> None:
        """Raises ValueError if several heads do not go with the other settings."""
        if self.is_none:
            raise ValueError("heads: score: none leaves them nothing to weigh; leave heads out")
        if self.key_size is not None:
            raise ValueError("key_size: several heads project the keys to widths of their own; leave key_size out")
        if isinstance(self.weights, HardAttention):
            raise ValueError(f"heads: weights: {self.weights.kind} learns one position a step; leave heads out")
