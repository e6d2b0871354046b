"""Replacement of the words of a translation that are aligned with terms by the terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nmt.alignment.formats import Alignment
from nmt.data.words import Span, is_punctuation, successive
from nmt.extras.documents.glossary import Occurrence, find_variants

NEARLY = 0.8
"""Share of the largest weight on a term from which on neighbours are replaced, too. With a smaller share, an article or
a preposition that is aligned with the term is lost."""


def with_terms(translation: str, occurrences: Sequence[Occurrence], alignment: Alignment) -> str | None:
    """Puts each missing term into a translation; returns None if such a term is aligned with no free word.

    Among the words linked to a term, the run of neighbours with the most weight on it, in which each weight is nearly
    the largest, is replaced by the first variant. If a term occurs more often in the source than in the translation,
    the existing translations belong to the occurrences with the most weight on them.
    """
    terms = [occurrence.term for occurrence in occurrences]
    weights_KJ = np.array([_weights(occurrence, alignment) for occurrence in occurrences])
    spans = alignment.target_spans or ()
    variant_spans = find_variants(translation, terms)
    taken = [span for span in variant_spans if span is not None]
    missing = set(range(len(terms)))
    for term, span in zip(terms, variant_spans, strict=True):
        if span is not None:
            over = [number for number, word in enumerate(spans) if _overlap(word, span)]
            same = [number for number in sorted(missing) if terms[number] == term]
            missing.remove(max(same, key=lambda number: float(weights_KJ[number, over].sum())))
    replacements: dict[Span, str] = {}
    for number in sorted(missing):
        weights_J = weights_KJ[number].copy()
        for index, word in enumerate(spans):
            if is_punctuation(translation[slice(*word)]) or any(_overlap(word, other) for other in taken):
                weights_J[index] = 0.0
        near = np.flatnonzero((weights_J > 0.0) & (weights_J >= NEARLY * weights_J.max(initial=0.0))).tolist()
        run = max(successive(near), key=lambda run: float(weights_J[slice(*run)].sum()), default=None)
        if run is None:
            return None
        span = spans[run[0]][0], spans[run[1] - 1][1]
        taken.append(span)
        text = terms[number].targets[0]
        if span[0] == spans[0][0] and translation[span[0]].isupper():
            text = next(each for each in reversed(terms[number].spellings) if each.lower() == text.lower())
        replacements[span] = text
    translation = spliced(translation, replacements.keys(), replacements.values())
    return translation if all(span is not None for span in find_variants(translation, terms)) else None


def spliced(text: str, spans: Iterable[Span], others: Iterable[str]) -> str:
    """Puts other texts in place of the spans of a text."""
    for (begin, end), other in sorted(zip(spans, others, strict=True), reverse=True):
        text = text[:begin] + other + text[end:]
    return text


def _weights(occurrence: Occurrence, alignment: Alignment) -> list[float]:
    """Computes the weight of each target word on a term, which is 0 if it has no link to it."""
    columns = [column for column, word in enumerate(alignment.source_spans or ()) if _overlap(word, occurrence.span)]
    linked = {target for source, target in alignment.links if source in columns}
    return [float(row_I[columns].sum()) if index in linked else 0.0 for index, row_I in enumerate(alignment.weights_TS)]


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
