"""`nmt import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import Quiet, Verbose, set_verbosity


def import_(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A YAML file of JoeyNMT 2 or OpenNMT-py 3.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write; left out, stdout.")
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Convert a configuration of JoeyNMT or OpenNMT-py to one of nmt.

    A comment names the key that each was. What has no counterpart is listed at the end, and on stderr. Models are not
    converted, and nothing is overwritten."""
    set_verbosity(quiet=quiet, verbose=verbose)
    from nmt.extras.convert.import_config import import_config

    import_config(config, output=output)
