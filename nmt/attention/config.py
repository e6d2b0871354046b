"""The attention section of a configuration."""

from __future__ import annotations

from nmt.attention.registry import AnyScore, AnyWeighting
from nmt.attention.scores.additive import Additive
from nmt.attention.weights.softmax import Softmax
from nmt.core.structure import Structure


class AttentionConfig(Structure):
    """Score and weights, each by name or with its settings: ``additive`` or ``{kind: additive, size: 512}``."""

    score: AnyScore = Additive()
    weights: AnyWeighting = Softmax()
