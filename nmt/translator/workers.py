"""Translates several windows of lines at once, by threads of this process or by processes.

Products and kernels compute outside Python's lock, so two threads, each with its own sentences, are as fast as two
processes, start at once and share one model. Many threads would wait for the lock; processes, each with one thread and
its own model, share nothing. Another engine translates while Python reads and writes other windows.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial

from nmt.core import log
from nmt.core.errors import InputError
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions, Window, WindowTranslation

AHEAD = 2
"""Number of windows for each process or thread that are read before the first of them is written."""


@dataclass
class Workers(AbstractContextManager["Workers"]):
    """Translates windows in order, one by one until it is worth the time to start processes or threads: at the
    ``after``-th window in a row of ``full`` lines. Processes take seconds to start. All end with the context."""

    translator: Translator
    options: OutputOptions
    load: Callable[[], Translator] | None
    """Loads the translator of each process; None means that threads of this process translate, all with
    ``translator``."""
    _: KW_ONLY
    count: int
    """Number of processes or threads; if it is 1, this process translates."""
    full: int
    after: int
    _executor: Executor | None = field(default=None, init=False)
    _is_over: bool = field(default=False, init=False)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_over = True
        if self._executor is not None:
            self._executor.shutdown(wait=kind is None, cancel_futures=True)

    def translate(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Callable[[], WindowTranslation]]]:
        """Yields each window, in order, with a function that translates it in this process, or waits for its
        translation; it must be called before the next window is taken. This method and the function raise InputError if
        a process was ended from outside. A window without lines is a pause of the input, at which all translations are
        yielded."""
        waiting: deque[tuple[Window, Future[WindowTranslation]]] = deque()
        in_a_row = 0
        for window in windows:
            is_full = len(window.lines) >= self.full
            in_a_row = in_a_row + 1 if is_full else 0
            if self._executor is None and self.count > 1 and in_a_row >= self.after:
                self._executor = self._start()
            translate = partial(self.options.translate, self.translator)
            if self._executor is None:
                if window.lines:
                    yield window, partial(translate, window)
                continue
            if window.lines:
                in_worker = translate if self.load is None else _translate
                with self._reporting():
                    waiting.append((window, self._executor.submit(in_worker, window)))
            # whoever wrote less than a window, or stopped after one, may wait for the translation
            while waiting and (not is_full or len(waiting) > AHEAD * self.count):
                window, future = waiting.popleft()
                yield window, self._reporting()(future.result)
        for window, future in waiting:
            yield window, self._reporting()(future.result)

    def _start(self) -> Executor:
        if self.load is None:
            if self.translator.has_own_engine:
                self._share_engine()
            return ThreadPoolExecutor(self.count)
        log.detail(f"{self.count} processes translate")
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.count, context, _initialize, (self.load, self.options))

    def _share_engine(self) -> None:
        """Prepares our own engine for several threads, of which each computes by itself, and ends with the context."""
        import torch

        from nmt.search.engine import TorchEngine

        engine = self.translator.engine
        assert isinstance(engine, TorchEngine)
        torch.set_num_threads(1)
        self.translator = replace(self.translator, engine=replace(engine, on_step=self._end_if_over))

    def _end_if_over(self) -> None:
        if self._is_over:
            raise CancelledError

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Raises InputError for a process that is gone, which is noticed when a window is submitted or its translation
        awaited."""
        try:
            yield
        except BrokenProcessPool:
            raise InputError(f"--workers {self.count}: a process was ended, perhaps out of memory; use fewer") from None


_state: tuple[Translator, OutputOptions] | None = None
"""The translator and the options of this process, if it is a worker."""


def _initialize(load: Callable[[], Translator], options: OutputOptions) -> None:
    """Loads the translator of a worker process, which has one thread."""
    import torch

    global _state
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the first process ends this one
    log.set_verbosity(log.Verbosity.SILENT)
    torch.set_num_threads(1)
    _state = load(), options
    gc.freeze()  # a full collection would scan all of PyTorch, a tenth of a second


def _translate(window: Window) -> WindowTranslation:
    """Translates a window in a worker process."""
    assert _state is not None
    translator, options = _state
    return options.translate(translator, window)
