"""The training loop."""

from __future__ import annotations

import copy
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from itertools import islice
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from nmt import plugins
from nmt.core import cpu, log
from nmt.core.device import SYNC_INTERVAL, Compute, copy_to_host
from nmt.core.errors import InputError
from nmt.core.seed import generator_states, restore_generators, seed_update
from nmt.data import atomic_folder
from nmt.data.batching import Indices
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint, run_directory
from nmt.training.config import TrainingConfig
from nmt.training.interruption import Interruption, Stopped, end, interruptible
from nmt.training.meter import Meter
from nmt.training.metrics import MetricsWriter
from nmt.training.objective import BatchTotals, Losses, Objective
from nmt.training.optimizer import NamedOptimizer
from nmt.training.out_of_memory import OutOfMemoryRetry
from nmt.training.processes import Processes
from nmt.training.schedule import Plateau
from nmt.training.stream import Position, PreparedUpdate, Stream, TrainingData, prefetched
from nmt.training.validation import BestValidation, rank

if TYPE_CHECKING:
    from nmt.training.averaging import MovingAverage

T = TypeVar("T")

ESTIMATE_AFTER = 20
"""Number of updates after which training estimates how long it will take."""


@dataclass(frozen=True)
class PendingUpdate:
    """Results of an update that the host has not read yet."""

    prepared: PreparedUpdate
    totals: BatchTotals
    losses: list[Losses[Tensor]]
    """Of the share of this process in each batch."""
    norm: Tensor
    """Of the gradient of all processes, before clipping."""


@dataclass(kw_only=True, eq=False)
class Trainer:
    """Trains one model in one run directory, from its newest checkpoint on.

    Several ``processes`` run the same loop over their shares of each batch. The first one writes, measures and logs;
    the others get its measurements and its clock, so that all make the same decisions.
    """

    model: Seq2Seq[Any, Any]
    config: TrainingConfig
    data: TrainingData
    directory: Callable[[], Path]
    """Returns the run directory, and raises InputError if it has been replaced or deleted."""
    compute: Compute
    seed: int
    processes: Processes
    validate: Callable[[Seq2Seq[Any, Any], Path | None], Mapping[str, float]] | None
    """Measures a model, which it may change, without drawing from torch's generators, and returns figures by name,
    ``config.validation.metric`` among them; it writes the model's attention to the path, unless that is None. None if
    there is no valid corpus."""
    manifest: Mapping[str, Any]
    """The manifest of the checkpoints, see ``nmt.translator.manifest``."""
    observe: Callable[[Trainer, str, Any], object]
    """Called in the first process with the trainer, the name of an event and its result: ``on_update`` at each log step
    with its figures, ``on_validation`` with the figures of a validation, and ``on_checkpoint`` with the new folder. It
    may set ``should_stop``."""
    should_stop: bool = field(default=False, init=False)
    """If True, training ends after this update, as by the limits of ``config.stopping``."""

    def __post_init__(self) -> None:
        config, compute = self.config, self.compute
        rate = config.optimizer.learning_rate * (1.0 if config.lora is None else config.lora.rate)
        self.optimizer = NamedOptimizer(
            self.model, config.optimizer.model_copy(update={"learning_rate": rate}), compute
        )
        self.ema: MovingAverage | None = None
        if config.ema is not None:
            from nmt.training.averaging import MovingAverage

            self.ema = MovingAverage(self.model, config.ema)
        self.position, self.best_validation = Position(), BestValidation()
        self.interruption = Interruption()
        self._objective = Objective(self.model, config, self.optimizer, compute, self.data.tokenizers)
        self._memory = OutOfMemoryRetry(self.model, compute.device, lambda batch: self._lines([batch.pairs_B]))
        self._stream = Stream(self.data, config.batching, config.accumulate, self.seed, self.processes, compute)
        self._metrics: MetricsWriter | None = None
        self._meter = Meter(compute.device, has_risk=config.risk is not None)
        self._announced_ties: set[str | None] = {None, config.validation.metric}
        self._started, self._expected_end_s = 0.0, math.inf
        self._saved_at = -1
        self._validation_pending = self.validate is not None and config.validation.first == 0
        self._epoch_batches = 0
        self._pending: list[PendingUpdate] = []
        # of the last update that was made, and of the last one that was read
        self._rate = self._norm = 0.0

    # ------------------------------------------------------------------------------------------- checkpoints

    def resume(self) -> bool:
        """Restores the newest checkpoint of the run directory; returns False if there is none."""
        folder = run_directory.latest_checkpoint(self.directory())
        if folder is None:
            return False
        run_directory.verify(folder, (run_directory.MODEL, run_directory.TRAINING, run_directory.STATE))
        state = run_directory.read_state(folder)
        try:
            # an older release has saved the metric only
            figures = state.get("best_figures", {self.config.validation.metric: state["standing"]["best"]})
            position, best = Position(**state["position"]), BestValidation(**state["standing"], figures=figures)
            precision, fingerprint, loss_scale = state["precision"], state["data"], state["loss_scale"]
        except (KeyError, TypeError) as error:
            raise run_directory.Damaged(folder / run_directory.STATE, error) from None
        if fingerprint != self.data.fingerprint:
            raise InputError(
                f"{folder}: was trained on another corpus or vocabulary than the files now give; restore them, or give "
                "the new ones a run directory of their own with run: in the config"
            )
        if precision != self.compute.precision:
            log.warning(f"{folder}: was trained in {precision}, goes on in {self.compute.precision}")
        checkpoint.load_weights(folder, used := self.eval_model)
        tensors = checkpoint.read_tensors(folder / run_directory.TRAINING)
        if used is not self.model:
            checkpoint.fill(self.model, _below("weights/", tensors), folder / run_directory.TRAINING)
        self.optimizer.restore(_below("optimizer/", tensors), loss_scale)
        restore_generators(_below("generator/", tensors), self.compute.device)
        self.position, self.best_validation = position, best
        self._memory.too_large = state.get("too_large")
        self._validation_pending = state.get("owes_validation", False)
        self._saved_at = position.update
        return True

    @property
    def eval_model(self) -> Seq2Seq[Any, Any]:
        """The model to validate and to translate with: the moving average where there is one, and without adapters."""
        if self.config.lora is not None:
            merged: Seq2Seq[Any, Any] = plugins.find("parts", "merged_adapters", "training.lora")(self.model)
            return merged
        return self.model if self.ema is None else self.ema.model

    def _save(self) -> None:
        """Writes a checkpoint of the current update, unless it exists, and deletes those that are not kept any
        longer."""
        update = self.position.update
        if self._metrics is not None:
            self._metrics.sync()  # a resumed training does not rewrite lines before this checkpoint
            if self._saved_at != update:
                self._write_checkpoint()
            if self.best_validation.best_update == update:
                self.link_best()
            retain: list[Path] = []
            if self.config.average is not None:
                from nmt.training.averaging import to_average

                retain = to_average(self.directory(), self.config, update)
            run_directory.prune(self.directory(), keep=self.config.keep, retain=retain)
        self._saved_at = update

    def _write_checkpoint(self) -> None:
        """Writes all that a resumed training needs to go on with the same bits."""
        parts = {"optimizer": self.optimizer.tensors(), "generator": generator_states(self.compute.device)}
        if (used := self.eval_model) is not self.model:
            parts["weights"] = checkpoint.named_weights(self.model)
        tensors = {f"{part}/{name}": tensor for part, named in parts.items() for name, tensor in named.items()}
        best = asdict(self.best_validation)
        figures = best.pop("figures")  # apart from the rest, for earlier releases do not know them
        state = {
            "position": asdict(self.position),
            "standing": best,
            "best_figures": figures,
            "precision": self.compute.precision,
            "threads": torch.get_num_threads(),
            "machine": f"{cpu.name()}, {self.compute.label}",
            "data": self.data.fingerprint,
            "vocabulary": self.data.tokenizers.fingerprint,
            "manifest": self.manifest,
            "loss_scale": self.optimizer.loss_scale(),
            "too_large": self._memory.too_large,
            "owes_validation": self._validation_pending,
        }
        self.observe(
            self, "on_checkpoint", checkpoint.save(self.directory(), self.position.update, used, tensors, state)
        )

    def link_best(self) -> None:
        """Links ``best`` to the checkpoint, or to the average of some, whose measured metric is the best."""
        run, metric, validation = self.directory(), self.config.validation.metric, self.best_validation
        if validation.best is None:
            return
        best, figures = run_directory.checkpoint_path(run, validation.best_update), validation.figures
        for folder in run_directory.average_paths(run):
            measured = run_directory.read_state(folder).get("measured", {})
            if rank(measured, metric) > rank(figures, metric):
                best, figures = folder, measured
        if best.exists():
            run_directory.set_link(run, "best", best)

    # ------------------------------------------------------------------------------------------------- loop

    def train(self) -> None:
        """Trains until ``config.stopping`` is reached. At Ctrl-C or SIGTERM the update finishes, but a validation does
        not; training then saves, and raises what ``interruption.end`` raises. A loss that is not finite raises
        InputError and does not change the last checkpoint."""
        config, begun = self.config, self.position
        self._started = time.monotonic() - begun.seconds
        self.processes.broadcast_parameters(list(self.model.parameters()))
        if self.ema is not None:
            self.processes.broadcast_parameters(list(self.ema.model.parameters()))
        done, owed = begun.update, self._validation_pending
        writer: MetricsWriter | nullcontext[None] = nullcontext()
        if self.processes.is_first:
            self._restore_links()
            writer = MetricsWriter(self.directory(), after=done, tensorboard=config.tensorboard, again=owed)
        self._meter.resume()
        with (
            interruptible() as self.interruption,
            writer as self._metrics,
            log.progress(total=config.stopping.updates, description="train", unit="update", initial=done) as bar,
            prefetched(self._stream.after(begun)) as updates,
        ):
            if owed:
                self._validate()
                self._saved_at = -1
                self._save()
            if self._is_over():
                averaged = self._average()
                log.info(f"training is complete at update {done}" + ("" if averaged or owed else ": nothing to do"))
                return
            for prepared in updates:
                if not self.processes.is_first:
                    # a checkpoint has the generators of the first process; these draw the same after a resume too
                    seed_update(self.seed, rank=self.processes.rank, update=self.position.update)
                self.step(prepared)
                self._epoch_batches = prepared.epoch_batches
                bar.update()
                if self._ends(bar, begun):
                    return

    def step(self, prepared: PreparedUpdate) -> None:
        """One update, from its batches to new weights. The host does not wait for a GPU."""
        update, config = prepared.following.update, self.config
        # the losses are means over the tokens, or over the sentences, of all batches in all processes
        tokens, linked = map(round, self.processes.all_reduce([prepared.tokens, prepared.linked]))
        totals = BatchTotals(tokens, sum(map(len, prepared.pairs)), linked)
        self.model.train()
        self.model.at_update(update - 1)
        # forward and backward through each batch; again in smaller parts where one does not fit into memory
        reductions = [self.processes.batch_all_reduce() for _ in prepared.shares]
        for attempt in self._memory.attempts(prepared.shares, update=update):
            losses = [Losses.zeros(self.compute.device) for _ in prepared.shares]
            with attempt:
                for i, part in attempt:
                    losses[i] += self._objective.backward(part, totals, update=update, all_reduce=reductions[i])
        # the gradient of all processes, at most as long as clip_norm
        self.processes.sum_gradients(list(self.model.parameters()))
        self.optimizer.unscale()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), config.clip_norm or math.inf, foreach=True)
        # a step of the optimizer, and of the moving average
        factor = config.schedule.factor(update, last=config.stopping.updates, plateaus=self.best_validation.plateaus)
        self._rate = self.optimizer.step(factor)
        if self.ema is not None:
            self.ema.follow(update)
        self._pending.append(PendingUpdate(prepared, totals, losses, norm))
        done = self.position
        self.position = replace(prepared.following, tokens=done.tokens + tokens, seconds=done.seconds)

    def _ends(self, bar: Any, begun: Position) -> bool:
        """Reads results, logs, validates and saves after an update, if these are due; returns True if it was the last
        one."""
        config, update = self.config, self.position.update
        validates = self._is_over() or update % config.validation.every == 0 or update == config.validation.first
        saves, logs = update % config.save_every == 0, update % config.log_every == 0
        estimates = update == begun.update + ESTIMATE_AFTER
        reads = update % SYNC_INTERVAL.get(self.compute.device.type, 8) == 0
        if not (reads or validates or saves or logs or estimates):
            return False
        stop = self._read()
        bar.total = self._expected_updates()
        if logs:
            bar.set_postfix_str(self._log())
        validates = validates or self._is_over()  # by the clock
        if (estimates or validates) and bar.total is not None:
            self._estimate(begun, bar.total)
        if validates or saves or stop:
            self._meter.pause()
            if validates:
                self._validate()
            self._save()
            self._meter.resume()
        if self._is_over():
            if (count := self.best_validation.without_gain) >= (config.stopping.patience or math.inf):
                log.info(f"patience ends training: {count} validations without better {config.validation.metric}")
            self._average()
            return True
        if stop:
            self._stop(stop)
        return False

    def _restore_links(self) -> None:
        """Brings links and files of the run directory in line with the update that training goes on from."""
        run, update = self.directory(), self.position.update
        if update > 0:
            # training may have stopped between saving a checkpoint and linking it
            run_directory.set_link(run, "latest", run_directory.checkpoint_path(run, update))
        for folder in run_directory.average_paths(run):
            if run_directory.read_state(folder).get("update", 0) > update:  # its updates will be repeated
                atomic_folder.remove(folder)
        run_directory.drop_snapshots(run, after=update, again=self._validation_pending)
        self.link_best()

    def _read(self) -> int:
        """Reads the results of all updates since the last call, for which the host waits for a GPU once, and the clock
        of the first process. Returns the signal by which a process has been asked to stop, 0 for none. A loss or
        gradient that is not finite raises InputError; weights have gone on by then, but no checkpoint."""
        number = self.interruption.signal  # once: a signal may come at any time
        now = time.monotonic() - self._started if self.processes.is_first else 0.0
        # the losses are those of this process, the norms those of all
        losses = [loss for update in self._pending for losses in update.losses for loss in vars(losses).values()]
        read = [float(value) for value in copy_to_host([*losses, *(update.norm for update in self._pending)])]
        now, terminates, interrupts, *summed = self.processes.all_reduce(
            [now, number == signal.SIGTERM, number == signal.SIGINT, *read[: len(losses)]]
        )
        each_loss = iter(summed)
        for pending, norm in zip(self._pending, read[len(losses) :], strict=True):
            pairs, update = pending.prepared.pairs, pending.prepared.following.update
            batches = [Losses(*islice(each_loss, 4)) for _ in pairs]
            for pairs_B, of_batch in zip(pairs, batches, strict=True):
                self._check_finite("loss", of_batch.objective, update, [pairs_B])
            total = reduce(add, batches)
            self._check_finite("risk", total.risk, update, pairs)
            self._check_finite("guidance", total.guidance, update, pairs)
            if not self.optimizer.skips_overflow:
                self._check_finite("gradient", norm, update, pairs)
            self._meter.add(total, pending.totals)
        self._pending.clear()
        self._norm, self.position = norm, replace(self.position, seconds=now)
        return signal.SIGTERM if terminates else signal.SIGINT if interrupts else 0

    def _check_finite(self, name: str, value: float, update: int, batches: Sequence[Indices]) -> None:
        if not math.isfinite(value):
            raise InputError(
                f"the {name} is not finite at update {update}: lower training.optimizer.learning_rate or "
                f"training.clip_norm in a new run, or look at the pairs of this batch ({self._lines(batches)})"
            )

    def _lines(self, batches: Sequence[Indices]) -> str:
        """Names the lines that pairs come from, for messages."""
        lines: dict[str, list[int]] = {}
        for pairs_B in batches:
            for pair in pairs_B.tolist():
                corpus, line = self.data.train.line(pair)
                lines.setdefault(corpus, []).append(line)
        return "; ".join(f"{corpus} lines {', '.join(map(str, sorted(of)))}" for corpus, of in lines.items())

    def _log(self) -> str:
        """Writes the figures since the last log step; returns a summary for the progress bar."""
        update = self.position.update
        figures = self._meter.take() | {"learning_rate": self._rate, "gradient_norm": self._norm}
        if (probability := self.config.feed.gold_probability(update)) < 1.0:
            figures["gold_probability"] = probability
        if self._metrics is not None:
            self._metrics.write("train", update, figures)
            self.observe(self, "on_update", figures)
        speed = figures["tokens_per_second"]
        return f"loss {figures['loss']:.3f}, {speed:,.0f} tokens/s, rate {self._rate:.2e}"

    def _is_over(self) -> bool:
        stopping, position = self.config.stopping, self.position
        limits = (
            (position.update, stopping.updates),
            (position.epoch, stopping.epochs),
            (position.seconds / 60, stopping.minutes),
            (self.best_validation.without_gain, stopping.patience),
        )
        return self.should_stop or any(limit is not None and value >= limit for value, limit in limits)

    def _estimate(self, begun: Position, total: int) -> None:
        """Logs how long training up to an update will take, by the speed since ``begun``. It logs again only if the
        estimate changes by a quarter, for example because other programs start or end."""
        done, left = self.position.update - begun.update, total - self.position.update
        seconds = left * (self.position.seconds - begun.seconds) / done
        misses_s = abs(self.position.seconds + seconds - self._expected_end_s)
        if done >= ESTIMATE_AFTER and left and misses_s > max(60.0, seconds / 4):
            self._expected_end_s = self.position.seconds + seconds
            log.info(f"about {max(seconds / 60, 1):.0f} min for {left:,} more updates, and validations")

    def _expected_updates(self) -> int | None:
        """Estimates the number of updates from the limits that are predictable; returns None if there are none."""
        stopping, position = self.config.stopping, self.position
        limits = [stopping.updates] if stopping.updates is not None else []
        if stopping.epochs is not None:
            left = (stopping.epochs - position.epoch) * self._epoch_batches - position.batch
            limits.append(position.update + math.ceil(left / self.config.accumulate))
        if stopping.minutes is not None and position.update > 0:
            limits.append(math.ceil(position.update * stopping.minutes * 60 / position.seconds))
        return min(limits, default=None)

    def _stop(self, number: int) -> NoReturn:
        """Ends training by a signal, after everything has been saved."""
        log.info(f"interrupted at update {self.position.update}; saved, the same command goes on from there")
        self.processes.wait()  # a launcher ends all as soon as one has ended: wait until it is saved
        end(number)

    # ------------------------------------------------------------------------------------------- validation

    def _validate(self) -> None:
        """Validates. A signal stops the validation, which may take longer than the sender is willing to wait. Training
        then saves its state, with a note that the validation is pending, and ends."""
        if self.validate is None:
            return
        _, number = self._in_first(self._measure)
        own: dict[str, Any] = {"standing": asdict(self.best_validation), "seconds": time.monotonic() - self._started}
        first = self.processes.broadcast(own)
        self.position = replace(self.position, seconds=first["seconds"])
        self._validation_pending = number != 0
        if number:
            self._save()
            self._stop(number)
        self.best_validation = BestValidation(**first["standing"])

    def _measure(self, metrics: MetricsWriter) -> None:
        """Measures the model, compares it with those before it, and reports the figures."""
        assert self.validate is not None
        config, update = self.config.validation, self.position.update
        with self.interruption.at_once():
            snapshot = run_directory.snapshot_path(self.directory(), update)
            figures = self.validate(copy.deepcopy(self.eval_model), snapshot)
        patience = self.config.schedule.patience if isinstance(self.config.schedule, Plateau) else None
        instead = self.best_validation.tie_break(figures, config.metric)
        self.best_validation = self.best_validation.after(figures, update, metric=config.metric, patience=patience)
        metrics.write("valid", update, figures)
        self.observe(self, "on_validation", figures)
        if instead not in self._announced_ties:
            self._announced_ties.add(instead)
            log.warning(f"{config.metric} does not tell this validation from the best before: {instead} decides")

    def _average(self) -> bool:
        """Averages checkpoints at the end; returns False if there is nothing to do. A signal interrupts it, and the
        next start of training averages instead."""
        if self.config.average is None:
            return False
        from nmt.training.averaging import average_last

        averaged, number = self._in_first(lambda metrics: average_last(self, metrics))
        if number:
            self._stop(number)
        return bool(averaged)

    def _in_first(self, work: Callable[[MetricsWriter], T]) -> tuple[T | None, int]:
        """Lets the first process work, while the others wait; returns its result, or None elsewhere, and the signal
        that has stopped it, or 0."""
        result, number = None, 0
        if self._metrics is not None:
            try:
                result = work(self._metrics)
            except Stopped:
                number = self.interruption.signal
        return result, self.processes.broadcast(number)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
