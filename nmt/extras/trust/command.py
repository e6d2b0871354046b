"""`nmt calibrate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.conflicts import Needs
from nmt.cli.options import ModelOptions, check_model, with_options
from nmt.core.memory import gc_paused


@dataclass(frozen=True)
class CalibrateOptions(ModelOptions):
    """The options of `nmt calibrate`."""

    source: Annotated[Path | None, typer.Option("--source", "-s", metavar="FILE")] = None
    """Sentences to translate; default: data.valid."""
    target: Annotated[Path | None, typer.Option("--target", "-t", metavar="FILE")] = None
    """Their translations, to compare with."""


CONFLICTS = (
    Needs("source", "target", "--source and --target go together; give both"),
    Needs("target", "source", "--source and --target go together; give both"),
)


@with_options(CalibrateOptions, CONFLICTS)
def calibrate(options: CalibrateOptions) -> Callable[[], None]:
    """Learn how sure a model may be of its translations.

    Translates data.valid or the given pairs, compares with their references, and writes what it learns to
    confidence.json in the run, for nmt translate --confidence. Calibrate again when the weights have changed."""
    check_model(options.model, options.changes, needs_language=True)
    load = options.load()
    with gc_paused():
        from nmt.extras.trust import calibrate as workflow

    return partial(workflow.calibrate, load, options.source, options.target)
