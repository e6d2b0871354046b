"""`nmt import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.core.errors import InputError


def import_(
    format_: Annotated[
        str,
        typer.Argument(
            metavar="hf",
            help="Format: hf is a MarianMT model of transformers, such as those of OPUS-MT.",
            show_default=False,
            autocompletion=lambda: ["hf"],
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER", help="The model's folder, or OWNER/NAME of the Hugging Face Hub.", show_default=False
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The new run; default: the folder's name in runs/.")
    ] = None,
) -> None:
    """Import a pretrained model.

    A folder of a MarianMT model becomes a run like any other. Nothing is overwritten."""
    if format_ in ("joeynmt", "opennmt"):
        raise InputError(
            f"nmt import {format_}: is gone; write a configuration with nmt init, and see docs/coming-from.md for the "
            "names of its keys"
        )
    if format_ != "hf":
        raise InputError(f"{format_}: is not a format; use nmt import hf FOLDER")
    if source is None:
        raise InputError("nmt import hf: name the folder of a model")
    from nmt.extras.exchange.convert.from_marian import import_hf

    import_hf(source, run or Path("runs") / source.resolve().name)
