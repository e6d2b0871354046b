"""Averages of weights: over some checkpoints, or over all updates of training.

Both are for use; training itself continues with the raw weights.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import torch
from torch import Tensor

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_special
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint
from nmt.training.config import TrainingConfig
from nmt.training.metrics import MetricsWriter, read
from nmt.training.run_directory import MODEL, Damaged, average_path, checkpoint_path, read_state, set_link, verify
from nmt.training.validation import shown

if TYPE_CHECKING:
    from nmt.training.trainer import Trainer


def average_weights(checkpoints: Sequence[Path]) -> dict[str, Tensor]:
    """Computes the mean of each weight over checkpoint folders, in float32 (Vaswani et al. 2017, section 6.1; Popel &
    Bojar 2018, section 5.10). Sums are computed in float64 in the given order; only one weight at a time is in float64.

    Raises InputError if a file is missing or damaged, or has other weights or shapes than the first.
    """
    for folder in checkpoints:
        verify(folder, [MODEL])
    paths = [folder / MODEL for folder in checkpoints]
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(path)) for path in paths]
        shapes = {name: files[0].get_slice(name).get_shape() for name in sorted(files[0].keys())}
        for path, file in zip(paths[1:], files[1:], strict=True):
            for name in sorted(shapes.keys() ^ set(file.keys())):
                what = "misses" if name in shapes else "has"
                raise InputError(f"{path}: {what} {name}, unlike {paths[0]}: average checkpoints of one model")
            for name, shape in shapes.items():
                if (other := file.get_slice(name).get_shape()) != shape:
                    raise InputError(
                        f"{path}: {name} is {tuple(other)}, but in {paths[0]} it is {tuple(shape)}: average one model"
                    )
        # in float64, whose rounding errors are far below the precision of a mean in float32
        zero = torch.zeros((), dtype=torch.float64)
        return {
            name: (sum((file.get_tensor(name).double() for file in files), zero) / len(files)).float()
            for name in shapes
        }


def same_weights(folder: Path, weights: Mapping[str, Tensor]) -> bool:
    """Returns True if a checkpoint folder holds exactly these weights, to the bit. Raises InputError if it is
    damaged."""
    saved = checkpoint.read_tensors(folder / MODEL)
    return saved.keys() == weights.keys() and all(torch.equal(saved[name], each) for name, each in weights.items())


def _opened(path: Path) -> Any:
    try:
        refuse_special(path)
        return safetensors.safe_open(path, framework="pt")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is it a checkpoint?") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise Damaged(path, error) from None


class MovingAverage:
    """The exponential moving average a of a model's weights w over the updates u = 1, 2, …

        a_u = d_u a_{u-1} + (1 - d_u) w_u,   d_u = min(decay, (1 + u) / (10 + u)),   a_0 = w_0

    Averaging the iterates goes back to Polyak & Juditsky (1992), who give all of them the same weight; this average
    forgets early ones. The rising d_u forgets the random weights of the start, which a ``decay`` near 1 would keep for
    thousands of updates.
    """

    def __init__(self, model: Seq2Seq[Any, Any], decay: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False)
        """The average, in float32 on the device of the model."""
        self.decay = decay
        self._average, self._raw = (list[Tensor](each.parameters()) for each in (self.model, model))

    def decay_at(self, update: int) -> float:
        """Computes d_u of an update, counted from 1."""
        return min(self.decay, (1 + update) / (10 + update))

    @torch.no_grad()
    def follow(self, update: int) -> None:
        """Updates the average with the weights after an update."""
        # a + (1 - d) (w - a), computed for all weights at once
        torch._foreach_lerp_(self._average, self._raw, 1.0 - self.decay_at(update))


def to_average(run: Path, config: TrainingConfig, last: int) -> list[Path]:
    """Lists the checkpoints that are averaged if ``last`` is the last update, oldest first: its own and those of the
    validations before it. Other checkpoints, from ``save_every`` or an interruption, are left out, because they depend
    on how often a run was stopped."""
    if config.average is None:
        return []
    every = config.validation.every
    # the validations before the last update, newest first
    before = range((last - 1) // every * every, 0, -every)
    return [checkpoint_path(run, update) for update in sorted([last, *before[: config.average - 1]])]


def average_last(trainer: Trainer, metrics: MetricsWriter) -> bool:
    """Averages the checkpoints of the last validations, measures the average, and links ``best`` to it if it is the
    best. Steps that an earlier call has completed are not repeated; returns False if there is nothing to do. Raises
    Stopped if a signal ends the validation."""
    run, config, update = trainer.directory(), trainer.config, trainer.position.update
    members = [folder for folder in to_average(run, config, update) if folder.exists()]
    if len(members) < (config.average or 0):
        log.warning(
            f"training.average: {config.average}: of so many last validations only {len(members)} have a "
            "checkpoint" + ("; nothing is averaged" if len(members) < 2 else "")
        )
    if len(members) < 2:
        return False
    names = [member.name for member in members]
    folder = average_path(run, names)
    figures = read_state(folder).get("measured") if folder.exists() else None
    # if training was killed, an average may have been written without its line of metrics
    line = ("average", update, len(members))
    is_noted = line in [(each["kind"], each["update"], each.get("checkpoints")) for each in read(run)]
    if figures is not None and is_noted:
        return False
    if figures is None:
        weights = average_weights(members)
        figures = {}
        if trainer.validate is not None:
            # the weights of training do not change: a resumed run must not start from the average
            model = copy.deepcopy(trainer.eval_model)
            checkpoint.fill(model, weights, folder)
            with trainer.interruption.at_once():
                figures = dict(trainer.validate(model, None))
        state = {
            "averaged": names,
            "vocabulary": trainer.data.tokenizers.fingerprint,
            "manifest": trainer.manifest,
            "update": update,
            "measured": figures,
        }
        trainer.directory()  # raises if the run is gone by now
        checkpoint.write(folder, {MODEL: weights}, state)
    set_link(run, "averaged", folder)
    trainer.link_best()
    if not is_noted:  # the last step, so that an interrupted call is repeated
        metrics.write("average", update, {"checkpoints": len(members), **figures})
    updates = ", ".join(str(int(name.removeprefix("step-"))) for name in names)
    metric, best = config.validation.metric, trainer.best_validation
    result = "not measured: data.valid is not set"
    if best.best is not None and metric in figures:
        name = best.tie_break(figures, metric) or metric
        gain = f"{name} {figures[name] - best.figures.get(name, best.best):+.2f} against update {best.best_update}"
        result = f"valid {shown(figures)}; {gain}"
    is_best = (run / "best").resolve() == folder.resolve()
    log.info(f"average of updates {updates}: {result}{' (best)' if is_best else ''}")
    return True
