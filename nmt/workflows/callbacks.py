"""Objects that observe a training and may stop it."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.core.errors import InputError
from nmt.training.processes import Processes

EVENTS = ("on_update", "on_validation", "on_checkpoint")
"""Methods of a callback."""


def check(callbacks: Sequence[object], processes: Processes) -> None:
    """Raises InputError for an object with a method that would never be called, and for callbacks in several processes,
    which would have to stop together."""
    for callback in callbacks:
        for name in [name for name in dir(callback) if name.startswith("on_")] or ["none of them"]:
            if name not in EVENTS:
                raise InputError(f"callbacks: training calls {', '.join(EVENTS)}, and {callback!r} has {name}")
    if processes.size > 1:
        raise InputError(f"callbacks: are for training in one process, not in {processes.size}; leave them out")
