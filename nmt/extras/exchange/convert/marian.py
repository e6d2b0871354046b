"""MarianMT, the Transformers of Marian in the format of Hugging Face's transformers: files, and the names of weights.

(Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; Tiedemann and Thottingal 2020, "OPUS-MT:
Building open translation services for the World".)
"""

from __future__ import annotations

import re

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SOURCE, TARGET = "source.spm", "target.spm"
WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"
CARD = "README.md"

SHARED, HEAD, BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
TABLES = {"encoder": "model.encoder.embed_tokens.weight", "decoder": "model.decoder.embed_tokens.weight"}
POSITIONS = {"encoder": "model.encoder.embed_positions.weight", "decoder": "model.decoder.embed_positions.weight"}

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
"""Names of activations in nmt, by their names in MarianMT."""

SIDE = {"layers": "layers", "attention_heads": "heads", "ffn_dim": "feed_forward"}
"""Keys of the sections of encoder and decoder, by their names in MarianMT, which begin with ``encoder_`` or
``decoder_`` there."""
DROPOUT = {"dropout": "layers", "attention_dropout": "attention", "activation_dropout": "feed_forward"}
"""Keys of ``model.dropout``, by their names in MarianMT."""
FIXED = {
    "static_position_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
}
"""Settings with one value that can be converted; it is that of ``FIXED_SIDE``."""
FIXED_SIDE = {"norm": "post", "positions": "sinusoidal_halves", "attention_bias": True}
"""The same settings in the sections of encoder and decoder."""

_ROWS = {
    "encoder.embedding.table.weight": (TABLES["encoder"], "encoder"),
    "decoder.embedding.table.weight": (TABLES["decoder"], "decoder"),
    "output.weight_VD": (HEAD, "decoder"),
    "output.bias_V": (BIAS, "decoder"),
}
_PARTS = {
    "self_attention": "self_attn",
    "self_attention_residual.norm": "self_attn_layer_norm",
    "feed_forward.rise": "fc1",
    "feed_forward.fall": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
_ATTENTION = {"encoder": "self_attn", "decoder": "encoder_attn"}
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)\.([^.]+)")
_PROJECTION = re.compile(r"(q|k|v|out)(?:uery|ey|alue)?_(weight|bias)_Q[QK]?")


def counterpart(ours: str) -> tuple[str, str | None]:
    """Returns the name of a weight in MarianMT and, if its rows belong to tokens, the side whose vocabulary orders
    them."""
    if (match := _LAYER.fullmatch(ours)) is None:
        return _ROWS[ours]
    side, number, part, leaf = match.groups()
    attention = _ATTENTION[side]
    parts = {**_PARTS, "attention": attention, "attention_residual.norm": f"{attention}_layer_norm"}
    leaf = _PROJECTION.sub(r"\1_proj.\2", leaf)
    return f"model.{side}.layers.{number}.{parts[part]}.{leaf}", None
