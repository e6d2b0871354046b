"""`nmt align`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
from nmt.core.errors import InputError


def align(
    model: Model = None,
    source: Annotated[Path | None, typer.Option("--source", "-s", metavar="FILE", help="Source sentences.")] = None,
    target: Annotated[
        Path | None, typer.Option("--target", "-t", metavar="FILE", help="Their translations, to be aligned.")
    ] = None,
    free_running: Annotated[
        bool, typer.Option("--free-running", help="Align the model's own translations instead of --target.")
    ] = False,
    format_: Annotated[
        Literal["pharaoh", "jsonl", "npz", "png"],
        typer.Option("--format", help="pharaoh: hard links 0-0 1-2; jsonl, npz: also the soft matrix; png: a heatmap."),
    ] = "pharaoh",
    level: Annotated[
        Literal["word", "subword"], typer.Option("--level", help="What is aligned: white-space words or subwords.")
    ] = "word",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="Where to write: a file, for png a folder; left out, stdout."
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option("--gold", metavar="FILE", help="Gold links, 3-4 sure and 3p4 possible: print AER to stderr."),
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
    """Align the words of sentence pairs.

    By the model's attention, one line per pair. With --target the pairs are given (forced decoding); without it the
    model's own translations are aligned.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    if source is None:
        raise InputError("--source is missing; name the file with the source sentences")
    if target is not None and free_running:
        raise InputError("--free-running aligns the model's own translations; leave out --target, or --free-running")
    if target is not None and (beam, length_penalty, max_length_ratio) != (None, None, None):
        raise InputError("--beam, --length-penalty and --max-length-ratio do nothing where --target is given")
    if gold is not None and target is None:
        raise InputError("--gold holds links of given translations; give --target as well")
    if output is None and format_ in ("npz", "png"):
        kind = "a file" if format_ == "npz" else "a folder for the pictures"
        raise InputError(f"--format {format_} needs --output, {kind}")
    check_model(model, changes)
    from nmt.workflows import align as workflow

    workflow.align(
        model,
        changes,
        source=source,
        target=target,
        output=output,
        format=format_,
        level=level,
        gold=gold,
        device=device,
        precision=precision,
    )
