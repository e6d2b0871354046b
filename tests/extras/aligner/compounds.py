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


ODD = [("", ""), ("roter", "red"), ("", "red"), ("... !", "..."), ("Xaver\u2028Y\0 👩\u200d🚒", "Xaver Y\0 👩\u200d🚒")]
LINES = [(" ".join(each.source), " ".join(each.target)) for each in pairs(120, seed=1)] + ODD
LINKS = [" ".join(f"{s}-{t}" for s, t in sorted(each.links)) for each in pairs(120, seed=1)] + [""] * len(ODD)
"""Pairs of lines, the last ones without links, and the links of each."""
