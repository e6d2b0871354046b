"""Training, from a configuration to a run directory."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from nmt import experiment as experiments
from nmt.alignment.formats import jsonl_line
from nmt.config.structure import differences, dump
from nmt.core import log
from nmt.core.device import Compute, compute
from nmt.core.errors import InputError
from nmt.core.files import naming, whole_file
from nmt.core.seed import seed_everything
from nmt.data.batching import epoch_batches, padding_waste
from nmt.data.config import DataConfig
from nmt.data.pieces import Lengths
from nmt.data.store import Store
from nmt.evaluation.translation import scores
from nmt.experiment import Experiment
from nmt.models.parts import count
from nmt.models.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.search.engine import OwnEngine
from nmt.training import checkpoint as checkpoints
from nmt.training import folders
from nmt.training.config import GuidedAttentionConfig
from nmt.training.more.distributed import Launch, Processes, joined
from nmt.training.progress import Example, Table, line
from nmt.training.stream import TrainingData
from nmt.training.trainer import Trainer
from nmt.translator.aligner import Aligner
from nmt.translator.find_run import find_checkpoint, note_training, run_of
from nmt.translator.loading import TrainedModel, build_model, for_inference
from nmt.translator.scorer import Scorer
from nmt.translator.segmentation import Markup
from nmt.translator.translator import Translator
from nmt.workflows.prepare import PreparedData, prepare

LOCK = ".lock"
"""Held in a run directory by the process that trains in it; holds who that is."""


def train(
    experiment: Experiment,
    *,
    device: str = "auto",
    precision: str = "auto",
    skip_damaged: bool = False,
    markup: Markup | None = None,
) -> Path:
    """Trains what the experiment describes, or goes on where its run directory stands; returns that directory.

    Prepares the corpus first if needed. Where the environment says that this process is one of several, as torchrun has
    it, they train together, and the first one speaks for all. ``skip_damaged`` goes on from the newest checkpoint that
    is whole, where a newer one is damaged. ``markup`` serves ``search.markup`` in validation. Raises InputError
    for a fault of config, data or environment, for a run directory that another configuration made or another process
    is training in; after saving, KeyboardInterrupt for Ctrl-C and SystemExit for SIGTERM.
    """
    launch = Launch.of(os.environ)
    if launch.rank > 0:
        log.set_verbosity(log.Verbosity.SILENT)
    run = experiment.folder
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"run: {run}: cannot be made a run directory: {error.strerror}") from None
    with _alone(run) if launch.rank == 0 else nullcontext():
        if launch.rank == 0:
            folders.recover(run)
        _refuse_conflicts(run, experiment)
        chosen = compute(launch.device(device), precision)
        with joined(launch, chosen.device) as processes:
            _train(experiment, run, chosen, processes, skip_damaged, markup)
    return run


def _train(
    experiment: Experiment, run: Path, chosen: Compute, processes: Processes, skip_damaged: bool, markup: Markup | None
) -> None:
    with processes.first_alone():
        if skip_damaged and processes.is_first:
            checkpoints.skip_damaged(run)
        origin = _origin(experiment)
        data = prepare(_data(experiment), run=run, seed=experiment.seed)
    guided = experiment.training.guided_attention is not None
    if guided and data.train.linked_pairs == 0:
        raise InputError(
            "training.guided_attention: no pair that nmt prepare has kept has a link; see data.train.links"
        )
    seed_everything(experiment.seed)
    model = build_model(experiment, data.tokenizers).to(chosen.device)
    if origin is not None:
        _start_from(origin, model, data)
    table = Table(width=shutil.get_terminal_size().columns, colour=log.has_colour()) if log.is_watched() else None
    trainer = Trainer(
        model,
        experiment.training,
        TrainingData(data.train, data.tokenizers, experiment.data.subwords.sampling, data.key, linked=guided),
        run=run,
        compute=chosen,
        seed=experiment.seed,
        processes=processes,
        validation=_validation(experiment, data, chosen, table, markup),
        snapshot=_snapshot(experiment, data, chosen),
        announce=table or line,
    )
    try:
        resumed = trainer.resume()
    except folders.Damaged as error:
        raise InputError(f"{error}; or go on from the newest whole one with nmt train --skip-damaged") from None
    processes.agree(
        {
            "configuration": hashlib.sha256(dump(experiment).encode()).hexdigest()[:8],
            "corpus": data.key[:8],
            "last checkpoint": f"update {trainer.position.update}",
            "precision": chosen.precision,
        }
    )
    if processes.is_first:
        # only now: a training that is refused leaves the run as it was
        experiments.save(experiment, run / experiments.FILE)
        data.tokenizers.save(run)
        folders.write_lengths(run, _lengths(data))
        note_training(run)
        log.info(_summary(experiment, data, model, chosen, processes))
    if resumed:
        log.info(f"going on from update {trainer.position.update:,}")
    trainer.train()
    if processes.is_first:
        log.info(_next_steps(experiment))


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Keeps a second training out of the run directory for as long as this one lives: the kernel takes the lock from a
    process that ends, however it ends."""
    with (run / LOCK).open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.readline().strip() or "another process"
            raise InputError(f"{run}: {holder} is training in it; wait for it, or set another run") from None
        except OSError as error:
            log.warning(f"{run}: cannot be locked ({error.strerror}): see to it that no other training uses it")
        with naming(run / LOCK):
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            lock.flush()
        try:
            yield
        finally:
            lock.truncate(0)


def _refuse_conflicts(run: Path, experiment: Experiment) -> None:
    """A run that holds a checkpoint goes on with its own configuration only."""
    path, newest = run / experiments.FILE, folders.latest(run)
    if newest is None or not path.exists():
        return
    folders.refuse_newer(newest)
    keys = experiments.conflicts(experiments.load(path), experiment)
    if keys:
        raise InputError(
            f"{run}: was made by a configuration with other {', '.join(keys)}; set another run, or delete this one"
        )


def _data(experiment: Experiment) -> DataConfig:
    """What to prepare. A run that has begun keeps its own copy of a subword model that it was given."""
    data = experiment.data
    if data.subwords.model is None or folders.latest(experiment.folder) is None:
        return data
    return data.model_copy(update={"subwords": data.subwords.model_copy(update={"model": experiment.folder})})


def _origin(experiment: Experiment) -> Path | None:
    """The checkpoint that a new run starts from; None where it starts from random weights, or has its own by now."""
    named = experiment.training.start_from
    if named is None or folders.latest(experiment.folder) is not None:
        return None
    try:
        origin = find_checkpoint(named)
    except InputError as error:
        raise InputError(f"training.start_from: {error}") from None
    described = run_of(origin) / experiments.FILE
    changed = differences(experiments.load(described).model, experiment.model)
    if changed := [key for key in changed if not key.startswith("dropout.")]:
        raise InputError(
            f"training.start_from: {origin}: is of another model.{changed[0]} than this config; give the model section "
            f"the values that {described} has (dropout may differ)"
        )
    return origin


def _lengths(data: PreparedData) -> Lengths:
    found = data.report.source.lengths
    return Lengths(usual=found["99%"], longest=found["most"])


def _start_from(origin: Path, model: Seq2Seq[Any, Any], data: PreparedData) -> None:
    """Gives a new model the weights of a checkpoint, whose vocabulary must be its own."""
    if folders.read_state(origin).get("vocabulary") != data.tokenizers.fingerprint:
        raise InputError(
            f"training.start_from: {origin}: was trained with another vocabulary than data.subwords makes of this "
            f"corpus; take its own with data.subwords: {{model: {run_of(origin)}}}"
        )
    checkpoints.load_weights(origin, model)
    log.info(f"starting from {origin}")


def _validation(
    experiment: Experiment, data: PreparedData, chosen: Compute, table: Table | None, markup: Markup | None
) -> Callable[[Seq2Seq[Any, Any]], Mapping[str, float]] | None:
    """Loss, perplexity and accuracy on the valid corpus, and BLEU and chrF where wanted, as ``nmt evaluate`` would have
    them. The table is given the sentence of middle length, as it has been translated."""
    store = data.valid
    if store is None:
        return None
    config = experiment.training.validation
    texts = [store.text(index) for index in range(len(store))]
    sources, references = [text.source for text in texts], [text.target for text in texts]
    middle = sorted(range(len(sources)), key=lambda index: len(sources[index]))[len(sources) // 2]
    one = {"beam": config.beam, "n_best": 1, "groups": 1, "sampling": None, "consensus": None}
    search = SearchConfig(**{**experiment.search.model_dump(), **one})

    def measure(model: Seq2Seq[Any, Any]) -> Mapping[str, float]:
        used = for_inference(model, chosen)
        trained = TrainedModel(experiment.folder, experiment, data.tokenizers, used, chosen, _lengths(data))
        prediction = Scorer(trained).predict(sources, references)
        measured = {
            "loss": prediction.loss,
            "perplexity": prediction.perplexity,
            "accuracy": prediction.accuracy,
        }
        if config.bleu:
            aligner = Aligner(trained, experiment.alignment)
            translator = Translator(trained, search, aligner, OwnEngine(used, chosen), markup)
            hypotheses = [translation.text for translation in translator.translate(sources)]
            bleu, chrf = scores(hypotheses, references, metrics=("bleu", "chrf"))
            measured |= {"bleu": bleu.value, "chrf": chrf.value}
            if table is not None:
                table.example = Example(sources[middle], references[middle], hypotheses[middle])
        return measured

    return measure


def _snapshot(
    experiment: Experiment, data: PreparedData, chosen: Compute
) -> Callable[[Seq2Seq[Any, Any], Path], None] | None:
    """Writes the attention between the first pairs of the valid corpus, as ``nmt align --level subword --format jsonl``
    would, but for those that are too long to align; None where none is wanted."""
    store, wanted = data.valid, experiment.training.snapshots
    if store is None or wanted == 0:
        return None
    longest, limit = np.maximum(store.source_lengths, store.target_lengths), experiment.search.max_source_tokens
    texts = [store.text(index) for index in np.flatnonzero(longest <= limit)[:wanted].tolist()]

    def write(model: Seq2Seq[Any, Any], path: Path) -> None:
        used = for_inference(model, chosen)
        trained = TrainedModel(experiment.folder, experiment, data.tokenizers, used, chosen, _lengths(data))
        aligner = Aligner(trained, experiment.alignment)
        sources, targets = [text.source for text in texts], [text.target for text in texts]
        found = aligner.align(("attention",), sources, targets, level="subword")["attention"]
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as partial, naming(path), partial.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{jsonl_line(alignment)}\n" for alignment in found)

    return write


def _summary(
    experiment: Experiment, data: PreparedData, model: Seq2Seq[Any, Any], chosen: Compute, processes: Processes
) -> str:
    """What is about to be trained, for the person who started it."""
    parts = count({name: parameter.numel() for name, parameter in model.named_parameters()})
    config = experiment.training
    order = epoch_batches(data.train, config.batching, seed=experiment.seed, epoch=0)
    waste = padding_waste(order, data.train.source_lengths, data.train.target_lengths)
    tokenizers = data.tokenizers
    joint = " (joint)" if tokenizers.joint else ""
    valid = "none" if data.valid is None else f"{len(data.valid):,} pairs"
    rows = [
        ("run", experiment.run),
        ("train", f"{len(data.train):,} pairs, {_tokens(data.train):,} target tokens; valid {valid}"),
        ("vocabulary", f"{tokenizers.source.size:,} source, {tokenizers.target.size:,} target{joint}"),
        ("batches", f"{len(order):,} an epoch, padding {waste.source:.1%} of source and {waste.target:.1%} of target"),
        ("parameters", f"{sum(parts.values()):,}: " + ", ".join(f"{part} {count:,}" for part, count in parts.items())),
        *([("links", _links(config.guided_attention, data.train))] if config.guided_attention is not None else []),
        ("device", chosen.label if processes.size == 1 else f"{processes.size} processes, each on {chosen.label}"),
    ]
    return "\n".join(f"{label:<11}{text}" for label, text in rows)


def _next_steps(experiment: Experiment) -> str:
    run = shlex.quote(experiment.run)
    rows = [("translate", f"nmt translate {run} --input FILE --output TRANSLATION")]
    if experiment.data.test_corpora:
        rows.append(("measure", f"nmt evaluate {run}"))
    rows.append(("more", f"nmt info {run}"))
    return "\n".join(f"{label:<11}{command}" for label, command in rows)


def _links(config: GuidedAttentionConfig, store: Store) -> str:
    return f"of {store.linked_pairs:,} pairs, for heads {config.heads} with weight {config.weight:g}"


def _tokens(store: Store) -> int:
    return int(store.target_lengths.sum(dtype="int64")) + len(store)
