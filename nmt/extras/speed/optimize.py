"""Preparation of a trained model for searches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nmt import ops
from nmt.attention.attention import Attention
from nmt.attention.multihead import MultiHead
from nmt.attention.scores.additive import additive_energy
from nmt.core import log
from nmt.core.device import FASTEST, Compute
from nmt.extras.speed import native, operations
from nmt.extras.speed.cross_entropy import fused_cross_entropy
from nmt.extras.speed.cuda_graphs import graphed_advance, graphed_decode, graphed_step
from nmt.extras.speed.int8 import IN_FLOAT32, Int8Weight
from nmt.extras.speed.precision import fastest_on_cpu
from nmt.extras.speed.product import FastWeight, PackedWeight
from nmt.extras.speed.recurrent_stack import FastRecurrentStack
from nmt.extras.speed.transformer_decoder import FastTransformerDecoder, supports
from nmt.extras.speed.transformer_encoder import FastEncoderLayers
from nmt.models.loss import decode
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.rnn.encoder import RNNEncoder
from nmt.models.seq2seq import Seq2Seq, decoder_step
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import TransformerEncoder
from nmt.nn.output import OutputLayer
from nmt.nn.recurrent import RecurrentStack
from nmt.search.beam import advance_unconstrained
from nmt.search.repetition import payments
from nmt.translator.loading import for_inference


def register() -> None:
    """Replaces the bodies of ``nmt.ops`` by the implementations of this package."""
    additive_energy.register(operations.kernel_additive_energy)
    ops.attend.register(operations.fused_attend)
    ops.cross_entropy.register(fused_cross_entropy)
    ops.log_normalizer.register(operations.kernel_log_normalizer)
    ops.top_tokens.register(operations.kernel_top_tokens)
    payments.register(operations.kernel_payments)
    for_inference.register(optimize)
    decode.register(graphed_decode)
    decoder_step.register(graphed_step)
    FASTEST["cpu"] = fastest_on_cpu
    advance_unconstrained.register(graphed_advance)
    # oneDNN keeps a program for each shape of a product, by default the last 1,024: several hundred MiB for batches of
    # all lengths. The programs of one batch are enough, because hardly any shape comes again.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    # cuDNN's attention makes a plan for each new shape, which takes longer than the rest of an update of a small model
    torch.backends.cuda.enable_cudnn_sdp(False)


def optimize(model: Seq2Seq[Any, Any], compute: Compute) -> Seq2Seq[Any, Any]:
    """Returns the same model, frozen in the precision of ``compute``, with fast layers; for int8, weights are rounded.

    The model cannot be trained afterwards.
    """
    if compute.precision == "int8":
        kernels = native.kernels_for(compute.dtype, compute.device)
        if IN_FLOAT32 and not (kernels and kernels.has_integers):
            log.warning("--precision float32 will be faster on this CPU than int8")
        lay_out(model, partial(Int8Weight.of, dtype=compute.dtype))
    model.frozen().to(compute.dtype)
    if compute.precision != "int8" and compute.device.type == "cpu":
        lay_out(model, PackedWeight)
    encoder, decoder = model.encoder, model.decoder
    if isinstance(encoder, TransformerEncoder) and FastEncoderLayers.supports(encoder, compute.dtype):
        encoder.layers = nn.ModuleList([FastEncoderLayers(list(encoder.layers))])  # type: ignore[arg-type]
    if isinstance(decoder, TransformerDecoder) and supports(decoder, compute.dtype):
        model.decoder = FastTransformerDecoder(decoder)
    return model


_WEIGHTS: dict[type[nn.Module], Sequence[str]] = {
    OutputLayer: ["weight_VD"],
    nn.Linear: ["weight"],
    MultiHead: ["query_weight_QQ", "key_weight_QK", "value_weight_QK", "out_weight_QQ"],
    Attention: ["query_weight_AQ", "key_weight_AK", "key_projection_KD"],
}
"""Names of the weights of large products, some of which a module may lack."""


def lay_out(model: nn.Module, weight_of: Callable[[Tensor], FastWeight]) -> None:
    """Lays out the weights of large products, but not those of mechanisms, summaries and fusions.

    ``weight_of`` makes the new weight.
    """
    for module in list(model.modules()):
        names = next((names for kind, names in _WEIGHTS.items() if isinstance(module, kind)), ())
        for name in names:
            if (weight := getattr(module, name)) is not None:
                laid_out = weight_of(weight)
                if not isinstance(laid_out, PackedWeight):
                    delattr(module, name)  # a tied embedding keeps its own weight
                vars(module)[name] = laid_out  # which is found before the parameter
        if isinstance(module, RNNDecoder):
            stack = module.stack
            embedded = module.embedding.weight_VD.shape[1] + module.handover.input_size
            parts = [part for part in (embedded, stack.input_size - embedded) if part]
            module.stack = _laid_out(stack, parts, weight_of)
            if module.transition is not None:
                module.transition = _laid_out(module.transition, [module.transition.input_size], weight_of)
        elif isinstance(module, RNNEncoder):
            for stacks in filter(None, (module.forwards, module.backwards)):
                for layer, of_layer in enumerate(stacks):
                    assert isinstance(of_layer, RecurrentStack)
                    stacks[layer] = _laid_out(of_layer, [of_layer.input_size], weight_of)


def _laid_out(stack: RecurrentStack, parts: Sequence[int], weight_of: Callable[[Tensor], FastWeight]) -> RecurrentStack:
    # layer normalisation and deep transitions are computed in floating point
    return FastRecurrentStack(stack, parts, weight_of) if type(stack) is RecurrentStack else stack
