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

_BLOCKS = {
    "encoder": {"attention": "self_attn", "attention_residual.norm": "self_attn_layer_norm"},
    "decoder": {
        "self_attention": "self_attn",
        "self_attention_residual.norm": "self_attn_layer_norm",
        "attention": "encoder_attn",
        "attention_residual.norm": "encoder_attn_layer_norm",
    },
}
_INSIDE = {"feed_forward.rise": "fc1", "feed_forward.fall": "fc2", "feed_forward_residual.norm": "final_layer_norm"}
_PROJECTION = re.compile(r"(query|key|value|out)_(weight|bias)_Q[QK]?")
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)\.([^.]+)")


def name_of_layer_weight(ours: str) -> str | None:
    """Returns the name of a layer's weight in MarianMT; None for embeddings and the output layer."""
    if (match := _LAYER.fullmatch(ours)) is None:
        return None
    side, number, part, leaf = match.groups()
    if projection := _PROJECTION.fullmatch(leaf):
        inside = (
            f"{_BLOCKS[side][part]}.{projection[1][0]}{'ut' if projection[1] == 'out' else ''}_proj.{projection[2]}"
        )
    else:
        inside = f"{(_BLOCKS[side] | _INSIDE)[part]}.{leaf}"
    return f"model.{side}.layers.{number}.{inside}"
