"""`nmt filter`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.core.errors import InputError
from nmt.core.memory import gc_paused


def filter(
    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE", help="Source sentences.")],
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE", help="Their translations.")],
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A model written by --save; default: train on these pairs.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the model, and scores only with --output or --format.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; default: stdout.")
    ] = None,
    format_: Annotated[
        Literal["scores", "kept"] | None,
        typer.Option(
            "--format",
            help="scores (default): the score of each pair. kept: the pairs that reach the threshold, as source, TAB, "
            "target.",
        ),
    ] = None,
    false_alarms: Annotated[
        float, typer.Option(metavar="X", min=0, max=1, help="Least share of the corpus below the threshold.")
    ] = 0.005,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Seed of the training. Default: 1.")] = None,
) -> None:
    """Find the pairs of a corpus that are not translations.

    Learns to distinguish the pairs from wrong pairs made of them; a pair is scored by a model that has not learnt from
    it. The score is the log-odds that the pair is right; pairs that are more probably wrong are dropped."""
    for option, value in {"--save": save, "--seed": seed}.items():
        if model is not None and value is not None:
            raise InputError(f"--model: nothing is trained; leave out {option}, or --model")
    with gc_paused():
        from nmt.extras.corpus.pair_filter import filter_pairs as workflow

    workflow.filter_pairs(
        source,
        target,
        model=model,
        save=save,
        output=output,
        format="scores" if format_ is None and (save is None or output is not None) else format_,
        false_alarms=false_alarms,
        seed=1 if seed is None else seed,
    )
