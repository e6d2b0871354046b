"""A bounded random sample of a stream of unknown length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class PairSample:
    """The `limit` different pairs of smallest hash: a uniform sample without replacement of the different pairs seen.

    It depends only on the pairs and on the hash's seed: not on their order, nor on how often each one occurs (bottom-k
    sampling: Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches"). Memory holds at most twice `limit`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pairs: dict[int, tuple[str, str]] = {}
        self._below = 1 << 64

    def offer(self, hashes: npt.NDArray[np.uint64], sources: list[str], targets: list[str]) -> None:
        """Add pairs with their hashes."""
        candidates = (
            range(len(hashes)) if self._below >> 64 else np.flatnonzero(hashes < np.uint64(self._below)).tolist()
        )
        for index in candidates:
            self._pairs.setdefault(int(hashes[index]), (sources[index], targets[index]))
        if len(self._pairs) >= 2 * self._limit:
            self._shrink()

    def pairs(self) -> list[tuple[str, str]]:
        """The sample, in the order of the hashes."""
        self._shrink()
        return [self._pairs[key] for key in sorted(self._pairs)]

    def _shrink(self) -> None:
        if len(self._pairs) > self._limit:
            self._below = sorted(self._pairs)[self._limit]
            self._pairs = {key: pair for key, pair in self._pairs.items() if key < self._below}
