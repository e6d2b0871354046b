"""Word links of a parallel corpus, for ``links`` in ``data.train``, without a trained model: IBM model 1 in both
directions, and the links that both find. They are few and mostly right.

    python scripts/word_links.py data/de-en/train.de data/de-en/train.en > train.align

A word is linked with the most probable word of the other side, of equal ones the one nearest to its own place, unless
the empty word is more probable. Words are compared in lower case and without punctuation at their ends.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.alignment.formats import pharaoh_line
from nmt.alignment.lexicon import Lexicon, learn
from nmt.core.errors import InputError
from nmt.data.corpus import read_lines

_PUNCTUATION = ".,;:!?…\"'()[]«»„“”‚‘’–—-"

Sentence = npt.NDArray[np.int64]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="source sentences, one per line")
    parser.add_argument("target", type=Path, help="their translations")
    given = parser.parse_args(arguments)
    try:
        sources, targets = numbered(given.source), numbered(given.target)
        if len(sources) != len(targets):
            raise InputError(f"{given.source} has {len(sources)} lines but {given.target} has {len(targets)}")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for links in both_ways(sources, targets):
        print(pharaoh_line(links))
    return 0


def numbered(path: Path) -> list[Sentence]:
    """The sentences of a file as numbers, one for each different word."""
    numbers: dict[str, int] = {}
    return [
        np.array([numbers.setdefault(_bare(word), len(numbers)) for word in line.split()], np.int64)
        for line in read_lines(path)
    ]


def both_ways(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[set[tuple[int, int]]]:
    """Of each pair, the links (source, target) that both directions find."""
    forward, backward = one_way(sources, targets), one_way(targets, sources)
    return [one & {(source, target) for target, source in other} for one, other in zip(forward, backward, strict=True)]


def one_way(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[set[tuple[int, int]]]:
    """Of each pair, for each target word the link with its most probable source word, if any."""
    lexicon = _as_dict(learn(sources, targets))
    found = []
    for source, target in zip(sources, targets, strict=True):
        links = set()
        for place, word in enumerate(target.tolist()):
            candidates = [(lexicon.get((-1, word), 0.0), 0.0, -1)]
            for other_place, other in enumerate(source.tolist()):
                distance = abs((other_place + 0.5) / len(source) - (place + 0.5) / len(target))
                candidates.append((lexicon.get((other, word), 0.0), -distance, other_place))
            _, _, best = max(candidates)
            if best >= 0:
                links.add((best, place))
        found.append(links)
    return found


def _bare(word: str) -> str:
    return word.lower().strip(_PUNCTUATION) or word


def _as_dict(lexicon: Lexicon) -> dict[tuple[int, int], float]:
    keys = zip(lexicon.source_E.tolist(), lexicon.target_E.tolist(), strict=True)
    return dict(zip(keys, lexicon.probability_E.tolist(), strict=True))


if __name__ == "__main__":
    sys.exit(main())
