"""From what a user calls a model to one that translates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import experiment as experiments
from nmt.config.structure import differences
from nmt.core import log
from nmt.core.device import Compute, compute
from nmt.core.errors import InputError
from nmt.core.meta_init import on_meta_device, without_init
from nmt.data.pieces import Lengths
from nmt.data.tokenizer import TokenizerPair
from nmt.data.vocabulary import BOS, PAD
from nmt.experiment import Experiment
from nmt.extras.accel.optimize import optimize, register
from nmt.models.build import build
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint as checkpoints
from nmt.training import folders
from nmt.translator.find_run import find_checkpoint, run_of


@dataclass(frozen=True)
class Trained:
    """A trained model with all that is needed to use it."""

    checkpoint: Path
    experiment: Experiment
    tokenizers: TokenizerPair
    model: Seq2Seq[Any, Any]
    compute: Compute
    lengths: Lengths
    """Of the sentences that it was trained on."""


def load_trained(
    model: str | Path | None, overrides: Sequence[str] = (), *, device: str = "auto", precision: str = "auto"
) -> Trained:
    """Loads a model for use.

    ``model`` is a run directory (its best checkpoint, or the latest before the first validation), a checkpoint folder,
    or the config that trained it; None is the run under ``runs/`` that trained last. ``overrides`` change the run's
    config. Raises InputError for whatever is missing, damaged or does not belong together.
    """
    folder = find_checkpoint(model, overrides)
    run = run_of(folder)
    log.info(f"model: {folder}")
    experiment = experiments.load(run / experiments.FILE, overrides)
    if overrides and (changed := differences(experiments.load(run / experiments.FILE).model, experiment.model)):
        raise InputError(f"--set model.{changed[0]}: a trained model cannot be changed; train another one")
    tokenizers = TokenizerPair.load(run)
    folders.verify(folder, (folders.MODEL, folders.STATE))
    state = folders.read_state(folder)
    if state.get("vocabulary") != tokenizers.fingerprint:
        raise InputError(f"{folder}: was trained with another vocabulary than the subword model in {run}")
    chosen = compute(device, precision)
    with on_meta_device():
        checkpoints.check_weights(folder, build_model(experiment, tokenizers))
    with without_init():
        built = build_model(experiment, tokenizers)
    checkpoints.load_weights(folder, built)
    most = experiment.data.filters.max_length  # all that is known of a run from before lengths were noted
    lengths = folders.read_lengths(run) or Lengths(usual=most, longest=most)
    return Trained(folder, experiment, tokenizers, for_inference(built.to(chosen.device), chosen), chosen, lengths)


def build_model(experiment: Experiment, tokenizers: TokenizerPair) -> Seq2Seq[Any, Any]:
    """A new model of an experiment for its vocabularies."""
    return build(
        experiment.model,
        source_tokens=tokenizers.source.size,
        target_tokens=tokenizers.target.size,
        pad=PAD,
        bos=BOS,
    )


def for_inference(model: Seq2Seq[Any, Any], chosen: Compute) -> Seq2Seq[Any, Any]:
    """The model itself, frozen, in eval mode, its weights in the compute precision: so no step casts them again."""
    register()
    return optimize(model, chosen)
