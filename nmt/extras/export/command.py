"""`nmt export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import Model, Overrides, Quiet, Verbose, check_model, set_verbosity
from nmt.core.memory import gc_paused


def export(
    model: Model = None,
    to: Annotated[
        Literal["ctranslate2", "onnx", "hf"],
        typer.Option(
            "--to",
            help="What to write it for: ctranslate2 for Transformers, onnx for any model, hf for Hugging Face's "
            "transformers, a Transformer as Marian has it.",
        ),
    ] = "ctranslate2",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where to; left out, exported/ in the run directory, where it is used.",
        ),
    ] = None,
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a trained model for another engine.

    Translates sentences of the validation corpus with both and says how many are alike."""
    set_verbosity(quiet=quiet, verbose=verbose)
    check_model(model, overrides or [])
    with gc_paused():
        from nmt.extras.export import export_model as workflow

    workflow.export(model, overrides or [], to=to, output=output)
