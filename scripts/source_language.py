"""The figure by which `nmt translate` warns of text in another language: the cost of a text in bits per character under
the frequencies of source subwords in the training corpus, relative to that of the corpus itself.

    python scripts/source_language.py runs/de-en/prepared data/de-en/test.de data/de-en/test.en

Takes a folder of `nmt prepare` and files of text, of which the first 600 subwords count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.data.corpus import read_lines
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair
from nmt.translator.source_language import SourceLanguageCheck


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="The cost of texts relative to that of the training corpus.")
    parser.add_argument("prepared", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    tokenizer = TokenizerPair.load(options.prepared).source
    counts = Store.open(options.prepared / "train").token_counts("source", tokenizer.size).tolist()
    for path in options.texts:
        check = SourceLanguageCheck(tokenizer, {"": counts})
        warning = check.warning(read_lines(path))
        print(f"{check.relative_cost:.2f}  {path}{'' if warning is None else '  (warned of)'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
