"""Which heads to align by: those that are sure of where they look, or those that agree with gold links.

Candidates are all heads together, those of each layer, and each head for itself. Without gold links the best one is
that of the least uncertainty: the entropy of a target piece's weights over the S source pieces as a share of its most,

    u(w) = - sum over s of w_s log w_s / log S      with w_s = weight_s + weight_end / S

where the weight at the end of the sentence, which says nothing, is spread over all pieces; averaged over target pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.alignment import Weights


def candidates(head_names: Sequence[str]) -> dict[str, list[int]]:
    """The places of the heads of each pattern: all, each layer where there are several, each head where there are."""
    found = {"*": list(range(len(head_names)))}
    for place, name in enumerate(head_names):
        layer, dot, _ = name.partition(".")
        if dot:
            found.setdefault(f"{layer}.*", []).append(place)
    for place, name in enumerate(head_names):
        found[name] = [place]
    sets: dict[tuple[int, ...], str] = {}
    for pattern, places in found.items():
        sets.setdefault(tuple(places), pattern)
    return {pattern: list(places) for places, pattern in sets.items()}


def uncertainty(weights_TS: Weights) -> tuple[float, int]:
    """The sum of u over target pieces, and their number; the last row and column are the end of the sentence. A
    source of one piece leaves nothing to be uncertain about, and does not count."""
    weights_TS = np.asarray(weights_TS, np.float64)
    T, S = weights_TS.shape[0] - 1, weights_TS.shape[1] - 1
    if S < 2:
        return 0.0, 0
    spread_TS: NDArray[np.float64] = weights_TS[:-1, :-1] + weights_TS[:-1, -1:] / S
    entropy = -(spread_TS * np.log(np.maximum(spread_TS, 1e-300))).sum() / np.log(S)
    return float(entropy), T
