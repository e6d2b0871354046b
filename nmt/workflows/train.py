"""Training, from a configuration to a run directory."""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt import experiment as experiments
from nmt.core import log
from nmt.core.device import Compute, compute
from nmt.core.errors import InputError
from nmt.core.seed import seed_everything
from nmt.data.batching import epoch_batches, padding_waste
from nmt.data.store import Store
from nmt.data.vocabulary import BOS, PAD
from nmt.evaluation.translation import scores
from nmt.experiment import Experiment
from nmt.models.build import build
from nmt.models.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.search.decode import decode
from nmt.training.trainer import Trainer, TrainingData
from nmt.workflows.prepare import PreparedData, prepare


def train(experiment: Experiment, *, device: str = "auto", precision: str = "auto") -> Path:
    """Trains what the experiment describes, or goes on where its run directory stands; returns that directory.

    Prepares the corpus first if needed. Raises InputError for a fault of config or data, for a run directory that
    another configuration made or another process is training in; KeyboardInterrupt after saving.
    """
    run = experiment.folder
    run.mkdir(parents=True, exist_ok=True)
    with _alone(run):
        _claim(run, experiment)
        chosen = compute(device, precision)
        data = prepare(experiment.data, run=run, seed=experiment.seed)
        data.tokenizers.save(run)
        seed_everything(experiment.seed)
        model = build_model(experiment, data).to(chosen.device)
        trainer = Trainer(
            model,
            experiment.training,
            TrainingData(data.train, data.valid, data.tokenizers, experiment.data.subwords.sampling, data.key),
            run=run,
            compute=chosen,
            seed=experiment.seed,
            translation_quality=_translation_quality(experiment, data, model, chosen),
        )
        resumed = trainer.resume()
        log.info(_summary(experiment, data, model, chosen))
        if resumed:
            log.info(f"going on from update {trainer.position.update:,} in epoch {trainer.position.epoch + 1}")
        trainer.train()
    return run


def build_model(experiment: Experiment, data: PreparedData) -> Seq2Seq[Any, Any]:
    """The model of an experiment, for the vocabularies of its data."""
    tokenizers = data.tokenizers
    return build(
        experiment.model,
        source_tokens=tokenizers.source.size,
        target_tokens=tokenizers.target.size,
        joint=tokenizers.joint,
        pad=PAD,
        bos=BOS,
    )


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Keeps a second training out of the run directory for as long as this one lives."""
    with (run / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{run}: another process is training in it; wait for it, or set another run") from None
        yield


def _claim(run: Path, experiment: Experiment) -> None:
    path = run / experiments.FILE
    if path.exists():
        keys = experiments.conflicts(experiments.load(path), experiment)
        if keys:
            raise InputError(
                f"{run}: was made by a configuration with other {', '.join(keys)}; set another run, or delete the directory"
            )
    experiments.save(experiment, path)


def _translation_quality(
    experiment: Experiment, data: PreparedData, model: Seq2Seq[Any, Any], chosen: Compute
) -> Any:
    """The trainer's view of search and evaluation: BLEU of the valid corpus as it would be translated."""
    validation = experiment.training.validation
    store = data.valid
    if not validation.bleu or store is None:
        return None
    texts = [store.text(index) for index in range(len(store))]
    sources = [data.tokenizers.source.encode(text.source) for text in texts]
    references = [text.target for text in texts]
    settings = SearchConfig(**{**experiment.search.model_dump(), "beam": validation.beam})

    def quality() -> Mapping[str, float]:
        found = decode(model, sources, settings, chosen)
        hypotheses = [data.tokenizers.target.decode(best.tokens) for best, *_ in found]
        (bleu,) = scores(hypotheses, references, metrics=("bleu",))
        return {"bleu": bleu.value}

    return quality


def _summary(experiment: Experiment, data: PreparedData, model: Seq2Seq[Any, Any], chosen: Compute) -> str:
    """What is about to be trained, for the person who started it."""
    parts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        parts[_part(name)] += parameter.numel()
    config = experiment.training
    order = epoch_batches(data.train, config.batching, seed=experiment.seed, epoch=0)
    waste = padding_waste(order, data.train.source_lengths, data.train.target_lengths)
    valid = "none" if data.valid is None else f"{len(data.valid):,} pairs"
    rows = [
        ("run", experiment.run),
        ("train", f"{len(data.train):,} pairs, {_tokens(data.train):,} target tokens; valid {valid}"),
        ("vocabulary", f"{data.tokenizers.source.size:,} source, {data.tokenizers.target.size:,} target"
                       + (" (joint)" if data.tokenizers.joint else "")),  # fmt: skip
        ("batches", f"{len(order):,} an epoch, padding {waste.source:.1%} of source and {waste.target:.1%} of target"),
        ("parameters", f"{sum(parts.values()):,}: " + ", ".join(f"{part} {count:,}" for part, count in parts.items())),
        ("device", chosen.label),
    ]
    return "\n".join(f"{label:<11}{text}" for label, text in rows)


def _part(name: str) -> str:
    for part in ("embedding", "attention", "encoder", "decoder", "output"):
        if part in name.split("."):
            return part
    return name.split(".")[0]


def _tokens(store: Store) -> int:
    return int(store.target_lengths.sum(dtype="int64")) + len(store)
