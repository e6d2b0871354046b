"""`nmt prepare`."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Annotated

import typer

from nmt.cli.options import Config, Overrides, Ray
from nmt.core import log


def prepare(
    config: Config,
    force: Annotated[bool, typer.Option("--force", help="Prepare again even if nothing has changed.")] = False,
    ray: Ray = None,
    overrides: Overrides = None,
) -> None:
    """Prepare a corpus for training.

    Learns the subword model, filters the pairs, reports what was dropped and why, and writes the tokens. If neither the
    corpus nor its configuration has changed, it does nothing.
    """
    from nmt import experiment

    settings = experiment.load(config, overrides or [], with_corpora=True)

    from nmt.workflows import prepare as workflow

    cluster = None
    if ray is not None:
        from nmt.extras.cluster.cluster import connected

        cluster = partial(connected, ray)
    workflow.prepare(settings.data, run=settings.folder, seed=settings.seed, force=force, cluster=cluster)
    log.info(f"next: nmt train {shlex.quote(str(config))}")
