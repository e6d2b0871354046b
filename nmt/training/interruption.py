"""Ctrl-C and SIGTERM as a request to stop at the next good moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nmt.core import log


class Interrupted:
    """True once a signal has asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked


@contextmanager
def interruptible() -> Iterator[Interrupted]:
    """Turns the first SIGINT or SIGTERM into a note to stop after the update; a second one stops at once."""
    interrupted = Interrupted()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # signals reach the main thread alone
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupted:
            raise KeyboardInterrupt
        interrupted.asked = True
        if not log.is_silent():  # but not through the log: its lock may be held at this very moment
            os.write(2, b"\nstopping after this update; once more to stop at once\n")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Has SIGTERM raise KeyboardInterrupt, so that no other process is left behind; training has a way of its own with
    it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
