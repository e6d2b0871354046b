"""The queue: who is served when, what fails with whom, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from nmt.extras.service import batcher as module
from nmt.extras.service.batcher import HEAVY, Answer, Batcher, Batching, Closed, Done, Job, Refused, RequestOptions
from tests.extras.service.fakes import AT_ONCE, Gated, batching, tree

ONE, SEVERAL = RequestOptions(), RequestOptions(n_best=3)
EIGHT = Batching(sentences=8, wait_s=0.0)


def given(engine: Gated) -> list[list[str]]:
    return [texts for _, texts in engine.batches]


def texts(job: Job) -> list[str]:
    return [answer.tree["translations"][0]["text"] for answer in job.future.result(20)]


def numbered(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


def listed(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


def held(engine: Gated, batcher: Batcher) -> Job:
    """A job that the model has begun, so that whatever comes next waits."""
    job = batcher.submit(["first"], ONE)
    assert engine.begun.acquire(timeout=20)
    return job


@contextmanager
def busy(config: Batching = AT_ONCE, **callbacks: Any) -> Iterator[tuple[Gated, Batcher, Job]]:
    """An engine, its batcher, and the job that it is held at."""
    engine = Gated(is_open=False)
    with batching(engine, config, **callbacks) as batcher:
        yield engine, batcher, held(engine, batcher)


@pytest.mark.parametrize(
    ("config", "requests", "expected"),
    [
        (AT_ONCE, [[f"a{n}", f"b{n}"] for n in range(5)], [[f"{side}{n}" for n in range(5) for side in "ab"]]),
        (
            EIGHT, [numbered("l", 20), *"abcdefgh"],
            [["l0", "l1", *"abcdef"], ["g", "h", *numbered("l", 8)[2:]], numbered("l", 16)[8:], numbered("l", 20)[16:]],
        ),
        (EIGHT, [*"abcdefg", ["x", "y"], "z"], [[*"abcdefg", "x"], ["y", "z"]]),
        (Batching(characters=9, wait_s=0.0), ["x" * 30, "yyyy", "yyyyy", "z"], ["x" * 30, ["yyyy", "yyyyy"], "z"]),
        (AT_ONCE, ["a", ("B", SEVERAL), "c", ("D", SEVERAL)], [["a", "c"], ["B", "D"]]),
        (AT_ONCE, [(["a", "H", "b", "I"], ONE, [1, HEAVY, HEAVY - 1, HEAVY]), *"cd"], ["a", ["c", "d"], *"HbI"]),
        (AT_ONCE, [(["H"], ONE, [HEAVY]), (["I"], ONE, [HEAVY])], [*"HI"]),
    ],
    ids=["together", "portions", "a pair keeps its place", "characters", "same options", "heavy alone", "two heavy"],
)  # fmt: skip
def test_what_waits_is_divided_into_batches_and_translated_in_one_thread(
    config: Batching, requests: list[Any], expected: list[Sequence[str]]
) -> None:
    with busy(config) as (engine, batcher, _):
        submitted = [each if isinstance(each, tuple) else (each, ONE) for each in requests]
        jobs = [batcher.submit(listed(each), *options) for each, *options in submitted]
        assert batcher.pending == sum(len(job.texts) for job in jobs)
        engine.open()
        assert [texts(job) for job in jobs] == [[text.upper() for text in job.texts] for job in jobs]
        assert batcher.pending == 0
    assert given(engine) == [["first"], *map(listed, expected)]
    assert engine.thread == "model"


def test_a_request_alone_waits_for_company_and_no_longer_than_it_needs() -> None:
    engine = Gated()
    with batching(engine, Batching(sentences=4, wait_s=30.0)) as batcher:
        began = time.monotonic()
        jobs = [batcher.submit([name], ONE) for name in "abcd"]
        assert [texts(job) for job in jobs] == [["A"], ["B"], ["C"], ["D"]]
        assert time.monotonic() - began < 20
        late = batcher.submit(["e"], ONE)
        batcher.close()  # nobody will come any more
        assert texts(late) == ["E"]
    assert given(engine) == [["a", "b", "c", "d"], ["e"]]


def test_a_stream_of_short_requests_does_not_starve_a_long_one() -> None:
    with busy(Batching(sentences=4, wait_s=0.0)) as (engine, batcher, _):
        long = batcher.submit(numbered("l", 3), ONE)
        for _ in range(6):  # before each batch as many new ones as it has room for
            for name in "abcd":
                batcher.submit([name], ONE)
            engine.let(1)
            assert engine.begun.acquire(timeout=20)
        engine.open()
        assert texts(long) == ["L0", "L1", "L2"]
    taken = [number for number, batch in enumerate(given(engine)) if any(text[0] == "l" for text in batch)]
    assert taken[0] == 1
    assert taken[-1] <= 5


def test_the_time_to_come_again_follows_the_speed_of_the_model() -> None:
    """Before anything is measured, a sentence is taken to need 50 ms: 200 would need 10 s."""
    engine = Gated(is_open=False)
    with batching(engine, Batching(queue=200, wait_s=0.0)) as batcher:
        for _ in range(30):
            fast = held(engine, batcher)
            engine.let()
            texts(fast)
        held(engine, batcher)
        batcher.submit(numbered("waiting", 200), ONE)
        with pytest.raises(Refused, match="queue is full") as refused:
            batcher.submit(["late"], ONE)
        engine.open()
    assert refused.value.retry_after_s <= 2


def test_what_is_dropped_makes_room_and_is_not_translated() -> None:
    with busy(Batching(queue=2, sentences=2, wait_s=0.0)) as (engine, batcher, first):
        dropped = batcher.submit(["a", "b"], ONE)
        batcher.cancel(dropped)
        batcher.cancel(first)  # on its way already: its answer is thrown away
        assert batcher.pending == 0
        kept = batcher.submit(["c", "d"], ONE)
        engine.open()
        assert texts(kept) == ["C", "D"]
        for job in (first, dropped):
            with pytest.raises(Closed):
                job.future.result(0)
    assert given(engine) == [["first"], ["c", "d"]]


class Stepping(Gated):
    """Takes three steps for each batch, and does what a test wants done before one."""

    def __init__(self) -> None:
        super().__init__(is_open=False)
        self.before: dict[tuple[str, int], Callable[[], object]] = {}
        self.steps: list[tuple[str, int]] = []
        """The first text and the number of each step."""

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        self.batches.append((options, list(texts)))
        for step in (1, 2, 3):
            self.before.pop((texts[0], step), lambda: None)()
            on_step()
            self.steps.append((texts[0], step))
        return [Answer(tree(text), len(text.split())) for text in texts]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a batch be interrupted at each step, by one other."""
    monkeypatch.setattr(module, "SLICE_S", 0.0)


def test_a_small_request_shares_no_batch_with_a_large_one_and_passes_it(impatient: None) -> None:
    engine = Stepping()
    with batching(engine, EIGHT) as batcher:
        jobs = []
        engine.before["l0", 2] = lambda: jobs.append(batcher.submit(["s"], ONE, [3]))
        long = [batcher.submit(numbered(name, 8), ONE, [100] * 8) for name in "lm"]
        for job, name in zip(long, "LM", strict=True):
            assert texts(job) == numbered(name, 8)
        assert texts(jobs[0]) == ["S"]
    assert engine.steps[:5] == [("l0", 1), ("s", 1), ("s", 2), ("s", 3), ("l0", 2)]
    assert ["s"] in given(engine)


@pytest.mark.usefixtures("impatient")
def test_lighter_batches_pass_a_heavy_one_between_its_steps() -> None:
    engine, jobs = Stepping(), dict[str, Job]()

    def submit(name: str, weight: int, options: RequestOptions = ONE) -> Callable[[], None]:
        return lambda: jobs.__setitem__(name, batcher.submit([name], options, [weight]))

    with batching(engine) as batcher:
        engine.before["H", 1] = submit("too heavy", 251)
        engine.before["H", 2] = submit("m", 250)
        engine.before["m", 2] = submit("s", 62, SEVERAL)  # the one that passes is passed in turn
        engine.before["m", 3] = submit("also too heavy", 63)
        assert texts(batcher.submit(["H"], ONE, [1000])) == ["H"]
        assert [texts(jobs[name])[0] for name in ("m", "s", "too heavy", "also too heavy")]
    order = [("H", 1), ("m", 1), *[("s", step) for step in (1, 2, 3)], ("m", 2), ("m", 3), ("H", 2)]
    assert engine.steps[: len(order)] == order
    assert engine.steps[len(order) : len(order) + 4] == [*[("also too heavy", step) for step in (1, 2, 3)], ("H", 3)]


@pytest.mark.usefixtures("impatient")
def test_a_stream_of_light_batches_does_not_starve_a_heavy_one() -> None:
    engine = Stepping()
    with batching(engine) as batcher:

        def another(number: int = 0) -> None:
            engine.before[f"s{number}", 1] = lambda: another(number + 1) if number < 100 else None
            batcher.submit([f"s{number}"], ONE)

        engine.before["H", 1] = another
        assert texts(batcher.submit(["H"], ONE, [1000])) == ["H"]
    assert [step for step in engine.steps if step[0] == "H"] == [("H", step) for step in (1, 2, 3)]
    assert engine.steps.index(("H", 3)) == 11  # after one batch of three steps before each of its steps


def test_nothing_is_interrupted_before_it_has_run_for_a_while() -> None:
    engine = Stepping()
    with batching(engine) as batcher:
        jobs = []
        engine.before["H", 1] = lambda: jobs.append(batcher.submit(["s"], ONE))
        texts(batcher.submit(["H"], ONE, [1000]))
        texts(jobs[0])
    assert [name for name, _ in engine.steps] == ["H"] * 3 + ["s"] * 3


@pytest.mark.usefixtures("impatient")
def test_the_parts_of_a_request_that_pass_each_other_keep_their_places() -> None:
    engine, done = Stepping(), list[Done]()
    with batching(engine, on_done=done.append) as batcher:
        assert texts(batcher.submit(["H", "a", "b"], ONE, [1000, 1, 1])) == ["H", "A", "B"]
        batcher.close()
        batcher.join(20)
        assert not batcher.is_alive()
    assert [each.sentences for each in done] == [2, 1]
    assert [step[0] for step in engine.steps] == ["a"] * 3 + ["H"] * 3


@pytest.mark.usefixtures("impatient")
def test_a_search_that_nobody_waits_for_ends_at_its_next_step(capfd: pytest.CaptureFixture[str]) -> None:
    engine, light = Stepping(), list[Job]()

    def pass_and_cancel() -> None:
        light.append(batcher.submit(["s"], ONE))
        engine.before["s", 2] = lambda: batcher.cancel(jobs[0])

    with batching(engine) as batcher:
        engine.before["H", 2] = pass_and_cancel
        jobs = [batcher.submit(["H"], ONE, [1000])]
        beside = batcher.submit(["a"], ONE)
        assert texts(beside) == ["A"]
        assert texts(light[0]) == ["S"]  # the one that has passed it goes on
        with pytest.raises(Closed):
            jobs[0].future.result(20)
        engine.before["b", 1] = lambda: batcher.cancel(jobs[1])
        jobs.append(batcher.submit(["b"], ONE))
        jobs.append(batcher.submit(["c"], ONE))
        assert texts(jobs[-1]) == ["C"]
    assert [step for step in engine.steps if step[0] == "H"] == [("H", 1), ("H", 2)]
    assert capfd.readouterr().err == ""


def test_only_small_requests_get_into_the_second_half_of_the_queue() -> None:
    with busy(Batching(queue=8, sentences=8, wait_s=0.0)) as (engine, batcher, _):
        batcher.submit(["a"] * 5, ONE)
        with pytest.raises(Refused, match="queue is full"):
            batcher.submit(["H"], ONE, [HEAVY])
        with pytest.raises(Refused, match="queue is full"):
            batcher.submit(["b"] * 3, ONE)  # more than a portion
        small = batcher.submit(["c"] * 2, ONE)
        engine.open()
        assert texts(small) == ["C", "C"]


def test_a_failure_is_of_its_batch_alone_and_the_log_has_the_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    with busy(Batching(sentences=4, wait_s=0.0)) as (engine, batcher, _):
        bad = batcher.submit(["fail", *numbered("l", 9)], ONE)
        beside = batcher.submit(["a"], ONE)
        after = batcher.submit(["b"], SEVERAL)
        engine.open()
        for job in (bad, beside):
            with pytest.raises(Refused, match="the model failed"):
                job.future.result(20)
        assert texts(after) == ["B"]
        assert texts(batcher.submit(["c"], ONE)) == ["C"]
        assert batcher.pending == 0
    assert given(engine)[1:] == [["fail", "a", "l0", "l1"], ["b"], ["c"]]
    said = capfd.readouterr().err
    assert "warning: a batch of 4 sentences failed:" in said
    assert said.count("RuntimeError: the model is broken") == 1


def test_closing_finishes_what_is_there_and_takes_nothing_more() -> None:
    ended = threading.Event()
    with busy(on_end=ended.set) as (engine, batcher, _):
        job = batcher.submit(["a"], ONE)
        batcher.close()
        assert batcher.state == "draining"
        with pytest.raises(Closed):
            batcher.submit(["b"], ONE)
        assert not ended.wait(0.05)
        engine.open()
        assert texts(job) == ["A"]
        assert ended.wait(20)


def test_aborting_fails_all_at_once() -> None:
    with busy() as (_, batcher, first):
        second = batcher.submit(["a"], ONE)
        batcher.abort()
        for job in (first, second):
            with pytest.raises(Closed):
                job.future.result(0)
        batcher.join(0.05)
        assert batcher.is_alive()  # the model cannot be stopped in the middle


def test_what_loading_raises_ends_it_and_is_kept() -> None:
    ended = threading.Event()
    fault = ValueError("no weights")

    def load() -> Gated:
        raise fault

    batcher = Batcher(load, Batching(), on_end=ended.set)
    assert batcher.state == "loading"
    waiting = batcher.submit(["a"], ONE)
    batcher.start()
    assert ended.wait(20)
    with pytest.raises(Closed):
        waiting.future.result(20)
    assert batcher.failure is fault
    assert batcher.state == "draining"


def test_batches_are_reported_with_the_wait_of_each_request() -> None:
    done = list[Done]()
    with busy(Batching(sentences=4, wait_s=0.0), on_done=done.append) as (engine, batcher, _):
        long = batcher.submit(["one two", *numbered("l", 4)], ONE)
        short = batcher.submit(["a"], ONE)
        engine.open()
        texts(long), texts(short)
        batcher.close()
        batcher.join(20)
        assert not batcher.is_alive()
    assert [(each.sentences, each.tokens, len(each.waited_s)) for each in done] == [(1, 1, 1), (4, 5, 2), (2, 2, 0)]
    assert all(each.seconds >= 0 and min(each.waited_s, default=0) >= 0 for each in done)


def test_many_threads_get_each_their_own() -> None:
    requests = [numbered(f"n{number}-", number % 7 + 1) for number in range(100)]
    config = Batching(sentences=16, wait_s=0.002, queue=10_000)
    with batching(Gated(), config) as batcher, ThreadPoolExecutor(len(requests)) as threads:
        found = list(threads.map(lambda request: texts(batcher.submit(request, ONE)), requests))
    assert found == [[text.upper() for text in request] for request in requests]
