"""The adjectives: comparison in both languages and the nouns that they describe; see adjectives.tsv."""

from __future__ import annotations

from dataclasses import dataclass

from corpus_de_en.lexicon.tables import rows
from corpus_de_en.morphology import english_comparison, german_adjective_stem, german_comparative, german_superlative


@dataclass(frozen=True)
class Adjective:
    """A German adjective in one sense, with its English counterpart."""

    lemma: str
    german: str
    stem: str
    comparative: str
    superlative: str
    english: tuple[str, ...]
    english_comparative: tuple[str, ...]
    english_superlative: tuple[str, ...]
    classes: frozenset[str]
    kind: str

    @property
    def graded(self) -> bool:
        """True if the adjective is used in comparisons."""
        return bool(self.english_comparative)


def _adjective(
    german: str, forms: str, english: str, comparison: str, classes: str, kind: str, sense: str
) -> Adjective:
    comparative, superlative = forms.split() if forms else (german_comparative(german), german_superlative(german))
    more: tuple[tuple[str, ...], ...] = ((), ())
    if comparison != "-":
        more = english_comparison(english, comparison)
    return Adjective(
        german + sense,
        german,
        german_adjective_stem(german),
        comparative,
        superlative,
        (english,),
        more[0],
        more[1],
        frozenset(classes.split()),
        kind,
    )


ADJECTIVES = tuple(_adjective(*row) for row in rows("adjectives.tsv", 7))
"""All adjectives; ``hard-working`` and ``well-known`` are compared with more/most."""
