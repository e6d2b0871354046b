"""Write the German-English corpus that ships with the project.

The corpus is generated, sentence by sentence, from the hand-written grammar in ``corpus_de_en`` and the word tables in
data/de-en-lexicon; running this script again writes the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from corpus_de_en.corpus import generate, write


def main() -> None:
    """Parse the command line and write the files."""
    default = Path(__file__).resolve().parent.parent / "data" / "de-en"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=default, help="folder to write to")
    arguments = parser.parse_args()
    corpus = generate()
    write(corpus, arguments.output)
    for name, sentences in sorted(corpus.splits.items()):
        print(f"{name}: {len(sentences)} sentence pairs")


if __name__ == "__main__":
    main()
