"""`nmt score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import nmt
from nmt.cli.options import (
    BatchTokens,
    Device,
    LengthPenalty,
    Model,
    Overrides,
    Quiet,
    To,
    UsePrecision,
    Verbose,
    check_model,
    set_verbosity,
    with_search,
)
from nmt.core.memory import gc_paused


def score(
    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE", help="Source sentences.")],
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE", help="Their translations.")],
    model: Model = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; default: stdout.")
    ] = None,
    format_: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option(
            "--format",
            help="text: the score. tsv: score, log-probability, number of subwords. jsonl: also of each subword.",
        ),
    ] = "text",
    to: To = None,
    length_penalty: LengthPenalty = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    precision: UsePrecision = "auto",
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Score given translations: how probable the model finds them.

    Prints one line for each pair of lines. The score is the log-probability divided by the length penalty, by which
    the search ranks translations."""
    set_verbosity(quiet=quiet, verbose=verbose)
    changes = with_search(overrides, {"length_penalty": length_penalty, "batch_tokens": batch_tokens, "to": to})
    check_model(model, changes, needs_language=True)
    with gc_paused():
        from nmt.workflows import score as workflow

    workflow.score(
        model,
        changes,
        source=source,
        target=target,
        output=output,
        format=format_,
        device=device,
        precision=precision,
        load=nmt.load_translator,
    )
