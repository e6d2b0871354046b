"""`nmt prepare`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import Config, Overrides, with_options
from nmt.core import log

if TYPE_CHECKING:
    from nmt.workflows.build_corpus import OpenRunner


@dataclass(frozen=True)
class PrepareOptions:
    """The options of `nmt prepare`."""

    config: Config
    force: Annotated[bool, typer.Option("--force")] = False
    """Prepare again even if nothing has changed."""
    overrides: Overrides = None

    def cluster(self) -> OpenRunner | None:
        """Connects to machines that tokenise, where a plug-in knows any."""
        return None


@with_options(PrepareOptions)
def prepare(options: PrepareOptions) -> None:
    """Prepare a corpus for training.

    Learns the subword model, filters the pairs, reports what was dropped and why, and writes the tokens. If neither the
    corpus nor its configuration has changed, it does nothing.
    """
    from nmt import experiment

    settings = experiment.load(options.config, options.overrides or [], with_corpora=True)

    from nmt.workflows import prepare as workflow

    workflow.prepare(
        settings.data, run=settings.folder, seed=settings.seed, force=options.force, cluster=options.cluster()
    )
    log.info(f"next: nmt train {shlex.quote(str(options.config))}")
