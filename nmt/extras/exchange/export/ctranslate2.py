"""A Transformer as a model of CTranslate2 (https://github.com/OpenNMT/CTranslate2), an inference engine in C++."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.attention.multihead import MultiHead, Projection, joined
from nmt.attention.scores.dot import Dot
from nmt.data.tokenizer import TokenizerPair
from nmt.data.vocabulary import EOS, UNK
from nmt.extras.exchange.export.limits import TRANSFORMERS, check_limits
from nmt.models.config import ModelConfig
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer.config import TransformerConfig
from nmt.nn.feed_forward import FeedForward
from nmt.nn.positions import Learned, Sinusoidal

POSITIONS = 4096
"""Number of positions in the exported table, the limit for CTranslate2."""

_SCORES = ("dot", "scaled_dot")
_POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned")


def check(config: ModelConfig) -> None:
    """Raises InputError, with the key, for a model that CTranslate2 cannot compute."""
    check_limits(config, "CTranslate2", TRANSFORMERS, others="onnx")
    side = {"score": _SCORES, "positions": _POSITIONS, "size": [config.embedding.size]}
    limits = {
        **{f"{name}.{key}": accepted for name in ("encoder", "decoder") for key, accepted in side.items()},
        "encoder.causal": [False],
        "copying": [None],
        "attention.score": _SCORES,
        "attention.weights": ["softmax"],
        "attention.weights.temperature": [1.0],
    }
    check_limits(config, "CTranslate2", limits, others="onnx")


def save(model: Seq2Seq[Any, Any], config: ModelConfig, tokenizers: TokenizerPair, folder: Path) -> None:
    """Writes a model in float32, whose configuration has passed ``check``, into an empty folder. CTranslate2 chooses
    the precision of computation when it loads the model."""
    from ctranslate2.specs import TransformerSpec, transformer_spec

    encoder, decoder = config.encoder, config.decoder
    assert isinstance(encoder, TransformerConfig)
    assert isinstance(decoder, TransformerConfig)
    spec = TransformerSpec(
        transformer_spec.TransformerEncoderSpec(encoder.layers, encoder.heads, **_options(encoder)),
        transformer_spec.TransformerDecoderSpec(decoder.layers, decoder.heads, **_options(decoder)),
    )
    _set_side(spec.encoder, model.encoder, encoder, spec.encoder.embeddings[0])
    _set_side(spec.decoder, model.decoder, decoder, spec.decoder.embeddings)
    decoder_layers: Any = model.decoder.layers
    for layer, own in zip(decoder_layers, spec.decoder.layer, strict=True):
        attention, score = layer.attention, config.attention.score
        query, *key_value = attention.self_projections()
        _set_linear(own.attention.linear[0], *_query(query, attention, score))
        _set_linear(own.attention.linear[1], *joined(key_value))
        _set_linear(own.attention.linear[2], attention.out_weight_QQ, attention.out_bias_Q)
        _set_norm(own.attention.layer_norm, layer.attention_residual.norm)
    _set_linear(spec.decoder.projection, model.output.weight_VD, model.output.bias_V)
    source, target = tokenizers.source, tokenizers.target
    spec.register_source_vocabulary(source.pieces(range(source.size)))
    spec.register_target_vocabulary(target.pieces(range(target.size)))
    spec.config.unk_token, bos, spec.config.eos_token = target.pieces([UNK, target.begin, EOS])
    spec.config.bos_token = spec.config.decoder_start_token = bos
    spec.config.add_source_eos = True
    spec.validate()
    spec.save(str(folder))


def _options(config: TransformerConfig) -> dict[str, Any]:
    from ctranslate2.specs import common_spec

    name = config.activation
    activation = common_spec.Activation["SWISH" if name in ("silu", "swiglu") else name.upper()]
    return {"pre_norm": config.norm == "pre", "activation": activation, "ffn_glu": name == "swiglu"}


def _set_side(spec: Any, module: Any, config: TransformerConfig, embeddings: Any) -> None:
    """Sets the weights that encoder and decoder have in common."""
    table_VD = module.embedding.weight_VD
    embeddings.weight = _array(table_VD)
    spec.scale_embeddings = config.scale_embedding
    spec.position_encodings.encodings = _array(_positions(module.entrance.positions, table_VD.shape[1]))
    for layer, own in zip(module.layers, spec.layer, strict=True):
        is_encoder = not hasattr(layer, "self_attention")
        attention: MultiHead = layer.attention if is_encoder else layer.self_attention
        residual = layer.attention_residual if is_encoder else layer.self_attention_residual
        query, *key_value = attention.self_projections()
        _set_linear(own.self_attention.linear[0], *joined([_query(query, attention, config.score), *key_value]))
        _set_linear(own.self_attention.linear[1], attention.out_weight_QQ, attention.out_bias_Q)
        _set_norm(own.self_attention.layer_norm, residual.norm)
        _set_feed_forward(own.ffn, layer.feed_forward)
        _set_norm(own.ffn.layer_norm, layer.feed_forward_residual.norm)
    if config.norm == "pre":
        _set_norm(spec.layer_norm, module.norm)


def _query(query: Projection, attention: MultiHead, score: object) -> Projection:
    """Returns the query's projection; CTranslate2 always divides by the square root of a head's width."""
    if not isinstance(score, Dot):
        return query
    factor = math.sqrt(len(query.weight_QX) // attention.heads)
    return Projection(query.weight_QX * factor, None if query.bias_Q is None else query.bias_Q * factor)


def _positions(positions: object, size: int) -> Tensor:
    if isinstance(positions, Learned):
        table_PD: Tensor = positions.table_PD
        rest = max(POSITIONS - len(table_PD), 0)
        return torch.cat([table_PD, table_PD[-1:].expand(rest, size)])[:POSITIONS]
    assert isinstance(positions, Sinusoidal)
    return positions.vectors(torch.arange(POSITIONS)[None], size)[0]


def _set_feed_forward(spec: Any, block: FeedForward) -> None:
    if block.activation == "swiglu":
        (gate_FD, value_FD), (gate_F, value_F) = block.rise.weight.chunk(2), block.rise.bias.chunk(2)
        _set_linear(spec.linear_0, gate_FD, gate_F)
        _set_linear(spec.linear_0_noact, value_FD, value_F)
    else:
        _set_linear(spec.linear_0, block.rise.weight, block.rise.bias)
    _set_linear(spec.linear_1, block.fall.weight, block.fall.bias)


def _set_linear(spec: Any, weight: Tensor, bias: Tensor | None = None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _set_norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().cpu().float().contiguous().numpy()
