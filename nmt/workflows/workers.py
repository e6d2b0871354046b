"""Windows of lines translated by several processes, each with the model and one thread.

Two threads of one process share every matrix product and wait for each other at each; two processes share nothing.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from nmt.core import log
from nmt.core.errors import InputError
from nmt.workflows.answering import Answer, Wanted, Window
from nmt.workflows.translator import Translator, load

AHEAD = 2
"""Windows for each process that are read before the first of them is written."""


@dataclass(frozen=True)
class Loading:
    """What ``load`` needs in each process."""

    model: str
    overrides: Sequence[str]
    device: str
    precision: str
    ensemble: Sequence[str]


class Workers:
    """Answers windows in order: in this process, until it is worth it to start others.

    Those take seconds to start and the memory of a model each. They are started at the ``after``-th window in a row of
    ``full`` lines, and end with the context.
    """

    def __init__(self, translator: Translator, wanted: Wanted, loading: Loading, *, count: int, full: int, after: int):
        """``count`` 1: there are no others."""
        self._translator = translator
        self._wanted = wanted
        self._loading = loading
        self._count = count
        self._full = full
        self._after = after
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=kind is None, cancel_futures=True)

    def answers(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Answer]]:
        """Each window with what came of it, in order. Raises InputError where a process was ended from outside."""
        waiting: deque[tuple[Window, Future[Answer]]] = deque()
        in_a_row = 0
        for window in windows:
            is_full = len(window.lines) >= self._full
            in_a_row = in_a_row + 1 if is_full else 0
            if self._executor is None and self._count > 1 and in_a_row >= self._after:
                self._executor = self._started()
            if self._executor is None:
                yield window, self._wanted.answer(self._translator, window)
                continue
            with self._telling():
                waiting.append((window, self._executor.submit(_answer, window)))
            # who has written less than a window may wait for the answer
            while waiting and (not is_full or len(waiting) > AHEAD * self._count):
                yield self._next(waiting)
        while waiting:
            yield self._next(waiting)

    def _started(self) -> ProcessPoolExecutor:
        log.detail(f"{self._count} processes translate")
        return ProcessPoolExecutor(
            self._count,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self._loading, self._wanted),
        )

    def _next(self, waiting: deque[tuple[Window, Future[Answer]]]) -> tuple[Window, Answer]:
        window, future = waiting.popleft()
        with self._telling():
            return window, future.result()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Both to give a window and to wait for its answer may show that a process is gone."""
        try:
            yield
        except BrokenProcessPool:
            raise InputError(
                f"--workers {self._count}: one of the processes was ended, perhaps for lack of memory; use fewer"
            ) from None


_here: tuple[Translator, Wanted] | None = None
"""What a started process works with."""


def _begin(loading: Loading, wanted: Wanted) -> None:
    global _here
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the process that started this one ends it
    log.set_verbosity(log.Verbosity.SILENT)
    torch.set_num_threads(1)
    _here = (
        load(
            loading.model,
            device=loading.device,
            precision=loading.precision,
            overrides=loading.overrides,
            ensemble=loading.ensemble,
        ),
        wanted,
    )


def _answer(window: Window) -> Answer:
    assert _here is not None
    translator, wanted = _here
    return wanted.answer(translator, window)
