"""`nmt import`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import with_options
from nmt.core.errors import InputError


@dataclass(frozen=True)
class ImportOptions:
    """The options of `nmt import`."""

    format_: Annotated[str, typer.Argument(metavar="hf", autocompletion=lambda: ["hf"])]
    """Format: hf is a MarianMT model of transformers, such as those of OPUS-MT."""
    source: Annotated[Path | None, typer.Argument(metavar="FOLDER")] = None
    """The model's folder, or OWNER/NAME of the Hugging Face Hub."""
    run: Annotated[Path | None, typer.Option(metavar="DIR")] = None
    """The new run; default: the folder's name in runs/."""


@with_options(ImportOptions)
def import_(options: ImportOptions) -> None:
    """Import a pretrained model.

    A folder of a MarianMT model becomes a run like any other. Nothing is overwritten."""
    if options.format_ != "hf":
        raise InputError(f"{options.format_}: is not a format; use nmt import hf FOLDER, or see docs/coming-from.md")
    if options.source is None:
        raise InputError("nmt import hf: name the folder of a model")
    from nmt.extras.exchange.convert.from_marian import import_hf

    import_hf(options.source, options.run or Path("runs") / options.source.resolve().name)
