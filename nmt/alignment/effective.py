"""The part of attention that the output depends on (Brunner et al. 2020, "On Identifiability in Transformers", section
4.1).

The context of weights a over values V, (S, A), is a V, to which the part of a in the left null space of V adds nothing.
Where a sentence has more tokens than a value has numbers, only the effective weights, the projection of a onto the
column space of V, are determined by the output:

    a_eff = a V V^+,   a_eff V = a V

Shapes: B sentences, T target and S source tokens with end-of-sentence, H heads, A width of a value.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmt.alignment.forced import in_batches
from nmt.attention.attention import Attention
from nmt.core.device import Compute
from nmt.core.record import BatchRecord
from nmt.data.batching import TokenIds
from nmt.models.seq2seq import Seq2Seq


def effective_shares(
    model: Seq2Seq[Any, Any], sources: TokenIds, targets: TokenIds, compute: Compute, *, batch_tokens: int
) -> list[float]:
    """Computes |a_eff|² / |a|², the mean over the heads, for each target token, without end-of-sentence, of pairs of
    token ids. It is 1 where the output determines the weights. The model must have attention, and be in eval mode."""
    assert not model.training

    @torch.inference_mode()
    def shares(source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor]:
        with compute.autocast():
            memory = model.encode(source_BS)
            weights_BHTS = model.teacher_forced(target_BT, memory).weights_BHTS.double()
        values_BHSA = head_values(memory, weights_BHTS.shape[1], source_BS == model.pad)
        whole_BHT = weights_BHTS.square().sum(dim=-1)
        seen_BHT = effective(weights_BHTS, values_BHSA).square().sum(dim=-1)
        return ((seen_BHT / whole_BHT).mean(dim=1)[:, :, None],)

    found = in_batches(shares, sources, targets, compute.device, batch_tokens=batch_tokens)
    return [share for (share_T1,) in found for share in share_T1[:-1, 0].tolist()]


def reads_weights(model: Seq2Seq[Any, Any]) -> bool:
    """Returns True if a model reads its weights besides the contexts: to copy, or as a state of attention."""
    stateful = any(isinstance(module, Attention) and module.is_stateful for module in model.modules())
    return stateful or type(model) is not Seq2Seq


def effective(weights_HTS: Tensor, values_HSA: Tensor) -> Tensor:
    """Projects the weights of each head onto the column space of its values, (..., H, T, S)."""
    # the left singular vectors of V with singular values above 0 are an orthonormal basis of its column space
    basis_HSK, size_HK, _ = torch.linalg.svd(values_HSA, full_matrices=False)
    least_H1 = size_HK[..., :1] * max(values_HSA.shape[-2:]) * torch.finfo(torch.float32).eps
    basis_HSK = basis_HSK * (size_HK > least_H1)[..., None, :]
    effective_HTS: Tensor = weights_HTS @ basis_HSK @ basis_HSK.mT
    return effective_HTS


def head_values(memory: BatchRecord, heads: int, is_pad_BS: Tensor) -> Tensor:
    """Collects the values of each head of the weights, (B, H, S, A) in float64 and 0 at padding. Heads that look at the
    same values are neighbours."""
    found = [
        tensor if tensor.dim() == 4 else tensor[:, None]
        for name, tensor in zip(memory.names(), memory.tensors(), strict=True)
        if name.rpartition(".")[2] == "values"
    ]
    values_BHSA = torch.cat(found, dim=1).double()
    values_BHSA = values_BHSA.repeat_interleave(heads // values_BHSA.shape[1], dim=1)
    return values_BHSA.masked_fill(is_pad_BS[:, None, :, None], 0.0)
