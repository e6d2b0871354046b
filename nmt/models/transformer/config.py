"""The Transformer encoder's and decoder's sections of a configuration."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from nmt.attention.registry import AnyScore
from nmt.attention.scores.scaled_dot import ScaledDot
from nmt.config.structure import Structure
from nmt.nn.config import Layers, Size

Activation = Literal["relu", "gelu", "silu", "swiglu"]
Positions = Literal["sinusoidal", "sinusoidal_halves", "learned", "rotary"]

ROTATING = ("dot", "scaled_dot", "cosine", "gaussian")
"""Scores that support rotary positions. They depend on query and key only through their inner product, which after
rotation depends on the distance of the positions, and through their lengths, which rotation keeps. ``general`` does
not: its matrix between the two makes the score depend on the positions themselves."""


class TransformerConfig(Structure):
    """Settings that encoder and decoder have in common (Vaswani et al. 2017, section 3)."""

    layers: Layers = 6
    """Number of layers, each with self-attention and a feed-forward block; a decoder's layer also attends to the
    source."""
    size: Size = 512
    """Width of a state."""
    heads: Size = 8
    """Number of attention heads, each of width size / heads, in self-attention and in the decoder's attention to the
    source."""
    feed_forward: Size = 2048
    """Width inside the feed-forward block."""
    activation: Activation = "relu"
    """Activation inside the feed-forward block: relu (Vaswani et al. 2017), gelu (Hendrycks & Gimpel 2016), silu, also
    named swish (Ramachandran et al. 2017), or swiglu (Shazeer 2020), which has a third matrix."""
    norm: Literal["pre", "post"] = "pre"
    """Place of layer normalisation: before each block, with one more at the end (Wang et al. 2019), or after the
    residual connection (Vaswani et al. 2017)."""
    positions: Positions = "sinusoidal"
    """Encoding of positions: ``sinusoidal`` or ``learned`` vectors are added to the embeddings (Vaswani et al. 2017;
    Gehring et al. 2017); with ``rotary`` the queries and keys of self-attention are rotated by their position (Su et
    al. 2021). With ``sinusoidal_halves`` all sines come before the cosines, as in Marian."""
    max_positions: Size = 512
    """Number of position vectors, only for positions: learned; all later positions share the last one."""
    scale_embedding: bool = True
    """Multiply embeddings by the root of their width before positions are added."""
    attention_bias: bool = False
    """Add a bias to the four projections of attention (query, key, value, output), as in Marian."""
    score: AnyScore = ScaledDot()
    """Score of self-attention, with softmax weights. ``model.attention`` is the decoder's attention to the source."""

    @property
    def words(self) -> str:
        """A description for people."""
        layers = f"{self.layers} layer{'s' if self.layers > 1 else ''} of {self.size}"
        return f"Transformer, {layers}, {self.heads} heads, feed-forward {self.feed_forward}"

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> TransformerConfig:
        if self.size % self.heads:
            raise ValueError(f"heads: {self.heads} must divide size ({self.size})")
        if self.score.is_stateful:
            raise ValueError(
                f"score: {self.score.kind} reads the weights of the step before, and self-attention computes all "
                "steps at once; use another score"
            )
        if self.positions == "rotary":
            if self.size // self.heads % 2:
                raise ValueError(f"positions: rotary needs an even size / heads, not {self.size // self.heads}")
            if self.score.kind not in ROTATING:
                raise ValueError(
                    f"positions: rotary shows in the inner product of query and key, and score: {self.score.kind} "
                    f"sees more of them; use a score of {', '.join(ROTATING)}, or positions: sinusoidal"
                )
        if self.max_positions != 512 and self.positions != "learned":
            raise ValueError(f"max_positions is for positions: learned alone, not {self.positions}; leave it out")
        return self


class TransformerEncoderConfig(TransformerConfig):
    """An encoder of self-attention and feed-forward blocks."""

    kind: Literal["transformer"] = "transformer"
    causal: bool = False
    """Let each state depend only on the source words up to its own, as training.wait needs it."""

    @property
    def words(self) -> str:
        """A description for people."""
        return super().words + ", causal" * self.causal

    @property
    def memory_size(self) -> int:
        """Width of an encoder state."""
        return self.size


class TransformerDecoderConfig(TransformerConfig):
    """A decoder of causal self-attention, attention to the source and feed-forward blocks."""

    kind: Literal["transformer"] = "transformer"

    def readout_width(self, embedding: int, *, tied: bool) -> int:
        """Width of the input of the output layer; states are projected if a tied embedding has another width."""
        return embedding if tied else self.size

    def head_names(self, count: int) -> tuple[str, ...]:
        """Names of the heads of the attention to the source, ``count`` for each of ``heads``, layer by layer from the
        bottom."""
        heads = range(1, self.heads * count + 1)
        return tuple(f"layer{layer}.head{head}" for layer in range(1, self.layers + 1) for head in heads)
