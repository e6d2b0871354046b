"""From what a user calls a model to one that translates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nmt import experiment as experiments
from nmt.core import log
from nmt.core.device import Compute, compute
from nmt.core.errors import InputError
from nmt.data.tokenizer import TokenizerPair
from nmt.data.vocabulary import BOS, PAD
from nmt.experiment import Experiment
from nmt.models.build import build
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint as checkpoints

RUNS = Path("runs")
"""Where a run is looked for that the user has not named."""


@dataclass(frozen=True)
class Trained:
    """A trained model with all that is needed to use it."""

    checkpoint: Path
    experiment: Experiment
    tokenizers: TokenizerPair
    model: Seq2Seq[Any, Any]
    compute: Compute


def load_trained(
    model: str | Path | None, overrides: Sequence[str] = (), *, device: str = "auto", precision: str = "auto"
) -> Trained:
    """Loads a model for use.

    ``model`` is a run directory (its best checkpoint, or the latest before the first validation), a checkpoint folder,
    or the config that trained it; None is the run under ``runs/`` that trained last. ``overrides`` change the run's
    config. Raises InputError for whatever is missing, damaged or does not belong together.
    """
    folder = find_checkpoint(model, overrides)
    run = folder.resolve().parent.parent
    log.info(f"model: {folder}")
    experiment = experiments.load(run / experiments.FILE, overrides)
    tokenizers = TokenizerPair.load(run)
    state = checkpoints.read_state(folder)
    if state.get("vocabulary") != tokenizers.fingerprint:
        raise InputError(f"{folder}: was trained with another vocabulary than the subword model in {run}")
    chosen = compute(device, precision)
    built = build_model(experiment, tokenizers)
    checkpoints.load_weights(folder, built)
    return Trained(folder, experiment, tokenizers, for_inference(built.to(chosen.device), chosen), chosen)


def build_model(experiment: Experiment, tokenizers: TokenizerPair) -> Seq2Seq[Any, Any]:
    """A new model of an experiment for its vocabularies."""
    return build(
        experiment.model,
        source_tokens=tokenizers.source.size,
        target_tokens=tokenizers.target.size,
        joint=tokenizers.joint,
        pad=PAD,
        bos=BOS,
    )


def for_inference(model: Seq2Seq[Any, Any], chosen: Compute) -> Seq2Seq[Any, Any]:
    """The model itself, frozen, in eval mode, its weights in the compute precision: so no step casts them again."""
    dtype: torch.dtype = getattr(torch, chosen.precision)
    return model.to(dtype).requires_grad_(False).eval()


def find_checkpoint(model: str | Path | None, overrides: Sequence[str] = ()) -> Path:
    """The checkpoint folder that a user means; see ``load_trained``."""
    if model is None:
        return _of_run(_last_run())
    path = Path(model).expanduser()
    if path.is_dir():
        if (path / checkpoints.MODEL).exists():
            if not (path.resolve().parent.parent / experiments.FILE).exists():
                raise InputError(
                    f"{path}: is a checkpoint outside its run directory, whose {experiments.FILE} it needs"
                )
            return path
        if (path / experiments.FILE).exists():
            return _of_run(path)
        raise InputError(f"{path}: is no run directory (there is no {experiments.FILE}) and no checkpoint")
    if path.is_file():
        if path.suffix not in (".yaml", ".yml"):
            raise InputError(f"{path}: name a run directory, a checkpoint folder, or a config that ends in .yaml")
        run = experiments.load(path, overrides).folder
        if not (run / experiments.FILE).exists():
            raise InputError(f"{path}: its run {run} has not been trained yet; nmt train {path}")
        return _of_run(run)
    raise InputError(f"{path}: no such run directory, checkpoint or config")


def _last_run() -> Path:
    found = [link.parent for link in RUNS.glob("*/latest") if (link.parent / experiments.FILE).exists()]
    if not found:
        raise InputError(f"no trained model under {RUNS}/; train one with nmt train, or name a run directory")
    return max(found, key=lambda run: (run / "latest").lstat().st_mtime_ns)


def _of_run(run: Path) -> Path:
    for name in ("best", "latest"):
        if (run / name).exists():
            return run / name
    newest = checkpoints.latest(run)
    if newest is None:
        raise InputError(f"{run}: holds no checkpoint yet; train it with nmt train {run / experiments.FILE}")
    return newest
