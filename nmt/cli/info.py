"""`nmt info`."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from typing import Annotated

import typer

from nmt.cli.options import Model, Overrides


def info(
    model: Model = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    overrides: Overrides = None,
) -> None:
    """Show a summary of a run or a checkpoint.

    Prints its corpus and languages, the parts of the model and their parameters, the training so far, the checkpoints
    and their scores, the other contents of the run, and commands to continue with. Loads no weights."""
    from nmt.workflows.info import inspect, text

    found = inspect(model, overrides or [])
    typer.echo(dumps(asdict(found), indent=1) if json else text(found))
