"""Counts the words that translations drop or repeat.

    python scripts/dropped_words.py --train train.de train.en --source test.de --reference test.en \\
        runs/comparison/*/*/seed-*/test/translations.txt

- *Dropped* is a source word that has a counterpart in the reference and none in the translation. Counterparts are the
  links of an aligner that is learnt from the training pairs and the references.
- *Repeated* is a word that the translation has more often than once, and more often than the reference.

Prints the per cent of all words that could be dropped, and of all words of the translations. Files in folders named
seed-N of the same folder are one row. ``--longer-than 15`` counts only sentences of more source words. The words are
those of ordinary text in lower case, without punctuation.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from measuring import plainly

from nmt.alignment import Links
from nmt.core.errors import InputError
from nmt.data.corpus import read_lines
from nmt.data.words import is_punctuation_mark, text_words
from nmt.extras.aligner.align import TextAligner, learn_word_aligner


class Counts(NamedTuple):
    """Words of one translation."""

    dropped: int
    linked: int
    """Source words that have a counterpart in the reference."""
    repeated: int
    words: int


def words(line: str) -> list[str]:
    """Splits ordinary text into words in lower case, without punctuation."""
    found = (line[begin:end].lower() for begin, end in text_words(line))
    return [word for word in found if not all(map(is_punctuation_mark, word))]


def repetitions(translation: Sequence[str], reference: Sequence[str]) -> int:
    """Counts the words beyond the first occurrence, and beyond those of the reference."""
    expected = Counter(reference)
    return sum(max(0, count - max(1, expected[word])) for word, count in Counter(translation).items())


def dropped(of_translation: Links, of_reference: Links) -> tuple[int, int]:
    """Counts the source words with links to the reference and none to the translation, and those with links to the
    reference."""
    linked = {source for source, _ in of_reference}
    return len(linked - {source for source, _ in of_translation}), len(linked)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("translations", nargs="+", type=Path)
    parser.add_argument("--train", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--longer-than", type=int, default=0, metavar="WORDS")
    options = parser.parse_args()
    sources, references = ([words(line) for line in read_lines(path)] for path in (options.source, options.reference))
    text = [[" ".join(words(line)) for line in read_lines(path)] for path in options.train]
    for files, (one, other) in (((options.source, options.reference), (sources, references)), (options.train, text)):
        if len(one) != len(other):
            raise InputError(f"{files[1]}: has {len(other)} lines, and {files[0]} {len(one)}")
    test = [[" ".join(line) for line in side] for side in (sources, references)]
    aligner = TextAligner(learn_word_aligner(text[0] + test[0], text[1] + test[1]))
    of_references = aligner.align(*test)
    print(f"{'dropped %':>9}  {'repeated %':>10}  {'sentences':>9}  translations")
    rows: dict[str, list[Counts]] = {}
    for path in options.translations:
        lines = [words(line) for line in read_lines(path)]
        if len(lines) != len(sources):
            raise InputError(f"{path}: has {len(lines)} lines, and {options.source} {len(sources)}")
        alignments = aligner.align(test[0], [" ".join(line) for line in lines])
        row = rows.setdefault(re.sub(r"/seed-\d+/.*", "", str(path)), [])
        for source, line, reference, of_line, of_reference in zip(
            sources, lines, references, alignments, of_references, strict=True
        ):
            if len(source) > options.longer_than:
                counted = dropped(of_line.links, of_reference.links)
                row.append(Counts(*counted, repetitions(line, reference), len(line)))
    for name, row in rows.items():
        if row:
            total = Counts(*map(sum, zip(*row, strict=True)))
            shares = 100 * total.dropped / max(total.linked, 1), 100 * total.repeated / max(total.words, 1)
            print(f"{shares[0]:9.2f}  {shares[1]:10.2f}  {len(row):9,}  {name}")


if __name__ == "__main__":
    plainly(main)
