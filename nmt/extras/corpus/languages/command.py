"""`nmt languages`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import with_options


@dataclass(frozen=True)
class LanguagesOptions:
    """The options of `nmt languages`."""

    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE")]
    """Source sentences."""
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE")]
    """Their translations."""
    expected: Annotated[str | None, typer.Option(metavar="A,B")] = None
    """Languages of both sides, such as de,en; default: the files' endings, otherwise the most frequent ones."""
    format: Annotated[Literal["faults", "kept"] | None, typer.Option()] = None
    """Read all pairs. faults: a line for each pair with a side in another language. kept: the other pairs, as source,
    TAB, target."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """File to write; default: stdout."""
    margin: Annotated[float, typer.Option(metavar="X", min=0)] = 2.0
    """How much more probable another language must be: a larger margin finds fewer pairs, with more certainty."""


@with_options(LanguagesOptions)
def languages(options: LanguagesOptions) -> None:
    """Find the pairs of a corpus that are in other languages than the rest.

    Reports the languages of a sample, and which pairs are swapped or have a side in another language. Needs py3langid
    (the extra language-id)."""
    from nmt.extras.corpus.languages.find_languages import find_languages

    find_languages(**vars(options))  # asdict would copy --tsv, which is both sides
