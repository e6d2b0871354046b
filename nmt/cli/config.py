"""`nmt config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import Overrides
from nmt.core.errors import InputError

if TYPE_CHECKING:
    from nmt.experiment import Experiment

ModelOrConfig = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="A configuration (a YAML file), a run directory or a checkpoint folder; default: the run under runs/ "
        "that trained last.",
    ),
]


def _keys(incomplete: str) -> list[str]:
    """Completes a key for the shell."""
    from nmt.config.help import keys
    from nmt.experiment import Experiment

    return [key for key in keys(Experiment) if key.startswith(incomplete)]


def config(
    model: ModelOrConfig = None,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Print what a key means, its type, bounds and default, for example training.optimizer.beta2; for a "
            "section, all its keys. With a MODEL, also its value.",
            autocompletion=_keys,
        ),
    ] = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON Schema of configurations, with which an editor completes, checks and explains keys.",
        ),
    ] = False,
    overrides: Overrides = None,
) -> None:
    """Show a configuration with every key written out, or explain a key.

    The output is a configuration that gives the same run."""
    from nmt.config.help import explain as explanation
    from nmt.config.json_schema import document
    from nmt.config.structure import dump
    from nmt.experiment import Experiment

    if schema:
        if model is not None or explain is not None or overrides:
            raise InputError("--schema describes every configuration; leave out MODEL, --explain and --set")
        typer.echo(document(Experiment))
        return
    if explain is None:
        typer.echo(dump(_experiment(model, overrides or [])), nl=False)
        return
    if model is None and overrides:
        raise InputError("--set changes a configuration, and --explain needs none; name MODEL, or leave out --set")
    tree = None if model is None else _experiment(model, overrides or []).model_dump(mode="json")
    typer.echo(explanation(Experiment, explain, tree))


def _experiment(model: str | None, overrides: list[str]) -> Experiment:
    from nmt import experiment as experiments
    from nmt.translator.find_run import find, is_checkpoint, run_of

    if model is not None and (path := Path(model).expanduser()).is_file():
        return experiments.load(path, overrides)
    folder = find(model)
    return experiments.load((run_of(folder) if is_checkpoint(folder) else folder) / experiments.FILE, overrides)
