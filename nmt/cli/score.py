"""`nmt score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli import options
from nmt.core.memory import gc_paused


def score(
    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE", help="Source sentences.")],
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE", help="Their translations.")],
    model: options.Model = None,
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
    to: options.To = None,
    length_penalty: options.LengthPenalty = None,
    batch_tokens: options.BatchTokens = None,
    device: options.Device = "auto",
    precision: options.UsePrecision = "auto",
    overrides: options.Overrides = None,
) -> None:
    """Score given translations: how probable the model finds them.

    Prints one line for each pair of lines. The score is the log-probability divided by the length penalty, by which
    the search ranks translations."""
    changes = options.with_search(overrides, {"length_penalty": length_penalty, "batch_tokens": batch_tokens, "to": to})
    options.check_model(model, changes, needs_language=True)
    with gc_paused():
        from nmt.workflows import score as workflow

    load = options.loader(model, changes, device=device, precision=precision)
    workflow.score(load, source=source, target=target, output=output, format=format_)
