"""`nmt import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.core.errors import InputError

FORMATS = ("hf", "joeynmt", "opennmt")


def import_(
    format_: Annotated[
        str,
        typer.Argument(
            metavar="hf|joeynmt|opennmt",
            help="Format: hf is a MarianMT model of transformers, such as those of OPUS-MT.",
            show_default=False,
            autocompletion=lambda: list(FORMATS),
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER|CONFIG",
            help="hf: the model's folder, or OWNER/NAME of the Hugging Face Hub. "
            "Others: a YAML file of JoeyNMT 2 or OpenNMT-py 3.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="For hf: the new run; default: the folder's name in runs/."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="For configurations: the file to write; default: stdout."),
    ] = None,
) -> None:
    """Import a pretrained model, or a configuration of another toolkit.

    A folder of a MarianMT model becomes a run like any other. A configuration of JoeyNMT or OpenNMT-py becomes one of
    nmt, with a comment that names each original key; their models are not converted. Settings without a counterpart
    are listed. Nothing is overwritten."""
    if format_ not in FORMATS:
        raise InputError(
            f"{format_}: is not a format; use nmt import hf FOLDER, nmt import joeynmt CONFIG or "
            "nmt import opennmt CONFIG"
        )
    if source is None:
        raise InputError(f"nmt import {format_}: name {'the folder of a model' if format_ == 'hf' else 'a YAML file'}")
    if format_ == "hf":
        if output is not None:
            raise InputError(f"--output {output}: is for configurations; give the run directory as --run")
        from nmt.extras.convert.from_marian import import_hf

        import_hf(source, run or Path("runs") / source.resolve().name)
        return
    if run is not None:
        raise InputError(f"--run {run}: is for hf; give the file to write as --output")
    from nmt.extras.convert.import_config import import_config

    import_config(source, toolkit=format_, output=output)
