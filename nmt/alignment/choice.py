"""Choice of the heads that alignments use: the heads with the lowest uncertainty, or with the best error rate on gold
links.

Candidates are all heads together, the heads of each layer, and each head alone. The uncertainty of a target piece is
the entropy of its weights over the S source pieces as a share of the maximum,

    u(w) = - sum over s of w_s log w_s / log S      with w_s = weight_s + weight_end / S

where the weight at the end of the sentence, which says nothing, is spread over all pieces; it is averaged over target
pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.alignment import Weights
from nmt.models.names import matching


def candidates(head_names: Sequence[str]) -> list[str]:
    """Lists patterns of all heads, of each layer and of each head; of those for the same heads only the first."""
    layers = dict.fromkeys(f"{layer}.*" for layer, dot, _ in (name.partition(".") for name in head_names) if dot)
    by_heads: dict[tuple[int, ...], str] = {}
    for pattern in ("*", *layers, *head_names):
        by_heads.setdefault(tuple(matching(head_names, pattern)), pattern)
    return list(by_heads.values())


def uncertainty(weights_TS: Weights) -> tuple[float, int]:
    """Computes the sum of u over target pieces, and their number. The last row and column are the end of the sentence.
    A source of one piece has no uncertainty and does not count."""
    weights_TS = np.asarray(weights_TS, np.float64)
    T, S = (size - 1 for size in weights_TS.shape)
    if S < 2:
        return 0.0, 0
    spread_TS: NDArray[np.float64] = weights_TS[:-1, :-1] + weights_TS[:-1, -1:] / S
    entropy = -(spread_TS * np.log(np.maximum(spread_TS, 1e-300))).sum() / np.log(S)
    return float(entropy), T
