"""The feed of the decoder at each update: the paper's schedules, their configuration, the trainer that follows them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from nmt.config.structure import parse_document, validate
from nmt.core.errors import InputError
from nmt.experiment import load
from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.loss import token_loss
from nmt.models.scheduled_sampling import ScheduledSampling
from nmt.models.seq2seq import Seq2Seq
from nmt.training.config import TrainingConfig
from nmt.training.feed import (
    AnyGoldSchedule,
    ExponentialDecay,
    FreeRunningConfig,
    GoldSchedule,
    InverseSigmoidDecay,
    LinearDecay,
    ScheduledSamplingConfig,
    TeacherForcingConfig,
)
from nmt.workflows.train import train
from tests.workflows.runs import measured

SCHEDULES = [
    LinearDecay(),
    LinearDecay(start=0.9, end=0.25, updates=40, warmup=7),
    LinearDecay(start=0.3, end=0.3, updates=1),
    LinearDecay(start=1.0, end=0.0, updates=33),
    ExponentialDecay(),
    ExponentialDecay(k=0.9, warmup=3),
    ExponentialDecay(k=1e-300),
    InverseSigmoidDecay(),
    InverseSigmoidDecay(k=1.0),
    InverseSigmoidDecay(k=12.5, warmup=30),
    InverseSigmoidDecay(k=1e300),
]
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)


def epsilons(schedule: GoldSchedule, count: int) -> list[float]:
    """Returns epsilon for i = 0 to count - 1."""
    return [schedule.gold_probability(schedule.warmup + 1 + i) for i in range(count)]


@pytest.mark.parametrize(("start", "end", "updates"), [(1.0, 0.5, 100), (0.9, 0.25, 7), (1.0, 0.0, 1), (0.4, 0.4, 9)])
def test_linear_is_the_papers(start: float, end: float, updates: int) -> None:
    """max(epsilon, k - c i)"""
    k, c, epsilon = Decimal(start), (Decimal(start) - Decimal(end)) / updates, Decimal(end)
    expected = [float(max(epsilon, k - c * i)) for i in range(3 * updates)]
    schedule = LinearDecay(start=start, end=end, updates=updates)
    assert epsilons(schedule, 3 * updates) == pytest.approx(expected)
    assert schedule.gold_probability(10**9) == end


@pytest.mark.parametrize("k", [0.5, 0.9, 0.9998])
def test_exponential_is_the_papers(k: float) -> None:
    """k^i"""
    expected = itertools.accumulate([1.0] + [k] * 199, operator.mul)
    assert epsilons(ExponentialDecay(k=k), 200) == pytest.approx(list(expected))


@pytest.mark.parametrize("k", [1.0, 3.0, 50.0, 500.0])
def test_inverse_sigmoid_is_the_papers(k: float) -> None:
    """k / (k + exp(i / k)), in numbers that do not overflow"""
    exact, schedule = Decimal(k), InverseSigmoidDecay(k=k)
    for i in (*range(200), 1_000, 5_000, 20_000):
        expected = float(exact / (exact + (i / exact).exp()))
        assert schedule.gold_probability(i + 1) == pytest.approx(expected, rel=1e-9, abs=1e-300), i


@every_schedule
def test_a_schedule_stays_a_probability_and_never_rises(schedule: GoldSchedule) -> None:
    updates = [*range(1, 400), 5_000, 100_000, 10**7, 10**12]
    values = [schedule.gold_probability(update) for update in updates]
    assert all(0.0 <= value <= 1.0 for value in values)
    assert all(later <= earlier for earlier, later in itertools.pairwise(values))


@every_schedule
def test_warmup_is_teacher_forcing_and_moves_the_rest(schedule: AnyGoldSchedule) -> None:
    later = type(schedule)(**{**schedule.model_dump(), "warmup": 50})
    feed = ScheduledSamplingConfig(schedule=later)
    for update in range(1, 51):
        assert later.gold_probability(update) == 1.0
        assert isinstance(feed.at(update), TeacherForcing)
    assert epsilons(later, 30) == epsilons(schedule, 30)


def test_what_each_kind_feeds() -> None:
    for update in (1, 1000):
        assert isinstance(TeacherForcingConfig().at(update), TeacherForcing)
        assert isinstance(FreeRunningConfig().at(update), FreeRunning)
        assert TeacherForcingConfig().gold_probability(update) == 1.0
        assert FreeRunningConfig().gold_probability(update) == 0.0
    schedule = LinearDecay(start=1.0, end=0.0, updates=10)
    feed = ScheduledSamplingConfig(schedule=schedule, unit="sentence", guess="sample").at(4)
    assert isinstance(feed, ScheduledSampling)
    assert feed.gold_probability == pytest.approx(0.7)
    assert (feed.unit, feed.guess) == ("sentence", "sample")
    # not free running: without gold tokens the guesses are still to be drawn
    assert isinstance(ScheduledSamplingConfig(schedule=schedule, guess="sample").at(11), ScheduledSampling)


def read(feed: str) -> TrainingConfig:
    """Reads a feed; "SCHEDULE linear, warmup: 3" is scheduled sampling with that schedule."""
    if feed.startswith("SCHEDULE"):
        feed = feed.replace("SCHEDULE", "{kind: scheduled_sampling, schedule: {kind:") + "}}"
    return validate(TrainingConfig, parse_document(f"stopping: {{updates: 3}}\nfeed: {feed}", "c.yaml"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("teacher_forcing", TeacherForcingConfig()),
        ("free_running", FreeRunningConfig()),
        ("scheduled_sampling", ScheduledSamplingConfig()),
        (
            "{kind: scheduled_sampling, schedule: exponential, unit: sentence, guess: sample}",
            ScheduledSamplingConfig(schedule=ExponentialDecay(), unit="sentence", guess="sample"),
        ),
        (
            "SCHEDULE inverse_sigmoid, k: 30, warmup: 4",
            ScheduledSamplingConfig(schedule=InverseSigmoidDecay(k=30.0, warmup=4)),
        ),
        (
            "SCHEDULE linear, start: 1, end: 0, updates: 9",
            ScheduledSamplingConfig(schedule=LinearDecay(start=1.0, end=0.0, updates=9)),
        ),
    ],
)
def test_the_config_is_read(text: str, expected: object) -> None:
    assert read(text).feed == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scheduled_samplin", "feed: text 'scheduled_samplin' is not a choice; did you mean 'scheduled_sampling'? "),
        ("3", "feed: expected keys with values, found 3"),
        ("{schedule: linear}", "feed.kind: missing; add one of teacher_forcing, free_running, scheduled_sampling"),
        ("{kind: free_running, unit: token}", "feed.unit: unknown key for kind 'free_running'; it belongs to kind "),
        ("{kind: scheduled_sampling, shedule: linear}", "feed.shedule: unknown key; did you mean 'schedule'?"),
        ("{kind: scheduled_sampling, unit: word}", "feed.unit: text 'word' is not a choice; the choices are token, "),
        ("{kind: scheduled_sampling, guess: max}", "feed.guess: text 'max' is not a choice; did you mean 'argmax'? "),
        ("{kind: scheduled_sampling, schedule: cosine}", "feed.schedule: text 'cosine' is not a choice; the choices "),
        ("{kind: scheduled_sampling, schedule: {warmup: 3}}", "feed.schedule.kind: missing; add one of linear, "),
        ("SCHEDULE linear, warmup: -1", "feed.schedule.warmup: expected at least 0, found -1"),
        ("SCHEDULE linear, start: 1.5", "feed.schedule.start: expected at most 1, found 1.5"),
        ("SCHEDULE linear, end: -0.5", "feed.schedule.end: expected at least 0, found -0.5"),
        ("SCHEDULE linear, updates: 0", "feed.schedule.updates: expected more than 0, found 0"),
        ("SCHEDULE linear, start: 0.2", "feed.schedule: end (0.5) is above start (0.2): gold words are to get fewer"),
        ("SCHEDULE linear, k: 0.9", "feed.schedule.k: unknown key for kind 'linear'; it belongs to kind 'exponential'"),
        ("SCHEDULE exponential, k: 1.0", "feed.schedule.k: expected less than 1, found 1.0"),
        ("SCHEDULE exponential, k: 0", "feed.schedule.k: expected more than 0, found 0"),
        ("SCHEDULE inverse_sigmoid, k: 0.5", "feed.schedule.k: expected at least 1, found 0.5"),
        ("SCHEDULE inverse_sigmoid, k: .inf", "feed.schedule.k: expected a finite number, found inf"),
        ("SCHEDULE inverse_sigmoid, updates: 9", "feed.schedule.updates: unknown key for kind 'inverse_sigmoid'; "),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        read(text)
    assert str(refused.value).startswith(f"c.yaml:2: {message}")
    assert "\n" not in str(refused.value)


Spied = list[tuple[type, float | None]]
Start = Callable[..., tuple[Spied, list[dict[str, Any]]]]


@pytest.fixture
def start(here: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Trains on tiny data with settings; gives the feed of each batch of this start and all train lines so far."""

    def train_with(*settings: str) -> tuple[Spied, list[dict[str, Any]]]:
        seen: Spied = []

        def spy(model: Any, source_BS: Any, target_BT: Any, feed: Any, *rest: Any, **options: Any) -> Any:
            seen.append((type(feed), getattr(feed, "gold_probability", None)))
            return token_loss(model, source_BS, target_BT, feed, *rest, **options)

        with monkeypatch.context() as patched:
            patched.setattr("nmt.training.objective.token_loss", spy)
            experiment = load(Path("config.yaml"), ["training.validation.bleu=false", *settings])
            train(experiment, device="cpu", precision="float32")
        return seen, measured("run", "train")

    return train_with


def test_the_trainer_goes_by_the_schedule_across_starts(start: Start) -> None:
    feed = "training.feed={kind: scheduled_sampling, schedule: {kind: linear, warmup: 2, end: 0.0, updates: 4}}"
    seen, _ = start("training.stopping.updates=5", "training.accumulate=3", feed)
    resumed, lines = start("training.stopping.updates=8", "training.accumulate=3", feed)
    by_update = [None, None, None, 0.75, 0.5, 0.25, 0.0, 0.0]
    by_batch = [(TeacherForcing if epsilon is None else ScheduledSampling, epsilon) for epsilon in by_update]
    assert seen == [each for each in by_batch[:5] for _ in range(3)]
    assert resumed == [each for each in by_batch[5:] for _ in range(3)]
    assert [line.get("gold_probability") for line in lines] == by_update


def test_the_model_is_told_the_updates_done(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each update, and in another start from where it goes on: what is annealed depends on nothing else."""
    told: list[int] = []
    monkeypatch.setattr(Seq2Seq, "at_update", lambda model, update: told.append(update))
    start("training.stopping.updates=3", "training.accumulate=3")
    start("training.stopping.updates=5", "training.accumulate=3")
    assert told == [0, 1, 2, 3, 4]


SCHEDULED = "kind: scheduled_sampling, schedule: {kind: linear, start: 0.6, end: 0.4, updates: 10}"


@pytest.mark.parametrize(
    ("feed", "kind", "probability"),
    [
        (f"{{{SCHEDULED}, unit: token, guess: sample}}", ScheduledSampling, 0.4),
        (f"{{{SCHEDULED}, unit: sentence, guess: argmax}}", ScheduledSampling, 0.4),
        ("free_running", FreeRunning, 0.0),
    ],
)
def test_a_model_learns_from_its_own_words(feed: str, kind: type, probability: float, start: Start) -> None:
    seen, lines = start(
        f"training.feed={feed}", "training.stopping.updates=30", "training.optimizer.learning_rate=0.01"
    )
    assert [each for each, _ in seen] == [kind] * 30
    assert lines[-1]["gold_probability"] == pytest.approx(probability)
    losses = [line["loss"] for line in lines]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
