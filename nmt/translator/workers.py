"""Several windows of lines translated at once.

By processes, each with the model and one thread: two threads of one process share every matrix product and wait for
each other at each; two processes share nothing. Or, where an engine computes outside Python's lock, by threads of this
process, so that it has work while Python reads and writes the text of other windows.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from nmt.core import log
from nmt.core.errors import InputError
from nmt.translator.translator import Translator, load
from nmt.translator.windows import Answer, Wanted, Window

AHEAD = 2
"""Windows for each process or thread that are read before the first of them is written."""


@dataclass(frozen=True)
class Loading:
    """What ``load`` needs in each process."""

    model: str
    overrides: Sequence[str]
    device: str
    precision: str
    ensemble: Sequence[str]


class Workers:
    """Answers windows in order: one by one, until it is worth it to start processes or threads.

    Processes take seconds to start and the memory of a model each. They are started at the ``after``-th window in a row
    of ``full`` lines, and end with the context.
    """

    def __init__(
        self, translator: Translator, wanted: Wanted, loading: Loading | None, *, count: int, full: int, after: int
    ):
        """``count`` 1: there are no others. ``loading`` None: threads of this process, all with ``translator``."""
        self._translator = translator
        self._wanted = wanted
        self._loading = loading
        self._count = count
        self._full = full
        self._after = after
        self._executor: Executor | None = None

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
                waiting.append((window, self._submit(self._executor, window)))
            # who has written less than a window may wait for the answer
            while waiting and (not is_full or len(waiting) > AHEAD * self._count):
                yield self._next(waiting)
        while waiting:
            yield self._next(waiting)

    def _started(self) -> Executor:
        if self._loading is None:
            return ThreadPoolExecutor(self._count)
        log.detail(f"{self._count} processes translate")
        return ProcessPoolExecutor(
            self._count,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self._loading, self._wanted),
        )

    def _submit(self, executor: Executor, window: Window) -> Future[Answer]:
        if self._loading is None:
            return executor.submit(self._wanted.answer, self._translator, window)
        return executor.submit(_answer, window)

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
    gc.freeze()  # a full collection would scan all of PyTorch, a tenth of a second


def _answer(window: Window) -> Answer:
    assert _here is not None
    translator, wanted = _here
    return wanted.answer(translator, window)
