"""One queue for all requests, and the one thread that owns the model and translates what waits there.

A batch is taken from the front of the queue: of each request, in order of arrival, a portion; a request that has had
its portion and is not done goes to the back. So a long one is on its way from the beginning and holds up nobody.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nmt.core import log
from nmt.extras.serve.engine import Answer, Engine, RequestOptions

State: TypeAlias = Literal["loading", "ready", "draining"]

PORTIONS = 4
"""Requests that a batch holds at least, where so many long ones wait."""

LONGEST_WAIT_S = 60
"""The longest wait before another try, in seconds."""


class Full(Exception):
    """The queue has no room for a request; ``retry_after_s`` is when it may have."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"the queue is full; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class Closed(Exception):
    """The server takes no more requests."""


class Failed(Exception):
    """The model failed on a batch; the log has the traceback."""


@dataclass(frozen=True)
class Batching:
    """Limits of the texts that are translated together, and of those that wait."""

    sentences: int = 32
    """The most of one batch."""
    characters: int = 8000
    """The most of one batch, unless a single sentence has more."""
    wait_s: float = 0.005
    """Time for which the first request of a batch waits for others."""
    queue: int = 1024
    """Sentences that wait, at most."""


@dataclass(frozen=True)
class Done:
    """A batch that was translated, for who counts."""

    sentences: int
    tokens: int
    seconds: float
    waited_s: tuple[float, ...]
    """Waiting time of each request whose first sentences were in the batch."""


class Job:
    """The texts of one request on their way; ``future`` has their answers in the end, or Failed or Closed."""

    def __init__(self, texts: Sequence[str], options: RequestOptions) -> None:
        self.texts = tuple(texts)
        self.options = options
        self.future: Future[list[Answer]] = Future()
        self.future.set_running_or_notify_cancel()  # whoever waits for it cannot take it from the batcher
        self.since = time.monotonic()
        self.taken = 0
        self.answers: list[Answer] = []

    @property
    def left(self) -> int:
        """Texts that are still to be taken."""
        return len(self.texts) - self.taken


Part: TypeAlias = tuple[Job, tuple[str, ...]]
"""A portion of a job's texts."""


class Batcher:
    """Translates the texts of any number of threads, in a thread of its own, which loads the model first."""

    def __init__(
        self,
        load: Callable[[], Engine],
        batching: Batching,
        *,
        on_ready: Callable[[], None] = lambda: None,
        on_done: Callable[[Done], None] = lambda done: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_ready``, ``on_done`` and ``on_end`` are called in its thread: when the model is loaded, after each
        batch, and when it ends."""
        self._load, self._batching = load, batching
        self._on_ready, self._on_done, self._on_end = on_ready, on_done, on_end
        self._changed = threading.Condition()
        self._queue: deque[Job] = deque()
        self._pending = 0
        self._running: list[Part] = []
        self._closed = False
        self._sentence_s = 0.05
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self.engine: Engine | None = None
        self.failure: BaseException | None = None

    @property
    def state(self) -> State:
        """Tells if requests are taken, not yet or no more."""
        if self._closed:
            return "draining"
        return "loading" if self.engine is None else "ready"

    @property
    def pending(self) -> int:
        """Sentences in the queue."""
        return self._pending

    def start(self) -> None:
        """Starts its thread. What is submitted before the model is loaded waits."""
        self._thread.start()

    def submit(self, texts: Sequence[str], options: RequestOptions) -> Job:
        """Puts texts into the queue. Raises Full and Closed."""
        job = Job(texts, options)
        with self._changed:
            if self._closed:
                raise Closed
            if self._pending + len(texts) > self._batching.queue:
                raise Full(self._clear_after_s())
            if texts:
                self._queue.append(job)
                self._pending += job.left
                self._changed.notify_all()
            else:
                job.future.set_result([])
        return job

    def cancel(self, job: Job) -> None:
        """Drops the rest of a job whose client has gone; a finished one stays so."""
        with self._changed:
            if not job.future.done():
                self._fail(job, Closed())

    def close(self) -> None:
        """Takes nothing more; the thread ends when all that is there is done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def abort(self) -> None:
        """Closes, and drops all that is not done."""
        with self._changed:
            self._closed = True
            for job in [*self._queue, *(job for job, _ in self._running)]:
                self._fail(job, Closed())
            self._changed.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Waits until its thread has ended, and says whether it has."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _clear_after_s(self) -> int:
        """When the queue will be empty, at the speed so far."""
        running = sum(len(texts) for _, texts in self._running)
        return min(LONGEST_WAIT_S, max(1, math.ceil((self._pending + running) * self._sentence_s)))

    def _fail(self, job: Job, error: Exception) -> None:
        if job in self._queue:
            self._queue.remove(job)
            self._pending -= job.left
        if not job.future.done():
            job.future.set_exception(error)

    def _run(self) -> None:
        try:
            self.engine = self._load()
            self._on_ready()
            while parts := self._next():
                self._translate(self.engine, parts)
        except BaseException as error:
            self.failure = error
            self.abort()
        finally:
            self._on_end()

    def _next(self) -> list[Part]:
        """The next batch, when there is one; empty at the end."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._queue:
                    patience_s = self._queue[0].since + self._batching.wait_s - time.monotonic()
                    self._changed.wait_for(
                        lambda: self._closed or self._pending >= self._batching.sentences or not self._queue, patience_s
                    )
                if self._queue:
                    self._running = self._take()
                    return self._running
                if self._closed:
                    return []

    def _take(self) -> list[Part]:
        """Takes a batch of texts with the options of the first job in the queue."""
        portion = max(1, self._batching.sentences // PORTIONS)
        room = _Room(self._batching.sentences, self._batching.characters)
        waiting = deque(job for job in self._queue if job.options == self._queue[0].options)
        served: dict[Job, None] = {}  # those that have had a portion, in order
        parts: list[Part] = []
        while waiting and not room.is_full:
            job = waiting.popleft()
            portion_texts = job.texts[job.taken : job.taken + portion]
            texts = room.take(portion_texts)
            if texts:
                parts.append((job, texts))
                job.taken += len(texts)
                self._pending -= len(texts)
            if len(texts) == len(portion_texts):
                served[job] = None
                if job.left:
                    waiting.append(job)
        unserved = [job for job in self._queue if job not in served]
        self._queue = deque(job for job in [*unserved, *served] if job.left)
        return parts

    def _translate(self, engine: Engine, parts: Sequence[Part]) -> None:
        texts = [text for _, part in parts for text in part]
        began = time.monotonic()
        try:
            answers = engine.answer(texts, parts[0][0].options)
            assert len(answers) == len(texts)
        except Exception:
            log.warning(f"a batch of {len(texts)} sentences failed:\n{traceback.format_exc()}")
            with self._changed:
                self._running = []
                for job, _ in parts:
                    self._fail(job, Failed())
            return
        seconds = time.monotonic() - began
        waited_s = tuple({job: began - job.since for job, _ in parts if not job.answers}.values())
        with self._changed:
            self._running = []
            self._sentence_s += 0.2 * (seconds / len(texts) - self._sentence_s)
            remaining = iter(answers)
            for job, part in parts:
                job.answers += [next(remaining) for _ in part]
                if len(job.answers) == len(job.texts) and not job.future.done():
                    job.future.set_result(job.answers)
        self._on_done(Done(len(texts), sum(answer.tokens for answer in answers), seconds, waited_s))


class _Room:
    """The room left in a batch."""

    def __init__(self, sentences: int, characters: int) -> None:
        self._sentences, self._characters = sentences, characters
        self._is_empty = True
        self.is_full = False

    def take(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Takes the first texts, as many as fit; the batch is full from the first one that does not."""
        taken: list[str] = []
        for text in texts:
            if self._sentences == 0 or (len(text) > self._characters and not self._is_empty):
                self.is_full = True
                break
            taken.append(text)
            self._sentences -= 1
            self._characters -= len(text)
            self._is_empty = False
        return tuple(taken)
