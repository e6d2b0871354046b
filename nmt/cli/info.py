"""`nmt info`."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from typing import Annotated

import typer

from nmt.cli.options import Model, Overrides, Quiet, Verbose, set_verbosity


def info(
    model: Model = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show what a run or a checkpoint is.

    Its corpus and languages, the parts of the model and their parameters, the training so far, the checkpoints and what
    they have reached, what else is in the run, and the commands to go on with. No weights are loaded."""
    set_verbosity(quiet=quiet, verbose=verbose)
    from nmt.workflows.info import inspect, text

    found = inspect(model, overrides or [])
    typer.echo(dumps(asdict(found), indent=1) if json else text(found))
