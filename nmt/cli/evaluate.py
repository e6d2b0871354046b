"""`nmt evaluate`."""

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
from nmt.core.errors import InputError


def evaluate(
    model: Model = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", "-r", metavar="FILE", help="Reference translations.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", "-s", metavar="FILE", help="Text for the model to translate.")
    ] = None,
    hypothesis: Annotated[
        Path | None, typer.Option("--hypothesis", metavar="FILE", help="Score these translations; needs no model.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the scores as one JSON object.")] = False,
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
    """Score translations.

    BLEU, chrF and TER with their sacreBLEU signatures. With a model, also perplexity and token accuracy under teacher
    forcing, beside the scores of its own translations. Without files it scores the test corpora of the configuration.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    if reference is None and (source, hypothesis) != (None, None):
        raise InputError("--reference is missing; name the file with the reference translations")
    if reference is not None and source is None and hypothesis is None:
        raise InputError("there is nothing to score; give --source for a model to translate, or --hypothesis")
    if hypothesis is not None and (model, source) != (None, None):
        raise InputError("--hypothesis scores a file without a model; leave out MODEL and --source, or --hypothesis")
    if hypothesis is None:
        check_model(model, changes)
    from nmt.workflows import evaluate as workflow

    workflow.evaluate(
        model,
        changes,
        source=source,
        reference=reference,
        hypothesis=hypothesis,
        json=json,
        device=device,
        precision=precision,
    )
