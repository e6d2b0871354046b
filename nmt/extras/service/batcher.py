"""One queue for all requests, and the one thread that owns the model and translates what waits there.

A batch is taken from the front of the queue: of each request, in order of arrival, a portion; a request that has had
its portion and is not done goes to the back. So a long one is on its way from the beginning and holds up nobody.

Texts are weighed in subwords, to which the most steps of their search are proportional. Only requests of few subwords
share a batch with each other, and only requests of many; a text of many is a batch of its own. Before a step, a search
for requests of many that has run for a while lets others pass that have a fraction of its weight: the same thread
translates them within it. The search then runs for as long again, so that it ends however many of them come. One that
nobody waits for any more ends before its next step.
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
from nmt.extras.service.engine import Answer, Engine, RequestOptions

State: TypeAlias = Literal["loading", "ready", "draining"]

HEAVY = 128
"""Subwords from which a text, or what is left of a request, is heavy."""

LIGHTER = 4
"""A batch may interrupt one that has at least so many times its weight."""

SLICE_S = 0.2
"""Time for which a search runs before it is interrupted, and after which no further batch interrupts it, in seconds."""

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

    def __init__(self, texts: Sequence[str], options: RequestOptions, weights: Sequence[int]) -> None:
        self.texts = tuple(texts)
        self.weights = tuple(weights)
        self.options = options
        self.future: Future[list[Answer]] = Future()
        self.future.set_running_or_notify_cancel()  # whoever waits for it cannot take it from the batcher
        self.since = time.monotonic()
        self.taken = 0
        self.answers: dict[int, Answer] = {}

    @property
    def left(self) -> int:
        """Texts that are still to be taken."""
        return len(self.texts) - self.taken

    @property
    def weight(self) -> int:
        """Weight of these."""
        return sum(self.weights[self.taken :])

    @property
    def kind(self) -> int:
        """0 where it is light; 2 where its next text alone is heavy, or else 1."""
        return (self.weight >= HEAVY) + (self.weights[self.taken] >= HEAVY)

    def portion(self, most: int) -> range:
        """The client's next texts: one that is heavy, or several that are not."""
        rows = range(self.taken, min(self.taken + (1 if self.kind == 2 else most), len(self.texts)))
        return range(self.taken, next((row for row in rows[1:] if self.weights[row] >= HEAVY), rows.stop))


Part: TypeAlias = tuple[Job, range]
"""Some of a job's texts, by their numbers."""


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
        self._portion = max(1, batching.sentences // PORTIONS)
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

    def submit(self, texts: Sequence[str], options: RequestOptions, weights: Sequence[int] | None = None) -> Job:
        """Puts texts into the queue, with the number of their subwords; None: few. Raises Full and Closed. Only a
        request of a few light texts gets into the second half of the queue."""
        job = Job(texts, options, [1] * len(texts) if weights is None else weights)
        is_small = len(texts) <= self._portion and job.weight < HEAVY
        with self._changed:
            if self._closed:
                raise Closed
            is_half_full = self._pending > self._batching.queue // 2
            if self._pending + len(texts) > self._batching.queue or (is_half_full and not is_small):
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
        running = sum(len(rows) for _, rows in self._running)
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
                    return self._take()
                if self._closed:
                    return []

    def _take(self, budget: float = math.inf) -> list[Part]:
        """Takes a batch of texts with the options and the kind of the first job in the queue that weighs at most
        ``budget``, which is also the most of the batch. It is full from the first text that does not fit, unless that
        is its only one."""
        with self._changed:
            queue = [job for job in self._queue if job.weight <= budget]
            kind = queue[0].kind if queue else 0
            waiting = deque(job for job in queue if job.options == queue[0].options and job.kind == kind)
            if kind == 2:
                waiting = deque(queue[:1])
            room = [self._batching.sentences, self._batching.characters, budget]
            served: dict[Job, None] = {}  # those that have had a portion, in order
            parts: list[Part] = []
            while waiting:
                job = waiting.popleft()
                portion = job.portion(self._portion)
                for row in portion:
                    used = 1, len(job.texts[row]), job.weights[row]
                    room = [left - of_text for left, of_text in zip(room, used, strict=True)]
                    if min(room) < 0 and (parts or row > portion.start):
                        break
                    job.taken += 1
                if rows := range(portion.start, job.taken):
                    parts.append((job, rows))
                    self._pending -= len(rows)
                if rows != portion:
                    break
                served[job] = None
                if job.left and job.kind == kind < 2:
                    waiting.append(job)
            unserved = [job for job in self._queue if job not in served]
            self._queue = deque(job for job in [*unserved, *served] if job.left)
            self._running += parts
            return parts

    def _translate(self, engine: Engine, parts: Sequence[Part]) -> None:
        taken = [(job, row) for job, rows in parts for row in rows]
        weight = sum(job.weights[row] for job, row in taken)
        is_heavy = any(sum(job.weights) >= HEAVY for job, _ in parts)  # others do not pause: larger batches are faster
        began = resumed = time.monotonic()
        waited_s = tuple({job: began - job.since for job, _ in parts if not job.answers}.values())
        paused_s = 0.0

        def on_step() -> None:
            """Ends a search that nobody waits for; lets lighter batches pass a heavy one that has run for a while."""
            nonlocal resumed, paused_s
            if all(job.future.done() for job, _ in parts):
                raise Closed
            if is_heavy and (paused := time.monotonic()) - resumed >= SLICE_S:
                while lighter := self._take(weight // LIGHTER):
                    self._translate(engine, lighter)
                    if time.monotonic() - paused >= SLICE_S:
                        break
                resumed = time.monotonic()
                paused_s += resumed - paused

        try:
            answers = engine.answer([job.texts[row] for job, row in taken], parts[0][0].options, on_step)
            assert len(answers) == len(taken)
        except Closed:
            return
        except Exception:
            log.warning(f"a batch of {len(taken)} sentences failed:\n{traceback.format_exc()}")
            with self._changed:
                for job, _ in parts:
                    self._fail(job, Failed())
            return
        finally:
            with self._changed:
                del self._running[-len(parts) :]  # those that interrupted it have ended before it
        seconds = time.monotonic() - began - paused_s
        with self._changed:
            self._sentence_s += 0.2 * (seconds / len(taken) - self._sentence_s)
            for (job, row), answer in zip(taken, answers, strict=True):
                job.answers[row] = answer
            for job, _ in parts:
                if len(job.answers) == len(job.texts) and not job.future.done():
                    job.future.set_result([job.answers[row] for row in range(len(job.texts))])
        self._on_done(Done(len(taken), sum(answer.tokens for answer in answers), seconds, waited_s))
