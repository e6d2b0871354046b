"""`nmt words`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.data.corpus import read_lines


def words(file: Annotated[Path, typer.Argument(metavar="FILE", help="Text.")]) -> None:
    """Count the words of a text.

    Prints the number of words in each line."""
    for line in read_lines(file):
        print(len(line.split()))
