"""Shares of the directions of a multilingual corpus.

Direction d with n_d pairs has the share p_d = n_d^(1/T) / sum over e of n_e^(1/T) of an epoch, whose number of pairs
does not change (Arivazhagan et al. 2019, "Massively Multilingual Neural Machine Translation in the Wild", section 4.1).
T = 1 keeps the corpora as they are; the larger T is, the more equal the shares of all directions become.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nmt.core.errors import InputError
from nmt.data.config import TrainingCorpusConfig

MAX_WEIGHT = 1000


def tempered_weights(
    corpora: Sequence[TrainingCorpusConfig], kept: Sequence[int], temperature: float
) -> tuple[float, ...]:
    """Computes the weight of each corpus, of which ``kept`` pairs are left. The pairs of a direction are those of its
    corpora, multiplied by their configured weights. Raises InputError for a weight of more than 1000."""
    weights = tuple(corpus.weight for corpus in corpora)
    if temperature == 1:
        return weights
    pairs_of = Counter[object]()
    for corpus, weight, count in zip(corpora, weights, kept, strict=True):
        pairs_of[corpus.languages] += weight * count  # type: ignore[assignment]
    powers = {direction: pairs ** (1 / temperature) for direction, pairs in pairs_of.items()}
    scale = sum(pairs_of.values()) / sum(powers.values())
    tempered = tuple(
        weight * scale * powers[corpus.languages] / pairs if (pairs := pairs_of[corpus.languages]) else weight
        for corpus, weight in zip(corpora, weights, strict=True)
    )
    for corpus, weight in zip(corpora, tempered, strict=True):
        if weight > MAX_WEIGHT:
            raise InputError(
                f"data.temperature: {temperature:g} shows each pair of {corpus.name} {weight:,.0f} times an epoch, "
                f"and at most {MAX_WEIGHT} is possible; lower it"
            )
    return tempered
