"""Soft alignments without attention: the effect of each source word's embedding on the score of a given target word.

With e_s the embedding of source token s that enters the encoder, y_t the given target token and y_<t those before it
(teacher forcing), row t holds the following values, scaled to sum to 1 (magnitude `relative`) or unscaled (`raw`):

    gradient           || d log p(y_t | y_<t, e) / d e_s ||      Li et al. 2016, Simonyan et al. 2014
    input-x-gradient   | e_s . d log p(y_t | y_<t, e) / d e_s |  Denil et al. 2014, Ding, Xu & Koehn 2019

`gradient` is the steepest change of the score with the embedding, in any direction. (Li et al. show the absolute
derivative by each of its dimensions, Simonyan et al., section 3, the largest of a pixel's channels; the Euclidean norm
is one number for all.) `input-x-gradient` is the derivative by a factor 1 that the embedding is multiplied by, or by
the 1 in the token's one-hot vector: to first order, how much the score would fall if the embedding were 0. Ding et al.
keep its sign, as magnitude `signed` does. A distribution has no signs, so otherwise the absolute value is taken, as in
Jain & Wallace 2019 (algorithm 1).

Papers: Li, Chen, Hovy & Jurafsky 2016, "Visualizing and Understanding Neural Models in NLP"; Simonyan, Vedaldi &
Zisserman 2014, "Deep Inside Convolutional Networks"; Denil, Demiraj & de Freitas 2014, "Extraction of Salient Sentences
from Labelled Documents"; Ding, Xu & Koehn 2019, "Saliency-driven Word Alignment Interpretation for Neural Machine
Translation"; Jain & Wallace 2019, "Attention is not Explanation".

Shapes: B sentences, T target tokens and S source tokens, both with end-of-sentence, E width of an embedding, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.alignment.forced import in_batches
from nmt.alignment.request import AlignmentRequest
from nmt.core.device import Compute
from nmt.data.batching import TokenIds
from nmt.models.seq2seq import Seq2Seq


def gradient_weights(
    model: Seq2Seq[Any, Any], sources: TokenIds, targets: TokenIds, compute: Compute, *,
    requests: Sequence[AlignmentRequest], batch_tokens: int,
) -> list[tuple[NDArray[np.float32], ...]]:  # fmt: skip
    """Computes the matrices weights_TS of each pair of token ids (without end-of-sentence), one for each of
    ``requests``, by its method and magnitude.

    Row t belongs to target token t; the last row and column belong to end-of-sentence. Relative rows sum to 1; a row
    without any gradient is uniform. Gradients are taken in the model's precision, once for all requests. The model must
    be in eval mode; neither it nor the gradients of its parameters change.

    Time grows with the square of the target's length and with the length of the source, memory with the product of both
    lengths.
    """
    assert not model.training

    def saliency(source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor, ...]:
        # cuDNN has a backward pass for recurrent layers in training mode only
        without_cudnn = torch.backends.cudnn.flags(enabled=False)
        with torch.enable_grad(), compute.autocast(), _frozen(model), without_cudnn:
            return _saliency(model, source_BS, target_BT, requests)

    return in_batches(saliency, sources, targets, compute.device, batch_tokens=batch_tokens)


def _saliency(
    model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, requests: Sequence[AlignmentRequest]
) -> tuple[Tensor, ...]:
    """Computes the weights (B, T, S) of each request by one forward pass, with a backward pass from each step as soon
    as it is computed.

    A step does not depend on later ones, so its backward pass is as long as the target so far. Through
    ``model.teacher_forced``, which computes the readouts of all steps together, each pass would go through all of them.
    One backward pass over as many copies of the sentence as it has target tokens was slower as well.
    """
    is_pad_BS = source_BS == model.pad
    embedded_BSE = model.encoder.embed(source_BS).detach().requires_grad_(True)
    memory = model.encode_embedded(embedded_BSE, source_BS)
    state, token_B = model.start(memory), model.first_token(len(source_BS), source_BS.device)
    weights: list[list[Tensor]] = [[] for _ in requests]
    for gold_B in target_BT.unbind(dim=1):
        step = model.step(token_B, memory, state)
        # sentences are independent, so the gradient of the sum contains the gradient of each
        score_B = log_odds(step.logits_NV, gold_B)
        (gradient_BSE,) = torch.autograd.grad(score_B.sum(), embedded_BSE, retain_graph=True)
        others_B1 = (-score_B.detach()).sigmoid()[:, None]  # 1 - p
        effects_BS = _effects(embedded_BSE.detach(), gradient_BSE)
        for rows, request in zip(weights, requests, strict=True):
            effect_BS = effects_BS[request.method]
            size_BS = effect_BS if request.magnitude == "signed" else effect_BS.abs()
            if request.magnitude == "relative":
                rows.append(_distribution(size_BS, is_pad_BS))
            else:
                rows.append(others_B1 * size_BS.masked_fill(is_pad_BS, 0.0))
        state, token_B = step.state, gold_B
    return tuple(torch.stack(rows, dim=1) for rows in weights)


def log_odds(logits_BV: Tensor, gold_B: Tensor) -> Tensor:
    """Computes log(p / (1 - p)) of the gold tokens, (B,), in float32 or wider.

    Because d log p = (1 - p) d log(p / (1 - p)), its gradient equals that of log p except for a factor, which scaling a
    row to sum to 1 removes (as it removes the factor between log p and p). If the model is certain, however, the
    gradient of log p is lost in rounding, and this one is not. A logit alone would leave out the effect of a source
    word on the other tokens.
    """
    logits_BV = logits_BV.to(torch.promote_types(logits_BV.dtype, torch.float32))
    gold_B1 = gold_B[:, None]
    others_BV = logits_BV.scatter(1, gold_B1, -torch.inf)
    log_odds_B: Tensor = logits_BV.gather(1, gold_B1)[:, 0] - others_BV.logsumexp(dim=1)
    return log_odds_B


def _effects(embedded_BSE: Tensor, gradient_BSE: Tensor) -> dict[str, Tensor]:
    """Computes the effect of each source token, (B, S), by each method, in float32 or wider."""
    dtype = torch.promote_types(gradient_BSE.dtype, torch.float32)
    return {
        "gradient": torch.linalg.vector_norm(gradient_BSE, dim=2, dtype=dtype),
        "input-x-gradient": (embedded_BSE.to(dtype) * gradient_BSE.to(dtype)).sum(dim=2),
    }


def _distribution(size_BS: Tensor, is_pad_BS: Tensor) -> Tensor:
    """Scales sizes to sum to 1 over S. They are exactly 0 at padding, and uniform if all sizes are 0."""
    size_BS = size_BS.masked_fill(is_pad_BS, 0.0)
    # divided by the largest first: a sum of very small numbers may have no exact reciprocal
    largest_B1 = size_BS.amax(dim=1, keepdim=True)
    size_BS = torch.where(largest_B1 > 0, size_BS / largest_B1, (~is_pad_BS).to(size_BS.dtype))
    return size_BS / size_BS.sum(dim=1, keepdim=True)


@contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """Excludes all parameters from differentiation: only the gradient of the embeddings is needed."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
