"""`nmt score`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli import options as common
from nmt.core.memory import gc_paused


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(common.ScoringOptions):
    """The options of `nmt score`."""

    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE")]
    """Source sentences."""
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE")]
    """Their translations."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """File to write; default: stdout."""
    format_: Annotated[Literal["text", "tsv", "jsonl"], typer.Option("--format")] = "text"
    """text: the score. tsv: score, log-probability, number of subwords. jsonl: also of each subword."""


@common.with_options(ScoreOptions)
def score(options: ScoreOptions) -> None:
    """Score given translations: how probable the model finds them.

    Prints one line for each pair of lines. The score is the log-probability divided by the length penalty, by which
    the search ranks translations."""
    common.check_model(options.model, options.changes, needs_language=True)
    with gc_paused():
        from nmt.workflows import score as workflow

    load = options.load()
    workflow.score(load, source=options.source, target=options.target, output=options.output, format=options.format_)
