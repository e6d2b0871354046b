"""The model section of a configuration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from nmt.attention.config import AttentionConfig
from nmt.attention.registry import NoScore
from nmt.config.kinds import BareKind, DefaultKind
from nmt.config.structure import Structure
from nmt.models.names import matching
from nmt.models.rnn.config import ContextConfig, RNNDecoderConfig, RNNEncoderConfig
from nmt.models.rnn.readers_config import AnyRNNDecoder, ContextSourceConfig
from nmt.models.transformer.config import TransformerDecoderConfig, TransformerEncoderConfig
from nmt.nn.config import DropoutConfig, EmbeddingConfig


class EmbeddingsEncoderConfig(Structure):
    """An encoder whose states are the word embeddings times the root of their width, ``embedding.size``."""

    kind: Literal["embeddings"] = "embeddings"
    positions: Literal["none", "sinusoidal", "learned"] = "none"
    """Vectors of positions that are added to the embeddings, as in a Transformer; ``none`` gives a bag of words. With
    ``learned`` there are 512 vectors, and all positions from the last one on share its vector."""

    @property
    def words(self) -> str:
        """A description for people."""
        return f"word embeddings, {self.positions} positions" if self.positions != "none" else "word embeddings"


class CopyingConfig(Structure):
    """Copies of source tokens, beside what the output layer generates."""

    kind: Literal["pointer"] = "pointer"
    """The pointer-generator of See et al. 2017: a gate divides each step between the output layer and the source
    tokens, by their weights of attention. See ``nmt.models.pointer``."""
    heads: str | None = None
    """Pattern of the names of the heads whose mean weights are copied by, such as ``layer6.*``; null: all heads, and in
    a Transformer those of the top layer."""


AnyEncoder = Annotated[
    RNNEncoderConfig | TransformerEncoderConfig | EmbeddingsEncoderConfig,
    Field(discriminator="kind"),
    DefaultKind("rnn"),
    BareKind,
]
AnyDecoder = Annotated[
    AnyRNNDecoder | TransformerDecoderConfig, Field(discriminator="kind"), DefaultKind("rnn"), BareKind
]
_DEFAULT_SCORES = {"transformer": "scaled_dot", "reencoding": "none", "glimpses": "none"}


class ModelConfig(Structure):
    """An encoder, a decoder, the attention between them and what they share; any encoder goes with any decoder."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    """Word embeddings."""
    encoder: AnyEncoder = RNNEncoderConfig()
    """The part that reads the source sentence."""
    decoder: AnyDecoder = RNNDecoderConfig()
    """The part that writes the translation, subword by subword."""
    attention: AttentionConfig = AttentionConfig()
    """Attention of the decoder to the source. The default score is ``scaled_dot`` for a Transformer, ``none`` for
    reencoding and glimpses, and otherwise ``additive``."""
    context: Annotated[ContextConfig | None, BareKind] = None
    """Shorthand for ``decoder.start``, ``decoder.context`` and ``decoder.summary``; it sets these and is null
    afterwards."""
    copying: Annotated[CopyingConfig | None, BareKind] = None
    """Copies of source tokens, for names and numbers; it needs a joint vocabulary. null: every token is generated."""
    dropout: DropoutConfig = DropoutConfig()
    """Dropout rates."""

    @property
    def memory_size(self) -> int:
        """Width of an encoder state."""
        return self.embedding.size if isinstance(self.encoder, EmbeddingsEncoderConfig) else self.encoder.memory_size

    @property
    def readout_size(self) -> int:
        """Width of the input of the output layer."""
        return self.decoder.readout_width(self.embedding.size, tied=self.embedding.tie != "none")

    @property
    def head_names(self) -> tuple[str, ...]:
        """Names of the decoder's heads; empty if there is no attention."""
        return self.decoder.head_names(self.attention.head_count)

    @property
    def copying_heads(self) -> list[int]:
        """Indices of the heads that copies are made by, in ``head_names``; raises ValueError if there are none."""
        assert self.copying is not None, "there are no copies"
        top = f"layer{self.decoder.layers}.*" if isinstance(self.decoder, TransformerDecoderConfig) else "*"
        return matching(self.head_names, self.copying.heads or top)

    @model_validator(mode="before")
    @classmethod
    def _score_goes_by_the_decoder(cls, tree: Any) -> Any:
        """Fills in the default score of the decoder's kind; malformed values are left to the errors of the fields."""
        if not isinstance(tree, dict):
            return tree
        decoder, attention = tree.get("decoder"), tree.get("attention", {})
        kind = decoder.get("kind") if isinstance(decoder, dict) else getattr(decoder, "kind", decoder)
        if isinstance(kind, str) and kind in _DEFAULT_SCORES and isinstance(attention, dict):
            return {**tree, "attention": {"score": _DEFAULT_SCORES[kind], **attention}}
        return tree

    @model_validator(mode="after")
    def _tied_widths_agree(self) -> ModelConfig:
        if self.embedding.tie != "none" and self.readout_size != self.embedding.size:
            raise ValueError(
                f"embedding.tie: {self.embedding.tie} needs decoder.readout_size ({self.readout_size}) to equal "
                f"embedding.size ({self.embedding.size}): change one, or leave readout_size out"
            )
        return self

    @model_validator(mode="after")
    def _context_is_a_shorthand(self) -> ModelConfig:
        if self.context is None:
            return self
        if isinstance(self.decoder, TransformerDecoderConfig):
            raise ValueError(f"context: {self.context.kind} is for decoder.kind: rnn; leave it out")
        return self.model_copy(update={"context": None, "decoder": self.context.apply(self.decoder)})

    @model_validator(mode="after")
    def _decoder_sees_the_source(self) -> ModelConfig:
        decoder, has_attention = self.decoder, not self.attention.is_none
        if isinstance(decoder, TransformerDecoderConfig):
            if has_attention:
                return self
            raise ValueError(
                "decoder.kind: transformer sees the source by attention alone, which attention.score: none takes away; "
                "name another score, or use decoder.kind: rnn"
            )
        if decoder.start == "raw" and self.memory_size != decoder.size:
            raise ValueError(
                f"decoder.start: raw (context: initial_state) needs decoder.size ({decoder.size}) to equal the width "
                f"of an encoder state ({self.memory_size}); change a size, or use projected"
            )
        if isinstance(decoder, ContextSourceConfig) and has_attention:
            raise ValueError(f"decoder.kind: {decoder.kind} needs attention.score: none")
        if has_attention or isinstance(decoder, ContextSourceConfig):
            return self
        if decoder.context_gate:
            raise ValueError("decoder.context_gate has no context to weigh with attention.score: none; leave it out")
        if decoder.query != "current":
            raise ValueError(f"decoder.query: {decoder.query} needs attention, and its score is none; leave it out")
        if decoder.query_embedding:
            raise ValueError("decoder.query_embedding has no query to widen with attention.score: none; leave it out")
        if decoder.start == "zeros" and decoder.context.enters == "nothing":
            raise ValueError(
                "decoder.start: zeros, decoder.context: nothing and attention.score: none leave the decoder nothing of "
                "the source; change one of them"
            )
        return self

    @model_validator(mode="after")
    def _positions_may_be_sequential(self) -> ModelConfig:
        attention = self.attention
        stateful = [each for each in (attention.score, attention.weights) if each.is_stateful]
        if stateful and isinstance(self.decoder, TransformerDecoderConfig):
            raise ValueError(
                f"attention: {stateful[0].kind} reads the weights of the step before, and a Transformer computes all "
                "steps at once; use decoder.kind: rnn, or another mechanism"
            )
        if stateful and attention.weights.marginalizes:
            raise ValueError(
                f"attention.weights: {attention.weights.kind} with training: marginal computes all steps at once, and "
                f"score: {stateful[0].kind} reads the weights of the step before; use training: reinforce"
            )
        return self

    @model_validator(mode="after")
    def _keys_are_projected_once(self) -> ModelConfig:
        if self.attention.key_size is not None and isinstance(self.decoder, TransformerDecoderConfig):
            raise ValueError(
                "attention.key_size is for decoder.kind: rnn; a Transformer projects keys apart from values in each "
                "head anyway; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _heads_have_a_place(self) -> ModelConfig:
        heads = self.attention.heads
        if heads > 1 and isinstance(self.decoder, TransformerDecoderConfig):
            raise ValueError("attention.heads is for decoder.kind: rnn; a Transformer has decoder.heads")
        if self.memory_size % heads:
            raise ValueError(f"attention.heads: {heads} must divide the size of an encoder state, {self.memory_size}")
        return self

    @model_validator(mode="after")
    def _copies_have_weights(self) -> ModelConfig:
        if self.copying is None:
            return self
        if not self.head_names:
            raise ValueError("copying needs attention to the source, and attention.score is none; leave copying out")
        if self.attention.weights.marginalizes:
            raise ValueError(
                f"copying: attention.weights: {self.attention.weights.kind} with training: marginal sums over what is "
                "read at each position; use training: reinforce, or leave copying out"
            )
        try:
            _ = self.copying_heads
        except ValueError as error:
            raise ValueError(f"copying.heads: {error}") from error
        return self

    @model_validator(mode="after")
    def _enumeration_is_exact(self) -> ModelConfig:
        attention, decoder = self.attention, self.decoder
        if not attention.weights.marginalizes:
            return self
        if isinstance(decoder, TransformerDecoderConfig):
            raise ValueError(
                f"attention.weights: {attention.weights.kind} with training: marginal sums over all positions of one "
                "attention, and a Transformer decoder has one in each layer and head; use training: reinforce, or "
                "decoder.kind: rnn"
            )
        if not isinstance(decoder.self_attention, NoScore):
            raise ValueError(
                f"attention.weights: {attention.weights.kind} with training: marginal reads no context but that of the "
                "source; leave decoder.self_attention out"
            )
        if decoder.context_gate:
            raise ValueError(
                f"attention.weights: {attention.weights.kind} with training: marginal reads one position at a time; "
                "leave decoder.context_gate out"
            )
        if decoder.query != "current" or decoder.input_feeding:
            raise ValueError(
                f"attention.weights: {attention.weights.kind} sums over all positions of a step, so no later step may "
                "depend on it: set decoder.query: current and decoder.input_feeding: false, or training: reinforce"
            )
        return self

    @model_validator(mode="after")
    def _dropout_has_its_place(self) -> ModelConfig:
        transformers = [name for name in ("encoder", "decoder") if getattr(self, name).kind == "transformer"]
        if transformers and self.dropout.variational:
            raise ValueError(f"dropout.variational is for recurrent layers, not for {transformers[0]}; leave it out")
        if not transformers and self.dropout.feed_forward > 0.0:
            raise ValueError("dropout.feed_forward is for an encoder or decoder that is a Transformer; leave it out")
        if self.attention.is_none and len(transformers) == 0 and self.dropout.attention > 0.0:
            raise ValueError("dropout.attention has no weights to drop with attention.score: none; leave it out")
        return self
