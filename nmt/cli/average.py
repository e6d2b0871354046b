"""`nmt average`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import Overrides, with_options


@dataclass(frozen=True)
class AverageOptions:
    """The options of `nmt average`."""

    models: Annotated[list[str] | None, typer.Argument(metavar="MODEL")] = None
    """A run directory, or the configuration that trained it; or two or more checkpoint folders. Default: the run under
    runs/ that trained last."""
    last: Annotated[int | None, typer.Option(metavar="N", min=2)] = None
    """The newest N checkpoints of the run; default: all."""
    best: Annotated[int | None, typer.Option(metavar="N", min=2)] = None
    """The N checkpoints with the best validations."""
    best_by: Annotated[Literal["loss", "perplexity", "accuracy", "bleu", "chrf"] | None, typer.Option()] = None
    """Metric of --best. Default: the configuration's training.validation.metric."""
    overrides: Overrides = None


CONFLICTS = (
    Excludes("last", "best", "--last and --best contradict each other; give one of them"),
    Needs("best_by", "best", "--best-by says what --best N goes by; give that as well"),
)


@with_options(AverageOptions, CONFLICTS)
def average(options: AverageOptions) -> None:
    """Average the weights of checkpoints.

    The mean is a separate checkpoint; the link `averaged` in the run directory points to it. Use it as MODEL to
    translate, evaluate or align, or start training from it.
    """
    from nmt.workflows import average as workflow

    selection = workflow.Selection(options.last, options.best, options.best_by)
    workflow.average(options.models or [], options.overrides or [], selection=selection)
