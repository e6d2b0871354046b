"""`nmt export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import Model, Overrides, check_model
from nmt.core.memory import gc_paused


def export(
    model: Model = None,
    to: Annotated[
        Literal["ctranslate2", "onnx", "hf", "nmt"],
        typer.Option(
            help="Engine: ctranslate2 for Transformers, onnx for any model but `reencoding` and `glimpses`, hf for "
            "Hugging Face's transformers, which loads Transformers of Marian's architecture; nmt for a model to hand "
            "on, with its card."
        ),
    ] = "ctranslate2",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder, with --to nmt also FILE.zip; default: exported/ in the run directory, where other commands "
            "find it.",
        ),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Write a trained model for another engine.

    Translates sentences of the validation corpus with the model and the export, and prints how many are equal."""
    check_model(model, overrides or [])
    with gc_paused():
        from nmt.extras.exchange.export import export_model as workflow

    workflow.export(model, overrides or [], to=to, output=output)
