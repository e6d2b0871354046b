"""The attention section of a configuration."""

from __future__ import annotations

from pydantic import model_validator

from nmt.attention.registry import AnyNormalizer, AnyScoreOrNone, NoScore
from nmt.attention.scores.additive import Additive
from nmt.attention.weights.softmax import Softmax
from nmt.config.structure import Structure


class AttentionConfig(Structure):
    """Score and weights, each by name or with its settings: ``additive`` or ``{kind: additive, size: 512}``."""

    score: AnyScoreOrNone = Additive()
    """How well a query of the decoder and a key, a state of the encoder, go together; ``none``: no attention."""
    weights: AnyNormalizer = Softmax()
    """What makes weights of the scores of all source positions."""

    @property
    def is_none(self) -> bool:
        """True where the decoder has no attention."""
        return isinstance(self.score, NoScore)

    @model_validator(mode="after")
    def _weights_have_a_score(self) -> AttentionConfig:
        if self.is_none and self.weights != Softmax():
            raise ValueError(f"score: none leaves weights: {self.weights.kind} nothing to weigh; leave weights out")
        return self
