"""`nmt export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import Model, Overrides, check_model, with_options
from nmt.core.memory import gc_paused


@dataclass(frozen=True)
class ExportOptions:
    """The options of `nmt export`."""

    model: Model = None
    to: Annotated[Literal["ctranslate2", "onnx", "hf", "nmt"], typer.Option()] = "ctranslate2"
    """Engine: ctranslate2 for Transformers, onnx for any model but `reencoding` and `glimpses`, hf for Hugging Face's
    transformers, which loads Transformers of Marian's architecture; nmt for a model to hand on, with its card."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR")] = None
    """Folder, with --to nmt also FILE.zip; default: exported/ in the run directory, where other commands find it."""
    overrides: Overrides = None


@with_options(ExportOptions)
def export(options: ExportOptions) -> None:
    """Write a trained model for another engine.

    Translates sentences of the validation corpus with the model and the export, and prints how many are equal."""
    overrides = options.overrides or []
    check_model(options.model, overrides)
    with gc_paused():
        from nmt.extras.exchange.export import export_model as workflow

    workflow.export(options.model, overrides, to=options.to, output=options.output)
