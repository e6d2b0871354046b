"""`nmt filter`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.conflicts import Excludes
from nmt.cli.options import with_options
from nmt.core.memory import gc_paused


@dataclass(frozen=True)
class FilterOptions:
    """The options of `nmt filter`."""

    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE")]
    """Source sentences."""
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE")]
    """Their translations."""
    model: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """A model written by --save; default: train on these pairs."""
    save: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Write the model, and scores only with --output or --format."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """File to write; default: stdout."""
    format: Annotated[Literal["scores", "kept"] | None, typer.Option()] = None
    """scores (default): the score of each pair. kept: the pairs that reach the threshold, as source, TAB, target."""
    false_alarms: Annotated[float, typer.Option(metavar="X", min=0, max=1)] = 0.005
    """Least share of the corpus below the threshold."""
    seed: Annotated[int | None, typer.Option(metavar="N", min=0)] = None
    """Seed of the training. Default: 1."""


CONFLICTS = (Excludes("model", "save seed", "--model: nothing is trained; leave out {others}, or --model"),)


@with_options(FilterOptions, CONFLICTS)
def filter(options: FilterOptions) -> None:
    """Find the pairs of a corpus that are not translations.

    Learns to distinguish the pairs from wrong pairs made of them; a pair is scored by a model that has not learnt from
    it. The score is the log-odds that the pair is right; pairs that are more probably wrong are dropped."""
    with gc_paused():
        from nmt.extras.corpus.pair_filter.filter_pairs import filter_pairs

    filter_pairs(options)
