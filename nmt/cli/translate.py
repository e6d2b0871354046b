"""`nmt translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import (
    BatchTokens,
    Beam,
    Device,
    LengthPenalty,
    MaxLengthRatio,
    Model,
    Overrides,
    Precision,
    Quiet,
    Verbose,
    check_model,
    set_verbosity,
    with_search,
)


def translate(
    model: Model = None,
    input_: Annotated[
        Path | None, typer.Option("--input", "-i", metavar="FILE", help="Text to translate; left out, stdin.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write; left out, stdout.")
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    precision: Precision = "auto",
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Translate text, line by line.

    One sentence per line; every line in gives one line out."""
    set_verbosity(quiet=quiet, verbose=verbose)
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    check_model(model, changes)
    from nmt.workflows import translate as workflow

    workflow.translate(
        model,
        changes,
        input=input_,
        output=output,
        device=device,
        precision=precision,
    )
