"""One queue for all requests, and the single thread that owns the model and translates the texts in the queue.

A batch is taken from the front of the queue: of each request, in order of arrival, a portion; a request that has had
its portion and is not done goes to the back. So a long request starts at once, and delays no other.

The weight of a text is its number of subwords, to which the maximum number of steps of its search is proportional.
Requests of few subwords share a batch only with each other, and so do requests of many subwords; a text of many
subwords is a batch of its own. Before a step, a search for requests of many subwords that has run for a while lets
requests pass that have a fraction of its weight: the same thread translates them within it. The search then runs for as
long again, so that it ends even if more of them arrive. A search whose clients have all gone ends before its next step.
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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nmt.core import log

if TYPE_CHECKING:
    from nmt.extras.documents.glossary import Glossary
    from nmt.extras.service.engine import TranslatorEngine

State: TypeAlias = Literal["loading", "ready", "draining"]

HEAVY = 128
"""Number of subwords from which on a text, or the rest of a request, is heavy."""

LIGHTER = 4
"""Factor of weight: a batch may interrupt one that has at least this many times its weight."""

SLICE_S = 0.2
"""Time for which a search runs before it is interrupted, and after which no further batch interrupts it, in seconds."""

PORTIONS = 4
"""Minimum number of requests of a batch, if that many long ones wait."""

FAILED = "the model failed on this request or one beside it; the server's log says more"

LONGEST_WAIT_S = 60
"""Maximum time before another try, in seconds."""


@dataclass(frozen=True)
class RequestOptions:
    """The options of a request. Texts with the same options are translated together."""

    n_best: int | None = None
    """Number of translations of each text; None means the number in the configuration."""
    beam: int | None = None
    """Beam size; None means that of the configuration."""
    alignment: bool = False
    """If True, each translation comes with its alignment."""
    to: str | None = None
    """Target language; None means the model's only one, or the server's."""
    context: bool = False
    """If True, the texts of a request are sentences of a document, in order, each of which knows the preceding ones."""
    document: bool = False
    """If True, the texts are running text, as with ``search.document``."""
    markup: bool = False
    """If True, tags and entities are kept, as with ``search.markup``."""
    glossary: Glossary | None = None
    """Terms that the translations contain."""
    on_text: Callable[[str], object] | None = None
    """Function that is called with the beginnings of the translation of a single text. Such a text is a batch of its
    own."""


@dataclass(frozen=True)
class Answer:
    """The translations of one text."""

    tree: dict[str, Any]
    """Tree for JSON: ``source`` and ``translations``, as in a line of ``nmt translate --format jsonl``."""
    tokens: int
    """Number of subwords of all its translations."""
    warning: str | None = None
    """A note on the part of the text that was left out, or None."""


class Refused(Exception):
    """A request that is refused: the status of HTTP, and one sentence with the reason."""

    def __init__(self, status: int, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after_s = status, message, retry_after_s


class Closed(Refused):
    """The server accepts no more requests."""

    def __init__(self) -> None:
        super().__init__(503, "the server is shutting down; try again", retry_after_s=2)


@dataclass(frozen=True)
class Batching:
    """Limits of the texts that are translated together, and of the texts that wait."""

    sentences: int = 32
    """Maximum number of sentences of one batch."""
    characters: int = 8000
    """Maximum number of characters of one batch, unless a single sentence has more."""
    wait_s: float = 0.005
    """Time for which the first request of a batch waits for others."""
    queue: int = 1024
    """Maximum number of sentences that wait."""


@dataclass(frozen=True)
class Done:
    """A batch that was translated, for statistics."""

    sentences: int
    tokens: int
    seconds: float
    waited_s: tuple[float, ...]
    """Waiting time of each request whose first sentences were in the batch."""


class Job:
    """The texts of one request in progress; ``future`` will have their answers, or Refused or Closed."""

    def __init__(self, texts: Sequence[str], options: RequestOptions, weights: Sequence[int]) -> None:
        self.texts = tuple(texts)
        self.weights = tuple(weights)
        self.options = options
        self.future: Future[list[Answer]] = Future()
        self.future.set_running_or_notify_cancel()  # whoever waits for it cannot cancel it
        self.since = time.monotonic()
        self.taken = 0
        self.answers: dict[int, Answer] = {}

    @property
    def left(self) -> int:
        """Number of texts that have not been taken yet."""
        return len(self.texts) - self.taken

    @property
    def weight(self) -> int:
        """Weight of the texts that have not been taken yet."""
        return sum(self.weights[self.taken :])

    @property
    def kind(self) -> int:
        """Kind of the job: 0 if it is light, 2 if its next text alone is heavy, or else 1."""
        return (self.weight >= HEAVY) + (self.weights[self.taken] >= HEAVY)

    def portion(self, most: int) -> range:
        """Returns the indices of the client's next texts: one that is heavy, or several that are not."""
        rows = range(self.taken, min(self.taken + (1 if self.kind == 2 else most), len(self.texts)))
        return range(self.taken, next((row for row in rows[1:] if self.weights[row] >= HEAVY), rows.stop))


Part: TypeAlias = tuple[Job, range]
"""Some of a job's texts, by their indices."""


class Batcher(threading.Thread):
    """A thread that loads the model, and then translates the texts of any number of threads. Texts that are submitted
    before the model is loaded wait."""

    def __init__(
        self, load: Callable[[], TranslatorEngine], batching: Batching, *, on_ready: Callable[[], None] = lambda: None,
        on_done: Callable[[Done], None] = lambda done: None, on_end: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """``on_ready``, ``on_done`` and ``on_end`` are called in the batcher's thread: when the model is loaded, after
        each batch, and when it ends."""
        super().__init__(name="model", daemon=True)
        self._load, self._batching = load, batching
        self._on_ready, self._on_done, self._on_end = on_ready, on_done, on_end
        self._changed = threading.Condition()
        self._queue: deque[Job] = deque()
        self.pending = 0
        """Number of sentences in the queue."""
        self._running: list[Part] = []
        self._closed = False
        self._sentence_s = 0.05
        self._portion = max(1, batching.sentences // PORTIONS)
        self.engine: TranslatorEngine | None = None
        self.failure: BaseException | None = None

    @property
    def state(self) -> State:
        """State of the batcher: requests are accepted, not yet, or no longer."""
        return "draining" if self._closed else "loading" if self.engine is None else "ready"

    def submit(self, texts: Sequence[str], options: RequestOptions, weights: Sequence[int] | None = None) -> Job:
        """Puts texts into the queue, with the numbers of their subwords; None means that they are few. Raises Refused
        and Closed. Only a request of a few light texts is accepted into the second half of the queue."""
        job = Job(texts, options, [1] * len(texts) if weights is None else weights)
        is_small = len(texts) <= self._portion and job.weight < HEAVY
        with self._changed:
            if self._closed:
                raise Closed
            is_half_full = self.pending > self._batching.queue // 2
            if self.pending + len(texts) > self._batching.queue or (is_half_full and not is_small):
                ahead = self.pending + sum(len(rows) for _, rows in self._running)
                wait_s = min(LONGEST_WAIT_S, max(1, math.ceil(ahead * self._sentence_s)))  # at the speed so far
                raise Refused(429, f"the queue is full; try again in {wait_s} s", retry_after_s=wait_s)
            if texts:
                self._queue.append(job)
                self.pending += job.left
                self._changed.notify_all()
            else:
                job.future.set_result([])
        return job

    def cancel(self, job: Job) -> None:
        """Drops the rest of a job whose client has gone; a finished job does not change."""
        with self._changed:
            if not job.future.done():
                self._fail(job, Closed())

    def close(self) -> None:
        """Accepts no more texts; the thread ends when all accepted ones are done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def abort(self) -> None:
        """Closes the queue, and drops all texts that are not done."""
        with self._changed:
            self.close()
            for job in [*self._queue, *(job for job, _ in self._running)]:
                self._fail(job, Closed())

    def _fail(self, job: Job, error: Exception) -> None:
        if job in self._queue:
            self._queue.remove(job)
            self.pending -= job.left
        if not job.future.done():
            job.future.set_exception(error)

    def run(self) -> None:
        """Translates until the queue is closed and empty."""
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
        """Waits for the next batch and returns it; it is empty at the end."""
        with self._changed:
            while self._queue or not self._closed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._queue:
                    patience_s = self._queue[0].since + self._batching.wait_s - time.monotonic()
                    self._changed.wait_for(
                        lambda: self._closed or self.pending >= self._batching.sentences or not self._queue, patience_s
                    )
                if self._queue:
                    return self._take()
            return []

    def _take(self, budget: float = math.inf) -> list[Part]:
        """Takes a batch of texts with the options and the kind of the first job in the queue that weighs at most
        ``budget``, which is also the maximum weight of the batch. The first text that does not fit ends it, unless it
        would be the only one."""
        with self._changed:
            queue = [job for job in self._queue if job.weight <= budget]
            kind = queue[0].kind if queue else 0
            waiting = deque(job for job in queue if job.options == queue[0].options and job.kind == kind)
            if kind == 2:
                waiting = deque(queue[:1])
            room = [self._batching.sentences, self._batching.characters, budget]
            served: dict[Job, None] = {}  # jobs that have had a portion, in order
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
                    self.pending -= len(rows)
                if rows != portion:
                    break
                served[job] = None
                if job.left and job.kind == kind < 2:
                    waiting.append(job)
            unserved = [job for job in self._queue if job not in served]
            self._queue = deque(job for job in [*unserved, *served] if job.left)
            self._running += parts
            return parts

    def _translate(self, engine: TranslatorEngine, parts: Sequence[Part]) -> None:
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
                    self._fail(job, Refused(500, FAILED))
            return
        finally:
            with self._changed:
                del self._running[-len(parts) :]  # batches that interrupted it have ended before it
        seconds = time.monotonic() - began - paused_s
        with self._changed:
            self._sentence_s += 0.2 * (seconds / len(taken) - self._sentence_s)
            for (job, row), answer in zip(taken, answers, strict=True):
                job.answers[row] = answer
            for job, _ in parts:
                if len(job.answers) == len(job.texts) and not job.future.done():
                    job.future.set_result([job.answers[row] for row in range(len(job.texts))])
        self._on_done(Done(len(taken), sum(answer.tokens for answer in answers), seconds, waited_s))
