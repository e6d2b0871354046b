"""Translates several windows of lines at once.

Each process has its own model and one thread: two threads of one process would share every matrix product and wait for
each other, but two processes share nothing. For an engine that computes outside Python's lock, threads of this process
are enough: the engine translates while Python reads and writes the text of other windows.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType

from nmt.core import log
from nmt.core.errors import InputError
from nmt.translator.translator import Loader, Translator
from nmt.translator.windows import OutputOptions, Window, WindowTranslation

AHEAD = 2
"""Number of windows for each process or thread that are read before the first of them is written."""


@dataclass(frozen=True)
class LoadOptions:
    """The loader and its arguments, for each process."""

    load: Loader
    model: str
    overrides: Sequence[str]
    device: str
    precision: str
    ensemble: Sequence[str]


class Workers:
    """Translates windows in order, one by one until it is worth the time to start processes or threads.

    Processes take seconds to start and the memory of a model each. They are started at the ``after``-th window in a row
    of ``full`` lines, and end with the context.
    """

    def __init__(
        self,
        translator: Translator,
        options: OutputOptions,
        loading: LoadOptions | None,
        *,
        count: int,
        full: int,
        after: int,
    ) -> None:
        """If ``count`` is 1, this process translates. If ``loading`` is None, threads of this process translate, all
        with ``translator``."""
        self._translator = translator
        self._options = options
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

    def translate(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Callable[[], WindowTranslation]]]:
        """Yields each window, in order, with a function that translates it in this process, or waits for its
        translation; it must be called before the next window is taken. This method and the function raise InputError if
        a process was ended from outside."""
        waiting: deque[tuple[Window, Future[WindowTranslation]]] = deque()
        in_a_row = 0
        for window in windows:
            is_full = len(window.lines) >= self._full
            in_a_row = in_a_row + 1 if is_full else 0
            if self._executor is None and self._count > 1 and in_a_row >= self._after:
                self._executor = self._started()
            if self._executor is None:
                yield window, partial(self._options.translate, self._translator, window)
                continue
            with self._reporting():
                waiting.append((window, self._submitted(self._executor, window)))
            # whoever wrote less than a window may wait for the translation
            while waiting and (not is_full or len(waiting) > AHEAD * self._count):
                window, future = waiting.popleft()
                yield window, partial(self._result, future)
        for window, future in waiting:
            yield window, partial(self._result, future)

    def _started(self) -> Executor:
        if self._loading is None:
            return ThreadPoolExecutor(self._count)
        log.detail(f"{self._count} processes translate")
        from nmt.translator.worker_process import initialize

        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._count, context, initialize, (self._loading, self._options))

    def _submitted(self, executor: Executor, window: Window) -> Future[WindowTranslation]:
        if self._loading is None:
            return executor.submit(self._options.translate, self._translator, window)
        from nmt.translator.worker_process import translate

        return executor.submit(translate, window)

    def _result(self, future: Future[WindowTranslation]) -> WindowTranslation:
        with self._reporting():
            return future.result()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Raises InputError for a process that is gone, which is noticed when a window is submitted or its translation
        awaited."""
        try:
            yield
        except BrokenProcessPool:
            raise InputError(
                f"--workers {self._count}: one of the processes was ended, perhaps for lack of memory; use fewer"
            ) from None
