"""The queue: who is served when, what fails with whom, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from nmt.extras.service import batcher as module
from nmt.extras.service.batcher import HEAVY, Answer, Batcher, Batching, Closed, Done, Failed, Full, Job, RequestOptions
from tests.extras.service.fakes import Gated, batching, tree

SEVERAL = RequestOptions(n_best=3)


def given(engine: Gated) -> list[list[str]]:
    return [texts for _, texts in engine.batches]


def texts(job: Job) -> list[str]:
    return [answer.tree["translations"][0]["text"] for answer in job.future.result(20)]


def numbered(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


def held(engine: Gated, batcher: Batcher) -> Job:
    """A job that the model has begun, so that whatever comes next waits."""
    job = batcher.submit(["first"], RequestOptions())
    assert engine.begun.acquire(timeout=20)
    return job


def test_what_waits_is_translated_together_and_in_one_thread() -> None:
    engine = Gated(is_open=False)
    with batching(engine) as batcher:
        held(engine, batcher)
        jobs = [batcher.submit([f"a{number}", f"b{number}"], RequestOptions()) for number in range(5)]
        assert batcher.pending == 10
        engine.let(2)
        assert [texts(job) for job in jobs] == [[f"A{number}", f"B{number}"] for number in range(5)]
        assert batcher.pending == 0
    assert given(engine) == [["first"], [f"{side}{number}" for number in range(5) for side in "ab"]]
    assert engine.thread == "model"


def test_a_request_alone_waits_for_company_and_no_longer_than_it_needs() -> None:
    engine = Gated()
    with batching(engine, Batching(sentences=4, wait_s=30.0)) as batcher:
        began = time.monotonic()
        jobs = [batcher.submit([name], RequestOptions()) for name in "abcd"]
        assert [texts(job) for job in jobs] == [["A"], ["B"], ["C"], ["D"]]
        assert time.monotonic() - began < 20
        late = batcher.submit(["e"], RequestOptions())
        batcher.close()  # nobody will come any more
        assert texts(late) == ["E"]
    assert given(engine) == [["a", "b", "c", "d"], ["e"]]


def test_a_long_request_is_taken_in_portions_and_holds_up_nobody() -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(sentences=8, wait_s=0.0)) as batcher:
        first = held(engine, batcher)
        long = batcher.submit(numbered("l", 20), RequestOptions())
        short = [batcher.submit([name], RequestOptions()) for name in "abcdefgh"]
        engine.let(1)
        texts(first)
        engine.let(1)
        assert [texts(job) for job in short[:6]] == [[name.upper()] for name in "abcdef"]
        assert not long.future.done()
        engine.open()
        assert texts(long) == [name.upper() for name in numbered("l", 20)]
    batches = given(engine)[1:]
    assert batches[0] == ["l0", "l1", *"abcdef"]
    assert batches[1] == ["g", "h", *numbered("l", 8)[2:]]
    assert batches[2:] == [numbered("l", 16)[8:], numbered("l", 20)[16:]]


def test_a_stream_of_short_requests_does_not_starve_a_long_one() -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(sentences=4, wait_s=0.0)) as batcher:
        held(engine, batcher)
        long = batcher.submit(numbered("l", 3), RequestOptions())
        for _ in range(6):  # before each batch as many new ones as it has room for
            for name in "abcd":
                batcher.submit([name], RequestOptions())
            engine.let(1)
            assert engine.begun.acquire(timeout=20)
        engine.open()
        assert texts(long) == ["L0", "L1", "L2"]
    taken = [number for number, batch in enumerate(given(engine)) if any(text[0] == "l" for text in batch)]
    assert taken[0] == 1
    assert taken[-1] <= 5


def test_a_request_that_was_begun_because_there_was_room_keeps_its_place() -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(sentences=8, wait_s=0.0)) as batcher:
        held(engine, batcher)
        jobs = [batcher.submit([name], RequestOptions()) for name in "abcdefg"]
        pair = batcher.submit(["x", "y"], RequestOptions())
        last = batcher.submit(["z"], RequestOptions())
        engine.open()
        assert [texts(job) for job in (*jobs, pair, last)][-2:] == [["X", "Y"], ["Z"]]
    assert given(engine)[1:] == [[*"abcdefg", "x"], ["y", "z"]]


def test_a_batch_has_room_for_so_many_characters_but_for_one_sentence_always() -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(characters=10, wait_s=0.0)) as batcher:
        held(engine, batcher)
        jobs = [batcher.submit([text], RequestOptions()) for text in ("x" * 30, "y" * 5, "y" * 5, "z")]
        engine.open()
        for job in jobs:
            texts(job)
    assert given(engine)[1:] == [["x" * 30], ["y" * 5, "y" * 5], ["z"]]


def test_only_those_that_want_the_same_share_a_batch_and_all_get_their_turn() -> None:
    engine = Gated(is_open=False)
    with batching(engine) as batcher:
        held(engine, batcher)
        jobs = [batcher.submit([name], SEVERAL if name.isupper() else RequestOptions()) for name in "aBcD"]
        engine.open()
        assert [texts(job) for job in jobs] == [["A"], ["B"], ["C"], ["D"]]
    assert engine.batches[1:] == [(RequestOptions(), ["a", "c"]), (SEVERAL, ["B", "D"])]


def test_a_full_queue_refuses_and_says_when_to_come_again() -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(queue=3, wait_s=0.0)) as batcher:
        held(engine, batcher)
        job = batcher.submit(["a", "b"], RequestOptions())
        with pytest.raises(Full, match="the queue is full; try again in 1 s"):
            batcher.submit(["c", "d"], RequestOptions())
        fitting = batcher.submit(["c"], RequestOptions())
        engine.open()
        assert texts(job) + texts(fitting) == ["A", "B", "C"]


def test_the_time_to_come_again_follows_the_speed_of_the_model() -> None:
    """Before anything is measured, a sentence is taken to need 50 ms: 200 would need 10 s."""
    engine = Gated(is_open=False)
    with batching(engine, Batching(queue=200, wait_s=0.0)) as batcher:
        for _ in range(30):
            fast = held(engine, batcher)
            engine.let()
            texts(fast)
        held(engine, batcher)
        batcher.submit(numbered("waiting", 200), RequestOptions())
        with pytest.raises(Full) as refused:
            batcher.submit(["late"], RequestOptions())
        engine.open()
    assert refused.value.retry_after_s <= 2


def test_what_is_dropped_makes_room_and_is_not_translated() -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(queue=2, sentences=2, wait_s=0.0)) as batcher:
        first = held(engine, batcher)
        dropped = batcher.submit(["a", "b"], RequestOptions())
        batcher.cancel(dropped)
        batcher.cancel(first)  # on its way already: its answer is thrown away
        assert batcher.pending == 0
        kept = batcher.submit(["c", "d"], RequestOptions())
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


def test_a_heavy_text_is_a_batch_of_its_own() -> None:
    engine = Gated(is_open=False)
    with batching(engine) as batcher:
        held(engine, batcher)
        mixed = batcher.submit(["a", "H", "b", "I"], RequestOptions(), [1, HEAVY, HEAVY - 1, HEAVY])
        light = [batcher.submit([name], RequestOptions()) for name in "cd"]
        engine.open()
        assert texts(mixed) == ["A", "H", "B", "I"]
        assert [texts(job) for job in light] == [["C"], ["D"]]
    assert given(engine)[1:] == [["a"], ["c", "d"], ["H"], ["b"], ["I"]]


def test_a_small_request_shares_no_batch_with_a_large_one_and_passes_it(impatient: None) -> None:
    engine = Stepping()
    with batching(engine, Batching(sentences=8, wait_s=0.0)) as batcher:
        jobs = []
        engine.before["l0", 2] = lambda: jobs.append(batcher.submit(["s"], RequestOptions(), [3]))
        long = [batcher.submit(numbered(name, 8), RequestOptions(), [100] * 8) for name in "lm"]
        for job, name in zip(long, "LM", strict=True):
            assert texts(job) == numbered(name, 8)
        assert texts(jobs[0]) == ["S"]
    assert engine.steps[:5] == [("l0", 1), ("s", 1), ("s", 2), ("s", 3), ("l0", 2)]
    assert ["s"] in given(engine)


@pytest.mark.usefixtures("impatient")
def test_lighter_batches_pass_a_heavy_one_between_its_steps() -> None:
    engine, jobs = Stepping(), dict[str, Job]()

    def submit(name: str, weight: int, options: RequestOptions = RequestOptions()) -> Callable[[], None]:  # noqa: B008
        return lambda: jobs.__setitem__(name, batcher.submit([name], options, [weight]))

    with batching(engine) as batcher:
        engine.before["H", 1] = submit("too heavy", 251)
        engine.before["H", 2] = submit("m", 250)
        engine.before["m", 2] = submit("s", 62, SEVERAL)  # the one that passes is passed in turn
        engine.before["m", 3] = submit("also too heavy", 63)
        assert texts(batcher.submit(["H"], RequestOptions(), [1000])) == ["H"]
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
            batcher.submit([f"s{number}"], RequestOptions())

        engine.before["H", 1] = another
        assert texts(batcher.submit(["H"], RequestOptions(), [1000])) == ["H"]
    assert [step for step in engine.steps if step[0] == "H"] == [("H", step) for step in (1, 2, 3)]
    assert engine.steps.index(("H", 3)) == 11  # after one batch of three steps before each of its steps


def test_nothing_is_interrupted_before_it_has_run_for_a_while() -> None:
    engine = Stepping()
    with batching(engine) as batcher:
        jobs = []
        engine.before["H", 1] = lambda: jobs.append(batcher.submit(["s"], RequestOptions()))
        texts(batcher.submit(["H"], RequestOptions(), [1000]))
        texts(jobs[0])
    assert [name for name, _ in engine.steps] == ["H"] * 3 + ["s"] * 3


@pytest.mark.usefixtures("impatient")
def test_the_parts_of_a_request_that_pass_each_other_keep_their_places() -> None:
    engine, done = Stepping(), list[Done]()
    with batching(engine, on_done=done.append) as batcher:
        assert texts(batcher.submit(["H", "a", "b"], RequestOptions(), [1000, 1, 1])) == ["H", "A", "B"]
        batcher.close()
        batcher.join(20)
        assert not batcher.is_alive()
    assert [each.sentences for each in done] == [2, 1]
    assert [step[0] for step in engine.steps] == ["a"] * 3 + ["H"] * 3


@pytest.mark.usefixtures("impatient")
def test_a_search_that_nobody_waits_for_ends_at_its_next_step(capfd: pytest.CaptureFixture[str]) -> None:
    engine, light = Stepping(), list[Job]()

    def pass_and_cancel() -> None:
        light.append(batcher.submit(["s"], RequestOptions()))
        engine.before["s", 2] = lambda: batcher.cancel(jobs[0])

    with batching(engine) as batcher:
        engine.before["H", 2] = pass_and_cancel
        jobs = [batcher.submit(["H"], RequestOptions(), [1000])]
        beside = batcher.submit(["a"], RequestOptions())
        assert texts(beside) == ["A"]
        assert texts(light[0]) == ["S"]  # the one that has passed it goes on
        with pytest.raises(Closed):
            jobs[0].future.result(20)
        engine.before["b", 1] = lambda: batcher.cancel(jobs[1])
        jobs.append(batcher.submit(["b"], RequestOptions()))
        jobs.append(batcher.submit(["c"], RequestOptions()))
        assert texts(jobs[-1]) == ["C"]
    assert [step for step in engine.steps if step[0] == "H"] == [("H", 1), ("H", 2)]
    assert capfd.readouterr().err == ""


def test_only_small_requests_get_into_the_second_half_of_the_queue() -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(queue=8, sentences=8, wait_s=0.0)) as batcher:
        held(engine, batcher)
        batcher.submit(["a"] * 5, RequestOptions())
        with pytest.raises(Full):
            batcher.submit(["H"], RequestOptions(), [HEAVY])
        with pytest.raises(Full):
            batcher.submit(["b"] * 3, RequestOptions())  # more than a portion
        small = batcher.submit(["c"] * 2, RequestOptions())
        engine.open()
        assert texts(small) == ["C", "C"]


def test_a_failure_is_of_its_batch_alone_and_the_log_has_the_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    engine = Gated(is_open=False)
    with batching(engine, Batching(sentences=4, wait_s=0.0)) as batcher:
        held(engine, batcher)
        bad = batcher.submit(["fail", *numbered("l", 9)], RequestOptions())
        beside = batcher.submit(["a"], RequestOptions())
        after = batcher.submit(["b"], SEVERAL)
        engine.open()
        for job in (bad, beside):
            with pytest.raises(Failed):
                job.future.result(20)
        assert texts(after) == ["B"]
        assert texts(batcher.submit(["c"], RequestOptions())) == ["C"]
        assert batcher.pending == 0
    assert given(engine)[1:] == [["fail", "a", "l0", "l1"], ["b"], ["c"]]
    said = capfd.readouterr().err
    assert "warning: a batch of 4 sentences failed:" in said
    assert said.count("RuntimeError: the model is broken") == 1


def test_closing_finishes_what_is_there_and_takes_nothing_more() -> None:
    engine, ended = Gated(is_open=False), threading.Event()
    with batching(engine, on_end=ended.set) as batcher:
        held(engine, batcher)
        job = batcher.submit(["a"], RequestOptions())
        batcher.close()
        assert batcher.state == "draining"
        with pytest.raises(Closed):
            batcher.submit(["b"], RequestOptions())
        assert not ended.wait(0.05)
        engine.open()
        assert texts(job) == ["A"]
        assert ended.wait(20)


def test_aborting_fails_all_at_once() -> None:
    engine = Gated(is_open=False)
    with batching(engine) as batcher:
        jobs = [held(engine, batcher), batcher.submit(["a"], RequestOptions())]
        batcher.abort()
        for job in jobs:
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
    waiting = batcher.submit(["a"], RequestOptions())
    batcher.start()
    assert ended.wait(20)
    with pytest.raises(Closed):
        waiting.future.result(20)
    assert batcher.failure is fault
    assert batcher.state == "draining"


def test_batches_are_reported_with_the_wait_of_each_request() -> None:
    engine, done = Gated(is_open=False), list[Done]()
    with batching(engine, Batching(sentences=4, wait_s=0.0), on_done=done.append) as batcher:
        held(engine, batcher)
        long = batcher.submit(["one two", *numbered("l", 4)], RequestOptions())
        short = batcher.submit(["a"], RequestOptions())
        engine.open()
        texts(long), texts(short)
        batcher.close()
        batcher.join(20)
        assert not batcher.is_alive()
    assert [(each.sentences, each.tokens, len(each.waited_s)) for each in done] == [(1, 1, 1), (4, 5, 2), (2, 2, 0)]
    assert all(each.seconds >= 0 and min(each.waited_s, default=0) >= 0 for each in done)


def test_many_threads_get_each_their_own() -> None:
    engine = Gated()
    found: dict[int, list[str]] = {}
    with batching(engine, Batching(sentences=16, wait_s=0.002, queue=10_000)) as batcher:

        def ask(number: int) -> None:
            found[number] = texts(batcher.submit(numbered(f"n{number}-", number % 7 + 1), RequestOptions()))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert found == {
        number: [text.upper() for text in numbered(f"n{number}-", number % 7 + 1)] for number in range(100)
    }


def test_no_texts_have_no_answers() -> None:
    with batching(Gated()) as batcher:
        none: list[Answer] = batcher.submit([], RequestOptions()).future.result(0)
        assert none == []
