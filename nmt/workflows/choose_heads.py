"""Which heads of a model to align by, found out on some pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from nmt.alignment.choice import candidates, uncertainty
from nmt.alignment.error_rate import AlignmentScore, Gold, score_pair
from nmt.core import log

if TYPE_CHECKING:
    from nmt.translator.translator import Translator

Criterion: TypeAlias = Literal["entropy", "gold"]
"""The least entropy of the weights, or the least error rate of the links."""

PAIRS = 200
"""On how many, the first ones, heads are chosen by entropy."""


def choose_heads(
    model: Translator,
    by: Criterion,
    sources: Sequence[str],
    targets: Sequence[str],
    gold: Sequence[Gold] | None,
    *,
    text: bool,
) -> Translator:
    """The model with the heads that are best on the given pairs; says which they are. Raises InputError for a model
    without attention, and for sentences that cannot be aligned."""
    model.aligner.check_method("attention")
    if by == "entropy":
        sources, targets, gold = sources[:PAIRS], targets[:PAIRS], None
    found: list[tuple[float, str]] = []
    for pattern in candidates(model.trained.model.decoder.head_names):
        aligned = _with(model, pattern).align(sources, targets, level="subword", text=text)
        if gold is None:
            sums = [uncertainty(each.weights_TS) for each in aligned if each.source_words and each.target_words]
            found.append((sum(each for each, _ in sums) / max(sum(count for _, count in sums), 1), pattern))
        else:
            scores = (score_pair(each.links, wanted) for each, wanted in zip(aligned, gold, strict=True))
            found.append((sum(scores, AlignmentScore()).aer, pattern))
    (value, best), all_heads = min(found, key=lambda each: each[0]), found[0][0]
    what = "uncertainty" if gold is None else "AER"
    log.info(
        f"heads: {best} of {model.trained.checkpoint}, {what} {100 * value:.1f} % on {len(sources):,} pairs "
        f"(all heads {100 * all_heads:.1f} %)"
    )
    return _with(model, best)


def _with(model: Translator, heads: str) -> Translator:
    return replace(model, aligner=model.aligner.with_heads(heads))
