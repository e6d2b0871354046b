"""Ctrl-C and SIGTERM as a request to stop at the next good moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from nmt.core import log


class Stopped(BaseException):
    """A signal has stopped the work in progress."""


class Interruption:
    """A request to stop, once a signal has come."""

    def __init__(self) -> None:
        self._signal = 0
        self._raises = False

    def signal(self) -> int:
        """The signal that has come; 0 for none."""
        return self._signal

    def note(self, number: int) -> None:
        """Notes a signal. Raises Stopped within ``at_once``."""
        self._signal = number
        if self._raises:
            raise Stopped

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Ends the body, which must leave nothing half done, by Stopped: when a signal comes, or one has come."""
        self._raises = True
        try:
            if self.signal():
                raise Stopped
            yield
        finally:
            self._raises = False


def end(number: int) -> NoReturn:
    """Ends a command that a signal has asked to stop: by KeyboardInterrupt, or by SystemExit with what a shell reports
    for a program that SIGTERM ended."""
    if number == signal.SIGTERM:
        raise SystemExit(128 + number)
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turns the first SIGINT or SIGTERM into a note to stop after the update; a second one ends at once."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # signals reach only the main thread
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interruption.signal():
            end(number)
        if log.verbosity() > log.Verbosity.SILENT:  # but not through the log: its lock may be held at this very moment
            os.write(2, b"\nstopping after this update; once more to stop at once\n")
        interruption.note(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Has SIGTERM raise KeyboardInterrupt, so that no other process is left behind; training handles it otherwise."""
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
