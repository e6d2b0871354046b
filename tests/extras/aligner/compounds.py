"""Made-up pairs of a language with compounds and one without, whose links are known."""

from __future__ import annotations

import random
from typing import NamedTuple

STEMS = {
    "hund": "dog", "haus": "house", "straße": "street", "ecke": "corner", "ball": "bowl", "schnee": "snow",
    "wasser": "water", "tisch": "table", "tür": "door", "baum": "tree",
}  # fmt: skip
KINDS = {"roter": "red", "alter": "old", "kleiner": "small", "neuer": "new"}


class Pair(NamedTuple):
    """Words, and the links between them."""

    source: list[str]
    target: list[str]
    links: set[tuple[int, int]]


def pairs(count: int, seed: int) -> list[Pair]:
    """One to three nouns, each with an adjective; half of them compounds, which are two target words."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        pair = Pair([], [], set())
        for _ in range(draw.randint(1, 3)):
            kind = draw.choice(list(KINDS))
            stems = draw.choices(list(STEMS), k=draw.randint(1, 2))
            for word, translations in ((kind, [KINDS[kind]]), ("".join(stems).capitalize(), map(STEMS.get, stems))):
                for each in translations:
                    pair.links.add((len(pair.source), len(pair.target)))
                    pair.target.append(str(each))
                pair.source.append(word)
        pair.links.add((len(pair.source), len(pair.target)))
        found.append(Pair([*pair.source, "."], [*pair.target, "."], pair.links))
    return found
