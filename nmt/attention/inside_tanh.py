"""What additive and concat scores have in common: v . tanh(query + key) for all pairs.

Shapes as in ``mechanism``.
"""

from __future__ import annotations

from torch import Tensor

from nmt.layers import native


def inside_tanh(query_BHTA: Tensor, keys_BHSA: Tensor, v_A: Tensor) -> Tensor:
    """(B, H, T, S), from projected queries and keys. PyTorch's operations hold B x H x T x S x A numbers at once."""
    batch, heads, time, width = query_BHTA.shape
    kernels = native.kernels(query_BHTA) if heads == 1 else None
    if kernels is None:
        return (query_BHTA.unsqueeze(3) + keys_BHSA.unsqueeze(2)).tanh_() @ v_A
    scores_NS = kernels.additive(query_BHTA.reshape(-1, width), keys_BHSA[:, 0].contiguous(), v_A.contiguous())
    return scores_NS.view(batch, 1, time, -1)
