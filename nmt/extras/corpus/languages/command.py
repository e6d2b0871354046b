"""`nmt languages`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def languages(
    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE", help="Source sentences.")],
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE", help="Their translations.")],
    expected: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Languages of both sides, such as de,en; default: the files' endings, otherwise the most frequent "
            "ones.",
        ),
    ] = None,
    format_: Annotated[
        Literal["faults", "kept"] | None,
        typer.Option(
            "--format",
            help="Read all pairs. faults: a line for each pair with a side in another language. kept: the other pairs, "
            "as source, TAB, target.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; default: stdout.")
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            metavar="X",
            min=0,
            help="How much more probable another language must be: a larger margin "
            "finds fewer pairs, with more certainty.",
        ),
    ] = 2.0,
) -> None:
    """Find the pairs of a corpus that are in other languages than the rest.

    Reports the languages of a sample, and which pairs are swapped or have a side in another language. Needs py3langid
    (the extra language-id)."""
    from nmt.extras.corpus.languages.find_languages import find_languages

    find_languages(source, target, expected=expected, margin=margin, output=output, format=format_)
