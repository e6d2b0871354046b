"""Latency of translations that begin before their source has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class WaitScore:
    """BLEU of the wait-k translations of a corpus, and the mean of their average lagging in words."""

    wait: int
    average_lagging: float
    bleu: float


def average_lagging(reads: Sequence[int], source_words: int) -> float:
    """Computes AL = 1 / tau sum over t = 1 … tau of g(t) - (t - 1) |x| / |y|, where tau is the first t with g(t) = |x|,
    or |y| if there is none (Ma et al. 2019, "STACL", equations 8 and 9).

    ``reads`` are g(1) … g(|y|), the numbers of source words that had been read when each word was written;
    ``source_words`` is |x|.
    """
    tau = next((t for t, read in enumerate(reads, 1) if read >= source_words), len(reads))
    return sum(read - t * source_words / len(reads) for t, read in enumerate(reads[:tau])) / tau


def table(scores: Sequence[WaitScore]) -> list[str]:
    """Formats the lines of a table."""
    rows = [f"{each.wait:4}  {each.average_lagging:22.2f}  {each.bleu:4.1f}" for each in scores]
    return ["wait  average lagging, words  BLEU", *rows]
