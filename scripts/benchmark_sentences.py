"""Lines of several sentences: BLEU of a model that has learnt from single ones, with and without splitting them.

    python scripts/benchmark_sentences.py MODEL SOURCE REFERENCE [--lines 1000]

Translates the lines of SOURCE as they are, and then two in a line: by default, which splits what the splitter is
sure of; as ``--document``, which splits all; and whole. Prints how many lines of SOURCE splitting changes, and a JSON
line for each figure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import sacrebleu
from measuring import plainly, print_table, report

import nmt
from nmt.data.corpus import read_lines
from nmt.translator.loading import TrainedModel

WAYS = ("default", "document", "whole")


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--lines", type=int, default=sys.maxsize, help="the first ones only")
    arguments = parser.parse_args()
    source, reference = (
        [line.strip() for line in read_lines(path)][: arguments.lines]
        for path in (arguments.source, arguments.reference)
    )
    found = {(lines, way): translated(arguments.model, joined(source, lines), way) for lines in (1, 2) for way in WAYS}
    for (lines, way), texts in found.items():
        bleu = sacrebleu.corpus_bleu(texts, [joined(reference, lines)]).score
        report(f"{lines} in a line, {way}", bleu, "BLEU", "")
    differ = sum(one != other for one, other in zip(found[1, "default"], found[1, "whole"], strict=True))
    report("lines that splitting changes", differ, f"of {len(source)}", "")
    print_table()


def joined(lines: Sequence[str], number: int) -> list[str]:
    """Joins this many lines to one; the incomplete rest is left out."""
    return [" ".join(of_line) for of_line in zip(*(lines[first::number] for first in range(number)), strict=False)]


def translated(model: str, lines: Sequence[str], way: str) -> list[str]:
    """Translates lines, in one of `WAYS`."""
    overrides = ["search.document=true"] if way == "document" else []
    is_whole = patch.object(TrainedModel, "reads_single_sentences", False) if way == "whole" else nullcontext()
    with is_whole:
        translations = nmt.load(model, overrides=overrides).translate(list(lines))
    return [str(getattr(each, "text", each)) for each in translations]


if __name__ == "__main__":
    plainly(main)
