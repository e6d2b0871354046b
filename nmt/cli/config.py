"""`nmt config`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import Overrides, with_options

if TYPE_CHECKING:
    from nmt.experiment import Experiment


def _keys(incomplete: str) -> list[str]:
    """Completes a key for the shell."""
    from nmt.config.help import keys
    from nmt.experiment import Experiment

    return [key for key in keys(Experiment) if key.startswith(incomplete)]


@dataclass(frozen=True)
class ConfigOptions:
    """The options of `nmt config`."""

    model: Annotated[str | None, typer.Argument(metavar="MODEL")] = None
    """A configuration (a YAML file), a run directory or a checkpoint folder; default: the run under runs/ that trained
    last."""
    explain: Annotated[str | None, typer.Option(metavar="KEY", autocompletion=_keys)] = None
    """Print what a key means, its type, bounds and default, for example training.optimizer.beta2; for a section, all
    its keys. With a MODEL, also its value."""
    schema: Annotated[bool, typer.Option("--schema")] = False
    """Print the JSON Schema of configurations, with which an editor completes, checks and explains keys."""
    overrides: Overrides = None

    def experiment(self) -> Experiment:
        """Reads the configuration of the file, run or checkpoint."""
        from nmt import experiment as experiments
        from nmt.translator.find_run import find, is_checkpoint, run_of

        if self.model is not None and (path := Path(self.model).expanduser()).is_file():
            return experiments.load(path, self.overrides or [])
        folder = find(self.model)
        run = run_of(folder) if is_checkpoint(folder) else folder
        return experiments.load(run / experiments.FILE, self.overrides or [])


CONFLICTS = (
    Excludes("schema", "model explain overrides",
        "--schema describes every configuration; leave out MODEL, --explain and --set"),
    Needs("overrides", "model",
        "--set changes a configuration, and --explain needs none; name MODEL, or leave out --set", where="explain"),
)  # fmt: skip


@with_options(ConfigOptions, CONFLICTS)
def config(options: ConfigOptions) -> None:
    """Show a configuration with every key written out, or explain a key.

    The output is a configuration that gives the same run."""
    from nmt.config.help import explain
    from nmt.config.json_schema import document
    from nmt.config.structure import dump
    from nmt.experiment import Experiment

    if options.schema:
        typer.echo(document(Experiment))
    elif options.explain is None:
        typer.echo(dump(options.experiment()), nl=False)
    else:
        tree = None if options.model is None else options.experiment().model_dump(mode="json")
        typer.echo(explain(Experiment, options.explain, tree))
