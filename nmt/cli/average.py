"""`nmt average`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from nmt.cli.options import Overrides
from nmt.core.errors import InputError


def average(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="A run directory, or the configuration that trained it; or two or more checkpoint folders. Default: "
            "the run under runs/ that trained last.",
        ),
    ] = None,
    last: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="The newest N checkpoints of the run; default: all.")
    ] = None,
    best: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="The N checkpoints with the best validations.")
    ] = None,
    best_by: Annotated[
        Literal["loss", "perplexity", "accuracy", "bleu", "chrf"] | None,
        typer.Option(help="Metric of --best. Default: the configuration's training.validation.metric."),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Average the weights of checkpoints.

    The mean is a separate checkpoint; the link `averaged` in the run directory points to it. Use it as MODEL to
    translate, evaluate or align, or start training from it.
    """
    if last is not None and best is not None:
        raise InputError("--last and --best contradict each other; give one of them")
    if best_by is not None and best is None:
        raise InputError("--best-by says what --best N goes by; give that as well")
    from nmt.workflows import average as workflow

    selection = workflow.Selection(last, best, best_by)
    workflow.average(models or [], overrides or [], selection=selection)
