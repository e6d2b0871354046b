"""Trains and measures the systems, several at a time; whatever is done already is kept.

FOLDER/prepared/seed-1/               the corpus, prepared once for all systems of a seed
       scores/dot/seed-1/settings.yaml   the configuration, whole but for the number of updates
                         cost.json       what training takes (see comparison.budget)
                         train.log       what training and measuring have said
                         failed.txt      why it could not be trained or measured, where that is so
                         run/            the run directory of nmt train
                         valid/ test/    figures, translations, alignments (see comparison.measure)
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from comparison.budget import Budget, Training, last_line, write_whole
from comparison.children import Children, Stopped
from comparison.measure import Request, Split
from comparison.systems import Base, System
from nmt import experiment as experiments
from nmt.config.structure import differences, dump
from nmt.core import log
from nmt.core.errors import InputError
from nmt.experiment import Experiment


@dataclass(frozen=True)
class Comparison:
    """What is compared, and where."""

    folder: Path
    base: Base
    budget: Budget
    split: Split
    gold: tuple[str, str, str] | None

    def case(self, system: System, seed: int) -> Case:
        """One system with one seed."""
        folder = self.folder / system.key / f"seed-{seed}"
        return Case(self, system, seed, Training(folder, folder / "settings.yaml", system.horizons))


@dataclass(frozen=True)
class Case:
    """One system with one seed: what is trained and measured."""

    comparison: Comparison
    system: System
    seed: int
    training: Training

    @property
    def label(self) -> str:
        """For messages."""
        return f"{self.system.key}, seed {self.seed}"

    @property
    def failure(self) -> Path:
        """Holds why it failed, where it did."""
        return self.training.folder / "failed.txt"

    @property
    def prepared(self) -> Path:
        """The prepared corpus. Of each seed its own, for the seed draws the pairs that subwords are learned from."""
        return self.comparison.folder / "prepared" / f"seed-{self.seed}"

    def experiment(self) -> Experiment:
        """Its configuration, but for the number of updates."""
        own = (f"seed={self.seed}", f"run={self.training.run}", f"data.prepared={self.prepared}")
        return self.comparison.base.experiment([*self.system.overrides, *own])

    def request(self) -> Request:
        """What is to be measured: the model after its last update, for that is what was paid for."""
        cost = self.training.cost()
        assert cost is not None
        checkpoint = self.training.run / "checkpoints" / f"step-{cost.updates:08d}"
        split = self.comparison.split
        return Request(str(checkpoint), split, self.comparison.gold, str(self.training.folder / split))

    def is_measured(self) -> bool:
        """Whether there is nothing left to do."""
        path = self.training.folder / self.comparison.split / "request.json"
        return self.training.is_done() and path.exists() and path.read_text(encoding="utf-8") == self.request().text()

    @property
    def state(self) -> str:
        """How far it is, in a word or two."""
        if self.failure.exists():
            return "failed"
        if self.training.cost() is None:
            return "not begun"
        if not self.training.is_done():
            return "begun"
        return "done" if self.is_measured() else "trained"

    def settle(self) -> None:
        """Writes down its settings. Raises InputError where it was begun with others."""
        experiment, cost = self.experiment(), self.training.cost()
        if cost is not None:
            keys = differences(experiments.load(self.training.settings), experiment)
            if cost.budget != self.comparison.budget:
                keys.append(f"budget ({cost.budget})")
            if keys:
                what = ", ".join(keys)
                raise InputError(
                    f"{self.training.folder}: was begun with other {what}; delete it, or give another --output"
                )
        self.training.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.training.settings, dump(experiment))

    def work(self, children: Children) -> None:
        """Trains and measures what is not yet. Raises InputError where that fails, Stopped."""
        self.failure.unlink(missing_ok=True)
        try:
            cost = self.training.train(self.comparison.budget, children)
            log.info(f"{self.label}: {cost.updates:,} updates in {cost.seconds / 60:.1f} CPU minutes")
            if not self.is_measured():
                self._measure(children)
                log.info(f"{self.label}: measured on {self.comparison.split}")
        except InputError as error:
            write_whole(self.failure, f"{error}\n")
            raise

    def _measure(self, children: Children) -> None:
        request = self.training.folder / f"{self.comparison.split}.request.json"
        write_whole(request, self.request().text())
        ended = children.run("comparison.measure", [request], self.training.log)
        if ended.code != 0:
            if children.stopping:
                raise Stopped
            raise InputError(f"measuring failed with exit code {ended.code}: {last_line(self.training.log)}")
        request.unlink()


def work(cases: Sequence[Case], *, jobs: int) -> dict[str, str]:
    """Works on all cases, ``jobs`` at a time; returns the failures by label. Ctrl-C or SIGTERM lets trainings save,
    then raises KeyboardInterrupt; the same command goes on from there."""
    children = Children()
    for case in cases:
        case.settle()
    failures: dict[str, str] = {}
    with _terminable(), ThreadPoolExecutor(jobs) as executor:
        try:
            for case in {case.prepared: case for case in cases}.values():
                _prepare(case, children)
            futures = [(case, executor.submit(case.work, children)) for case in cases]
            for case, future in futures:
                if (fault := _fault(future)) is not None:
                    failures[case.label] = fault
                    log.warning(f"{case.label}: {fault}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                log.info("stopping: trainings finish their update and save; once more to stop at once")
            children.interrupt()
            executor.shutdown(cancel_futures=True, wait=False)
            try:
                executor.shutdown(wait=True)
            except KeyboardInterrupt:
                children.interrupt()
            raise
    return failures


def _fault(future: Future[None]) -> str | None:
    try:
        future.result()
    except InputError as error:
        return str(error)
    return None


def _prepare(case: Case, children: Children) -> None:
    ended = children.run("nmt", ["prepare", case.training.settings], case.training.log)
    if ended.code != 0:
        raise InputError(f"preparing failed with exit code {ended.code}: {last_line(case.training.log)}")


@contextmanager
def _terminable() -> Iterator[None]:
    """Has SIGTERM and a closed terminal mean what Ctrl-C means."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
