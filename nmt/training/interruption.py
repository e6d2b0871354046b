"""Ctrl-C and SIGTERM as requests to stop at the next good moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from nmt.core import log


class Stopped(BaseException):
    """A signal has stopped the work in progress."""


class Interruption:
    """A request to stop, which a signal makes."""

    def __init__(self) -> None:
        self.signal = 0
        """The signal that has arrived, or 0."""
        self._raises = False

    def note(self, number: int) -> None:
        """Records a signal. Raises Stopped within ``at_once``."""
        self.signal = number
        if self._raises:
            raise Stopped

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Context manager that raises Stopped as soon as a signal arrives, or at once if one has arrived. The body must
        leave nothing half done."""
        self._raises = True
        try:
            if self.signal:
                raise Stopped
            yield
        finally:
            self._raises = False


def end(number: int) -> NoReturn:
    """Ends a command that a signal has asked to stop: raises KeyboardInterrupt, or for SIGTERM SystemExit with the exit
    code that a shell reports for it."""
    if number == signal.SIGTERM:
        raise SystemExit(128 + number)
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turns the first SIGINT or SIGTERM into a request to stop after the update; a second one ends the command at
    once."""
    interruption = Interruption()

    def note(number: int, frame: FrameType | None) -> None:
        if interruption.signal:
            end(number)
        if log.verbosity() > log.Verbosity.SILENT:  # not through the log, whose lock may be held right now
            os.write(2, b"\nstopping after this update; once more to stop at once\n")
        interruption.note(number)

    with _handling(note, signal.SIGINT, signal.SIGTERM):
        yield interruption


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Makes SIGTERM raise KeyboardInterrupt, so that no other process is left behind; training handles SIGTERM
    differently."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handling(interrupt, signal.SIGTERM):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Sets the handler of signals in the body of the context, if it runs in the main thread, which gets the signals."""
    if threading.current_thread() is not threading.main_thread():
        numbers = ()
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
