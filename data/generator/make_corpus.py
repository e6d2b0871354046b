"""Write the German-English corpus that ships with the project.

The corpus is generated, sentence by sentence, from the hand-written grammar in ``corpus_de_en`` and the word tables in
``tables``; running this script again writes the same bytes. With ``--long`` its sentences have 10 to 80 words:
statements joined by und, aber and denn, short and long ones about equally often.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from corpus_de_en.corpus import generate, generate_long, write


def main() -> None:
    """Parse the command line and write the files."""
    default = Path(__file__).resolve().parent.parent / "de-en"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=default, help="folder to write to")
    parser.add_argument("--long", action="store_true", help="long sentences; needs --output")
    arguments = parser.parse_args()
    if arguments.long and arguments.output == default:
        parser.error("--long: give --output, a folder other than that of the corpus that ships")
    corpus = generate_long() if arguments.long else generate()
    write(corpus, arguments.output)
    for name, sentences in sorted(corpus.splits.items()):
        print(f"{name}: {len(sentences)} sentence pairs")


if __name__ == "__main__":
    main()
