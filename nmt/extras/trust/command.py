"""`nmt calibrate`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nmt.cli.options import ModelOptions, check_model, with_options
from nmt.core.memory import gc_paused


@with_options(ModelOptions)
def calibrate(options: ModelOptions) -> Callable[[], None]:
    """Learn how sure a model may be of its translations.

    Translates data.valid, compares with its references, and writes what it learns to confidence.json in the run, for
    nmt translate --confidence. Calibrate again when the weights have changed."""
    check_model(options.model, options.changes, needs_language=True)
    load = options.load()
    with gc_paused():
        from nmt.extras.trust import calibrate as workflow

    return partial(workflow.calibrate, load)
