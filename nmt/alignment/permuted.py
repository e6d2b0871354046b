"""The effect of permuted attention on the output distribution (Jain & Wallace 2019, section 4.2.1).

At each step of a given target, from the decoder's own state, the weights alpha_s are permuted over the source positions
and the output distributions p_v, by the weights themselves, and q_v compared by their total variation distance

    TVD = 1/2 sum_v |p_v - q_v|

All heads of all layers are permuted alike; those of earlier steps are not. The contexts of permuted weights are those
of permuted values, sum_s alpha_pi(s) v_s = sum_s alpha_s v_pi^-1(s), so it is the values of the memory that are
permuted, whatever the mechanism.

Shapes: B sentences, K permutations, N = B x K rows, T target and S source tokens with end-of-sentence, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmt.alignment.forced import in_batches
from nmt.core.device import Compute
from nmt.core.record import BatchRecord
from nmt.data.batching import TokenIds
from nmt.models.seq2seq import Seq2Seq

PERMUTATIONS = 20
"""Number of permutations of the weights of each step; Jain & Wallace use 100."""


def permuted_distances(
    model: Seq2Seq[Any, Any], sources: TokenIds, targets: TokenIds, compute: Compute, *, batch_tokens: int,
    permutations: int = PERMUTATIONS, seed: int = 1,
) -> list[float]:  # fmt: skip
    """Computes the median distance over random permutations for each target token, without end-of-sentence, of pairs of
    token ids. The model must have attention, and be in eval mode."""
    assert not model.training
    generator = torch.Generator().manual_seed(seed)

    @torch.inference_mode()
    def distances(source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor]:
        is_pad_NS = (source_BS == model.pad).repeat_interleave(permutations, dim=0)
        medians: list[Tensor] = []
        with compute.autocast():
            memory = model.encode(source_BS)
            rows = memory.repeat(permutations)
            state, token_B = model.start(memory), model.first_token(len(source_BS), source_BS.device)
            for gold_B in target_BT.unbind(dim=1):
                order_NS = random_orders(is_pad_NS, generator)
                token_N = token_B.repeat_interleave(permutations)
                other = model.step(token_N, permute_values(order_NS, rows), state.repeat(permutations))
                step = model.step(token_B, memory, state)
                p_BV, q_NV = (each.logits_NV.float().softmax(dim=-1) for each in (step, other))
                difference_BKV = q_NV.view(len(p_BV), permutations, -1) - p_BV[:, None]
                medians.append(difference_BKV.abs().sum(dim=-1).quantile(0.5, dim=1) / 2)
                state, token_B = step.state, gold_B
        return (torch.stack(medians, dim=1)[:, :, None],)

    rows_tokens = max(1, batch_tokens // permutations)
    found = in_batches(distances, sources, targets, compute.device, batch_tokens=rows_tokens)
    return [distance for (distance_T1,) in found for distance in distance_T1[:-1, 0].tolist()]


def random_orders(is_pad_NS: Tensor, generator: torch.Generator) -> Tensor:
    """Draws a permutation of the source positions of each row; padding stays at the end."""
    draw_NS = torch.rand(is_pad_NS.shape, generator=generator).to(is_pad_NS.device)
    return draw_NS.masked_fill(is_pad_NS, torch.inf).argsort(dim=1)


def permute_values(order_NS: Tensor, memory: BatchRecord) -> BatchRecord:
    """Permutes the values of a memory, but not its keys."""

    def ordered(name: str, tensor: Tensor) -> Tensor:
        if name.rpartition(".")[2] != "values":
            return tensor
        rows, positions = order_NS.shape
        return tensor.take_along_dim(order_NS.view(rows, *[1] * (tensor.dim() - 3), positions, 1), dim=-2)

    return memory.with_tensors(map(ordered, memory.names(), memory.tensors()))
