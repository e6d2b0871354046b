"""The training loop."""

from __future__ import annotations

import copy
import dataclasses
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor, nn

from nmt.core import log
from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.core.seed import generator_states, restore_generators, seed_update
from nmt.data.batching import Batch, Indices
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint, folders
from nmt.training.config import HIGHER_IS_BETTER, TrainingConfig
from nmt.training.interruption import Interrupted, Stopped, end, interruptible
from nmt.training.meter import Meter
from nmt.training.metrics import Metrics, read
from nmt.training.more.averaging import MovingAverage, average_weights
from nmt.training.more.distributed import Processes
from nmt.training.more.out_of_memory import Fitting
from nmt.training.objective import Losses, Objective, Whole
from nmt.training.optimizer import NamedOptimizer
from nmt.training.progress import Validated, line, shown
from nmt.training.schedule import Plateau
from nmt.training.stopping import Standing
from nmt.training.stream import Position, Stream, TrainingData, Work, prefetched


@dataclass(frozen=True)
class Learnt:
    """What an update has shown; the same in all processes."""

    rate: float
    """The learning rate."""
    norm: float
    """The gradient's, before clipping."""
    seconds: float
    """By the clock of the first process, as in Position."""
    asked: int
    """The signal by which a process has been asked to stop; 0 for none."""


class Trainer:
    """Trains one model in one run directory; takes up a checkpoint that is there.

    Several ``processes`` run the same loop over their shares of each batch. The first one writes, measures and speaks;
    what it has measured and its clock are told to the others, so that all come to the same decisions.
    """

    def __init__(
        self,
        model: Seq2Seq[Any, Any],
        config: TrainingConfig,
        data: TrainingData,
        *,
        run: Path,
        compute: Compute,
        seed: int,
        processes: Processes,
        validation: Callable[[Seq2Seq[Any, Any]], Mapping[str, float]] | None,
        snapshot: Callable[[Seq2Seq[Any, Any], Path], None] | None,
        announce: Callable[[Validated], str] = line,
    ) -> None:
        """``validation`` measures a model, which it may change, without drawing from torch's generators, and returns
        figures by name; ``config.validation.metric`` must be among them. None: there is no valid corpus. ``snapshot``,
        where there is one, is then given the same model, and a file to write how it attends into. ``announce``: what is
        said of a validation."""
        self.model = model
        self.config = config
        self.data = data
        self.run_folder = run
        self.compute = compute
        self.seed = seed
        self.processes = processes
        self.optimizer = NamedOptimizer(model, config.optimizer, compute)
        self._objective = Objective(model, config, self.optimizer, compute, data.tokenizers.target.detokenize)
        self._fitting = Fitting(model, compute.device, lambda batch: self._places([batch.pairs_B]))
        self.moving = None if config.ema is None else MovingAverage(model, config.ema)
        self.position = Position()
        self.standing = Standing()
        self._stream = Stream(data, config.batching, config.accumulate, seed, processes, compute)
        self._validation = validation
        self._snapshot = snapshot
        self._announce = announce
        self._saved_at = -1
        self._owes_validation = False
        self._epoch_batches = 0

    # ------------------------------------------------------------------------------------------- checkpoints

    def resume(self) -> bool:
        """Takes up the newest checkpoint of the run directory; False where there is none."""
        folder = folders.latest(self.run_folder)
        if folder is None:
            return False
        folders.verify(folder, (folders.MODEL, folders.TRAINING, folders.STATE))
        state = folders.read_state(folder)
        try:
            position, standing = Position(**state["position"]), Standing(**state["standing"])
            precision, fingerprint, loss_scale = state["precision"], state["data"], state["loss_scale"]
        except (KeyError, TypeError) as error:
            raise folders.Damaged(folder / folders.STATE, error) from None
        if fingerprint != self.data.fingerprint:
            raise InputError(
                f"{folder}: was trained on another corpus or vocabulary than the files now give; restore them, or give "
                "the new ones a run directory of their own with run: in the config"
            )
        if precision != self.compute.precision:
            log.warning(f"{folder}: was trained in {precision}, goes on in {self.compute.precision}")
        checkpoint.load_weights(folder, self.used)
        tensors = checkpoint.read_tensors(folder / folders.TRAINING)
        if self.moving is not None:
            checkpoint.fill(self.model, _below("weights/", tensors), folder / folders.TRAINING)
        self.optimizer.restore(_below("optimizer/", tensors), loss_scale)
        restore_generators(_below("generator/", tensors), self.compute.device)
        self.position, self.standing = position, standing
        self._fitting.too_large = state.get("too_large")
        self._owes_validation = state.get("owes_validation", False)
        self._saved_at = position.update
        return True

    @property
    def used(self) -> Seq2Seq[Any, Any]:
        """The model to validate and to translate with: the moving average where there is one."""
        return self.model if self.moving is None else self.moving.model

    def save(self) -> Path:
        """Writes a checkpoint of this moment, unless it is there."""
        folder = folders.step(self.run_folder, self.position.update)
        if self.processes.is_first and self._saved_at != self.position.update:
            tensors = {f"optimizer/{name}": each for name, each in self.optimizer.tensors().items()}
            states = generator_states(self.compute.device)
            tensors |= {f"generator/{name}": each for name, each in states.items()}
            if self.moving is not None:
                tensors |= {f"weights/{name}": each for name, each in checkpoint.named_weights(self.model).items()}
            state = {
                "position": asdict(self.position),
                "standing": asdict(self.standing),
                "precision": self.compute.precision,
                "data": self.data.fingerprint,
                "vocabulary": self.data.tokenizers.fingerprint,
                "loss_scale": self.optimizer.loss_scale(),
                "too_large": self._fitting.too_large,
                "owes_validation": self._owes_validation,
            }
            folder = checkpoint.save(self.run_folder, self.position.update, self.used, tensors, state)
        self._saved_at = self.position.update
        return folder

    # ------------------------------------------------------------------------------------------------- loop

    def train(self) -> None:
        """Trains until ``config.stopping`` says so. Ctrl-C or SIGTERM lets the update finish but no validation, saves,
        and raises what ``interruption.end`` does. A loss that is not finite raises InputError and leaves the last
        checkpoint as it was."""
        stopping, validation = self.config.stopping, self.config.validation
        started, before = time.monotonic(), self.position.seconds

        def seconds() -> float:
            return before + time.monotonic() - started

        self.processes.take_over(list(self.model.parameters()))
        if self.moving is not None:
            self.processes.take_over(list(self.moving.model.parameters()))
        if self.processes.is_first:
            # training may have stopped between saving a checkpoint and linking it
            if self.position.update > 0:
                folders.point(self.run_folder, "latest", folders.step(self.run_folder, self.position.update))
            self._drop_averages()
            folders.drop_snapshots(self.run_folder, after=self.position.update, again=self._owes_validation)
            self._point_best()
        meter = Meter(self.compute.device, has_risk=self.config.risk is not None)
        with (
            interruptible() as interrupted,
            self._metrics() as metrics,
            log.progress(
                total=stopping.updates, description="train", unit="update", initial=self.position.update
            ) as bar,
            prefetched(self._stream.after(self.position)) as works,
        ):
            owed = self._owes_validation
            if owed:
                self._validate(metrics, seconds, interrupted)
                self._saved_at = -1
                self._keep(metrics)
            if self._is_over():
                averaged = self._average(metrics, interrupted)
                log.info(
                    f"training is complete at update {self.position.update}"
                    + ("" if averaged or owed else ": nothing to do")
                )
                return
            for work in works:
                tokens, linked = map(round, self.processes.total([work.tokens, work.linked]))
                whole = Whole(tokens, sum(map(len, work.pairs)), linked)
                learnt = self._update(work, whole, meter, seconds, interrupted)
                self.position = dataclasses.replace(
                    work.following, tokens=self.position.tokens + tokens, seconds=learnt.seconds
                )
                self._epoch_batches = work.epoch_batches
                update = self.position.update
                bar.update()
                bar.total = self._expected_updates()
                if update % self.config.log_every == 0:
                    measured = meter.take()
                    measured |= {"learning_rate": learnt.rate, "gradient_norm": learnt.norm}
                    if (probability := self.config.feed.gold_probability(update)) < 1.0:
                        measured["gold_probability"] = probability
                    if metrics is not None:
                        metrics.write("train", update, measured)
                    bar.set_postfix_str(
                        f"loss {measured['loss']:.3f}, {measured['tokens_per_second']:,.0f} tokens/s, "
                        f"rate {learnt.rate:.2e}"
                    )
                over = self._is_over()
                if update % validation.every == 0 or over:
                    meter.pause()
                    self._validate(metrics, seconds, interrupted)
                    meter.resume()
                    over = self._is_over()
                saves = update % self.config.save_every == 0 or update % validation.every == 0 or over or learnt.asked
                if saves:
                    meter.pause()
                    self._keep(metrics)
                    meter.resume()
                if over:
                    self._average(metrics, interrupted)
                    return
                if learnt.asked:
                    self._stop(learnt.asked)

    def _keep(self, metrics: Metrics | None) -> None:
        """Saves, and deletes what need not be kept any longer."""
        if metrics is not None:
            metrics.sync()  # going on, no line until here is written again
        self.save()
        if self.processes.is_first:
            if self.standing.best_update == self.position.update:
                self._point_best()
            folders.prune(self.run_folder, keep=self.config.keep, wanted=self._to_average())

    def _stop(self, number: int) -> NoReturn:
        """Ends training after it has been saved, for a signal has asked for it."""
        log.info(f"interrupted at update {self.position.update}; saved, the same command goes on from there")
        self.processes.wait()  # a launcher ends all as soon as one has ended: not before this is saved
        end(number)

    def _metrics(self) -> Metrics | nullcontext[None]:
        """Where this process writes what it measures; None in all but the first."""
        if not self.processes.is_first:
            return nullcontext()
        return Metrics(
            self.run_folder,
            after=self.position.update,
            tensorboard=self.config.tensorboard,
            again=self._owes_validation,
        )

    def _update(
        self, work: Work, whole: Whole, meter: Meter, seconds: Callable[[], float], interrupted: Interrupted
    ) -> Learnt:
        """One step of the optimizer over ``whole``, what all processes have."""
        self.model.train()
        self.model.at_update(self.position.update)
        if not self.processes.is_first:
            # a checkpoint has the generators of the first process; going on, these too draw what they would have drawn
            seed_update(self.seed, rank=self.processes.rank, update=self.position.update)
        number = self.position.update + 1
        sums = [self.processes.summing() for _ in work.shares]

        def backward(batch: Batch | None, place: int) -> Losses:
            return self._objective.backward(batch, whole, update=number, summed=sums[place])

        losses = self._fitting.learn(work.shares, backward, update=number)
        asked = interrupted.asked()  # once: a signal may come at any time
        now = seconds() if self.processes.is_first else 0.0
        summed = sum(losses, start=Losses())
        own = [each.objective for each in losses]
        asks = [asked == signal.SIGTERM, asked == signal.SIGINT]
        cross_entropy, risk, guidance, now, terminates, interrupts, *objectives = self.processes.total(
            [summed.cross_entropy, summed.risk, summed.guidance, now, *asks, *own]
        )
        for pairs_B, objective in zip(work.pairs, objectives, strict=True):
            if not math.isfinite(objective):
                raise InputError(self._not_finite("loss", [pairs_B]))
        if not math.isfinite(risk):
            raise InputError(self._not_finite("risk", work.pairs))
        if not math.isfinite(guidance):
            raise InputError(self._not_finite("guidance", work.pairs))
        meter.add(Losses(sum(objectives), cross_entropy, risk, guidance), whole)
        self.processes.sum_gradients(list(self.model.parameters()))
        self.optimizer.unscale()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm or math.inf, foreach=True).item()
        if not math.isfinite(norm) and not self.optimizer.skips_overflow:
            raise InputError(self._not_finite("gradient", work.pairs))
        factor = self.config.schedule.factor(number, last=self.config.stopping.updates, plateaus=self.standing.plateaus)
        rate = self.optimizer.step(factor)
        if self.moving is not None:
            self.moving.follow(number)
        asked = signal.SIGTERM if terminates else signal.SIGINT if interrupts else 0
        return Learnt(rate, norm, seconds=now, asked=asked)

    def _not_finite(self, what: str, batches: Sequence[Indices]) -> str:
        return (
            f"the {what} is not finite at update {self.position.update + 1}: lower training.optimizer.learning_rate or "
            f"training.clip_norm in a new run, or look at the pairs of this batch ({self._places(batches)})"
        )

    def _places(self, batches: Sequence[Indices]) -> str:
        """The lines that pairs come from, for people."""
        lines: dict[str, list[int]] = {}
        for pairs_B in batches:
            for pair in pairs_B.tolist():
                corpus, line = self.data.train.line(pair)
                lines.setdefault(corpus, []).append(line)
        return "; ".join(f"{corpus} lines {', '.join(map(str, sorted(each)))}" for corpus, each in lines.items())

    def _is_over(self) -> bool:
        stopping, position = self.config.stopping, self.position
        return (
            (stopping.updates is not None and position.update >= stopping.updates)
            or (stopping.epochs is not None and position.epoch >= stopping.epochs)
            or (stopping.minutes is not None and position.seconds >= stopping.minutes * 60)
            or (stopping.patience is not None and self.standing.without_gain >= stopping.patience)
        )

    def _expected_updates(self) -> int | None:
        """How many updates there will be by the limits that can be foreseen; None where none can."""
        stopping, position = self.config.stopping, self.position
        limits = [stopping.updates] if stopping.updates is not None else []
        if stopping.epochs is not None:
            left = (stopping.epochs - position.epoch) * self._epoch_batches - position.batch
            limits.append(position.update + math.ceil(left / self.config.accumulate))
        if stopping.minutes is not None and position.update > 0:
            limits.append(math.ceil(position.update * stopping.minutes * 60 / position.seconds))
        return min(limits) if limits else None

    # ------------------------------------------------------------------------------------------- validation

    def _validate(self, metrics: Metrics | None, seconds: Callable[[], float], interrupted: Interrupted) -> None:
        """Validates. Where a signal stops it, saves as it was before, with a note that it is still to be done, and
        ends: a validation may take longer than who has sent the signal will wait."""
        if self._validation is None:
            return
        stopped = metrics is not None and not self._measure(self._validation, metrics, interrupted)
        measured: dict[str, Any] = {
            "standing": asdict(self.standing),
            "seconds": seconds(),
            "stopped": interrupted.asked() if stopped else 0,
        }
        told = self.processes.told(measured)
        self.position = dataclasses.replace(self.position, seconds=told["seconds"])
        self._owes_validation = told["stopped"] != 0
        if self._owes_validation:
            self._keep(metrics)
            self._stop(told["stopped"])
        self.standing = Standing(**told["standing"])

    def _measure(
        self,
        validation: Callable[[Seq2Seq[Any, Any]], Mapping[str, float]],
        metrics: Metrics,
        interrupted: Interrupted,
    ) -> bool:
        """Whether it came to an end before a signal came."""
        config, update = self.config.validation, self.position.update
        try:
            with interrupted.at_once():
                model = copy.deepcopy(self.used)
                measured = validation(model)
                if self._snapshot is not None:
                    self._snapshot(model, folders.snapshot(self.run_folder, update))
        except Stopped:
            return False
        value = measured[config.metric]
        patience = self.config.schedule.patience if isinstance(self.config.schedule, Plateau) else None
        self.standing = self.standing.after(
            value, update, higher_is_better=config.metric in HIGHER_IS_BETTER, patience=patience
        )
        metrics.write("valid", update, measured)
        validated = Validated(
            update,
            epoch=self.position.epoch + (self.position.batch > 0),  # of the last update
            minutes=self.position.seconds / 60,
            figures=measured,
            is_best=self.standing.best_update == update,
        )
        log.info(self._announce(validated))
        return True

    def _point_best(self) -> None:
        """Has ``best`` lead to what was measured best: a checkpoint, or an average of some, whenever it was made."""
        metric, best_value = self.config.validation.metric, self.standing.best
        if best_value is None:
            return
        best = folders.step(self.run_folder, self.standing.best_update)
        for folder in folders.averages(self.run_folder):
            value = folders.read_state(folder).get("measured", {}).get(metric)
            if value is not None and self.config.validation.is_better(value, best_value):
                best, best_value = folder, value
        if best.exists():
            folders.point(self.run_folder, "best", best)

    def _drop_averages(self) -> None:
        """Removes what training has averaged beyond where it goes on from: of updates that will be made again."""
        for folder in folders.averages(self.run_folder):
            if folders.read_state(folder).get("update", 0) > self.position.update:
                folders.remove(folder)

    def _to_average(self) -> list[Path]:
        """The checkpoints that would be averaged if training ended now, oldest first: this one and those of the
        validations before it. Others, from ``save_every`` or an interruption, depend on how often a run was stopped."""
        if self.config.average is None:
            return []
        every, last = self.config.validation.every, self.position.update
        before = range((last - 1) // every * every, 0, -every)
        return [folders.step(self.run_folder, update) for update in sorted([last, *before[: self.config.average - 1]])]

    def _average(self, metrics: Metrics | None, interrupted: Interrupted) -> bool:
        """The average at the end, made by the first process while the others wait; whether anything was to do. A signal
        ends it, to be made by the next training."""
        averaged, stopped = False, 0
        try:
            averaged = metrics is not None and self._make_average(metrics, interrupted)
        except Stopped:
            stopped = interrupted.asked()
        if stopped := self.processes.told(stopped):
            self._stop(stopped)
        return averaged

    def _make_average(self, metrics: Metrics, interrupted: Interrupted) -> bool:
        """Averages the checkpoints of the last validations, measures the average, and makes it the best if it is. What
        is done is not done again; False where nothing was to do."""
        members = [folder for folder in self._to_average() if folder.exists()]
        if self.config.average is None:
            return False
        if len(members) < self.config.average:
            log.warning(
                f"training.average: {self.config.average}: of so many last validations only {len(members)} have a "
                "checkpoint" + ("; nothing is averaged" if len(members) < 2 else "")
            )
        if len(members) < 2:
            return False
        update, names = self.position.update, [member.name for member in members]
        folder = folders.average(self.run_folder, names)
        measured = folders.read_state(folder).get("measured") if folder.exists() else None
        is_told = any(_tells_of(line, update, len(members)) for line in read(self.run_folder))
        if measured is not None and is_told:
            return False
        if measured is None:
            weights = average_weights(members)
            measured = {}
            if self._validation is not None:
                model = copy.deepcopy(self.model)
                checkpoint.fill(model, weights, folder)
                with interrupted.at_once():
                    measured = dict(self._validation(model))
            state = {
                "averaged": names,
                "vocabulary": self.data.tokenizers.fingerprint,
                "update": update,
                "measured": measured,
            }
            checkpoint.write(folder, {folders.MODEL: weights}, state)
        folders.point(self.run_folder, "averaged", folder)
        self._point_best()
        if not is_told:  # the last step: whatever is cut off before is done again
            metrics.write("average", update, {"checkpoints": len(members), **measured})
        updates = ", ".join(str(int(name.removeprefix("step-"))) for name in names)
        is_best = (self.run_folder / "best").resolve() == folder.resolve()
        log.info(f"average of updates {updates}: {self._gain(measured)}{' (best)' if is_best else ''}")
        return True

    def _gain(self, measured: Mapping[str, float]) -> str:
        """What averaging has brought, for people."""
        metric, standing = self.config.validation.metric, self.standing
        if standing.best is None or metric not in measured:
            return "not measured, for there is no data.valid"
        gain = f"{metric} {measured[metric] - standing.best:+.2f} against update {standing.best_update}"
        return f"valid {shown(measured)}; {gain}"


def _tells_of(line: Mapping[str, Any], update: int, checkpoints: int) -> bool:
    """Whether a line of metrics.jsonl is that of an average."""
    return (line["kind"], line["update"], line.get("checkpoints")) == ("average", update, checkpoints)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
