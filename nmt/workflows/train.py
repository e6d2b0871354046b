"""Training, from a configuration to a run directory."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from nmt import experiment as experiments
from nmt import plugins
from nmt.config.structure import differences, dump
from nmt.core import log
from nmt.core.device import Compute, compute
from nmt.core.errors import InputError
from nmt.core.files import make_folder, naming
from nmt.core.seed import seed_everything
from nmt.data.batching import epoch_batches, padding_waste
from nmt.data.prepared import PreparedData
from nmt.data.segments import SourceLengths
from nmt.data.tokenizer import TokenizerPair
from nmt.experiment import Experiment
from nmt.models.config import ModelConfig
from nmt.models.names import count
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint as checkpoints
from nmt.training import run_directory, validation
from nmt.training.out_of_memory import lacks_memory
from nmt.training.processes import Processes
from nmt.training.stream import TrainingData
from nmt.training.trainer import Trainer
from nmt.translator.find_run import find_checkpoint, record_last_run, run_of
from nmt.translator.loading import build_model
from nmt.translator.manifest import CheckpointManifest, checked_state
from nmt.translator.source_language import count_sources, write_counts
from nmt.translator.validation import Table, Validation
from nmt.workflows.prepare import prepare

EVENTS = ("on_update", "on_validation", "on_checkpoint")
"""Methods of a callback, which observes a training and may stop it."""

LOCK = ".lock"
"""File in a run directory, locked by the process that trains in it, which writes its name there."""


def train(
    experiment: Experiment, *, device: str = "auto", precision: str = "auto", skip_damaged: bool = False,
    extend: bool = False, callbacks: Sequence[object] = (),
    threads: Callable[[int | None], AbstractContextManager[object]] | None = None,
) -> Path:  # fmt: skip
    """Trains the model of an experiment, from the newest checkpoint of its run directory on, and returns that
    directory.

    Prepares the corpus first if needed. The processes that a launcher such as torchrun has started train together, and
    the first one logs for all. ``skip_damaged`` goes on from the newest checkpoint that is whole, where a newer one is
    damaged. ``extend`` allows another number of updates where the learning rate's schedule depends on it, which then is
    that for the new number. ``callbacks``, for one process, are objects with methods of the names in
    ``EVENTS``; see ``observe`` of ``Trainer``. ``threads`` chooses those of one process on a CPU, given the number that
    the newest checkpoint was trained with, if any. Raises InputError for a fault of config, data or environment, for a
    run directory that another configuration made or another process is training in; after saving, KeyboardInterrupt for
    Ctrl-C and SystemExit for SIGTERM.
    """
    processes = Processes()
    if {"RANK", "WORLD_SIZE"} & os.environ.keys():
        from nmt.training.distributed import launched

        processes = launched(os.environ)
    _check(callbacks, processes)
    if not processes.is_first:
        log.set_verbosity(log.Verbosity.SILENT)
    run, to, languages = experiment.folder, experiment.search.to, experiment.data.target_languages
    if to not in (None, *languages):
        raise InputError(f"search.to: {to}: data.train is into {', '.join(languages) or 'no named one'}; leave it out")
    make_folder(run, option="run:")
    with _exclusive_run(run) if processes.is_first else nullcontext(lambda: run) as directory:
        if processes.is_first:
            run_directory.recover(run)
        _refuse_conflicts(run, experiment, extend=extend)
        chosen = compute(processes.device(device), precision, notice=log.info)
        computing: AbstractContextManager[object] = nullcontext()
        if threads is not None and chosen.device.type == "cpu" and processes.size == 1:
            newest, state = run_directory.latest_checkpoint(run), dict[str, Any]()
            with suppress(run_directory.Damaged):  # reported when it is restored
                state = {} if newest is None else run_directory.read_state(newest)
            computing = threads(state.get("threads"))  # None as well for a checkpoint of an older release
        with processes.connected(chosen.device), computing:
            trainer = _trainer(experiment, directory, chosen, processes, skip_damaged, callbacks)
            trainer.train()
            if processes.is_first:
                _report(row for rows in (_outcome, _chosen_search, _calibrated) for row in rows(trainer, experiment))
    return run


def _check(callbacks: Sequence[object], processes: Processes) -> None:
    """Raises InputError for an object with a method that would never be called, and for callbacks in several processes,
    which would have to stop together."""
    for callback in callbacks:
        for name in [name for name in dir(callback) if name.startswith("on_")] or ["none of them"]:
            if name not in EVENTS:
                raise InputError(f"callbacks: training calls {', '.join(EVENTS)}, and {callback!r} has {name}")
    if callbacks and processes.size > 1:
        raise InputError(f"callbacks: are for training in one process, not in {processes.size}; leave them out")


def _trainer(
    experiment: Experiment,
    directory: Callable[[], Path],
    chosen: Compute,
    processes: Processes,
    skip_damaged: bool,
    callbacks: Sequence[object],
) -> Trainer:
    """Creates the trainer of a run, with its corpus prepared and its newest checkpoint restored; logs a summary of the
    training."""
    run, config = experiment.folder, experiment.training
    with processes.main_process_first():
        if skip_damaged and processes.is_first:
            checkpoints.skip_damaged(run)
        is_new, corpus = run_directory.latest_checkpoint(run) is None, experiment.data
        origin = _origin(config.start_from, experiment.model) if is_new and config.start_from is not None else None
        vectors = experiment.model.embedding.pretrained if is_new and origin is None else None
        if vectors is not None:
            from nmt.workflows.align import check_readable

            check_readable(*vectors.files)
        if not is_new and corpus.subwords.model is not None:
            # a run that has started keeps its own copy of a configured subword model
            subwords = corpus.subwords.model_copy(update={"model": run})
            corpus = corpus.model_copy(update={"subwords": subwords})
        data = prepare(corpus, run=run, seed=experiment.seed)
    guided = config.guided_attention is not None
    if guided and data.train.linked_pairs == 0:
        raise InputError("training.guided_attention: no pair that nmt prepare kept has a link; see data.train.links")
    seed_everything(experiment.seed)
    model = build_model(experiment.model, data.tokenizers).to(chosen.device)
    _start(model, experiment, data, origin=origin, has_vectors=vectors is not None)
    percentiles = data.report.source.lengths
    lengths = SourceLengths(percentiles["99%"], percentiles["most"], data.report.several, data.report.letterless)
    table = Table(width=shutil.get_terminal_size().columns, colour=log.has_colour()) if log.is_watched() else None
    validate = None
    if data.valid is not None:
        validate = Validation(experiment, data.valid, data.tokenizers, lengths, chosen, table)
    trainer = Trainer(
        model=model,
        config=config,
        data=TrainingData(data.train, data.tokenizers, experiment.data.subwords.sampling, data.key, linked=guided),
        directory=directory,
        compute=chosen,
        seed=experiment.seed,
        processes=processes,
        validate=validate,
        manifest=CheckpointManifest.of(experiment, lengths).model_dump(mode="json"),
        observe=partial(_observe, table or validation.line, callbacks),
    )
    try:
        resumed = trainer.resume()
    except run_directory.Damaged as error:
        raise InputError(f"{error}; or go on from the newest whole one with nmt train --skip-damaged") from None
    if (newest := run_directory.latest_checkpoint(run)) is not None:
        checked_state(newest, experiment, lengths)  # `resume` has verified its checksums
    agreed = {
        "configuration": hashlib.sha256(dump(experiment).encode()).hexdigest()[:8],
        "corpus": data.key[:8],
        "last checkpoint": f"update {trainer.position.update}",
        "precision": chosen.precision,
    }
    processes.check_agreement(agreed)
    if processes.is_first:
        # only now, so that a training that is refused does not change the run
        experiments.save(experiment, run / experiments.FILE)
        data.tokenizers.save(run)
        run_directory.write_lengths(run, lengths)
        write_counts(run, count_sources(data.train, experiment.data, data.tokenizers.source.size))
        if plugins.has("parts", "number_formats"):
            plugins.find("parts", "number_formats", "nmt train")(run, experiment.data, data)
        record_last_run(run)
        _report([("run", experiment.run), *_summary(experiment, data, model, chosen, processes)])
    if resumed:
        log.info(f"going on from update {trainer.position.update:,}")
    return trainer


@contextmanager
def _exclusive_run(run: Path) -> Iterator[Callable[[], Path]]:
    """Keeps a second training out of the run directory for as long as this one lives: the kernel takes the locks from a
    process that ends, however it ends. Locks the directory, and a file in it where the file system locks no directory.
    Yields a function that returns the path and raises InputError where another directory, or none, has it by now."""
    with ExitStack() as stack:
        lock = stack.enter_context((run / LOCK).open("a+", encoding="utf-8"))
        stack.callback(os.close, folder := os.open(run, os.O_RDONLY))
        for descriptor in (folder, lock.fileno()):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = lock.readline().strip() or "another process"
                raise InputError(f"{run}: {holder} is training in it; wait for it, or set another run") from None
            except OSError as error:
                if descriptor != folder:
                    log.warning(f"{run}: cannot be locked ({error.strerror}): see to it that no other training uses it")
        with naming(run / LOCK):
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            lock.flush()

        def directory() -> Path:
            with suppress(OSError):
                # rm -r leaves a directory without these files if a checkpoint was written meanwhile
                has_files = (run / LOCK).exists() or (run / experiments.FILE).exists()
                if has_files and os.path.samestat(run.stat(), os.fstat(folder)):
                    return run
            raise InputError(
                f"{run}: was deleted or moved while it trained; move it back to go on, or start anew", exit_code=1
            )

        try:
            yield directory
        except Exception as error:
            if isinstance(error.__context__ or error, FileNotFoundError):
                time.sleep(1.0)  # rm -r may still be running
            directory()  # if it is missing, that is the reason
            raise
        finally:
            lock.truncate(0)


def _refuse_conflicts(run: Path, experiment: Experiment, *, extend: bool) -> None:
    """Raises InputError if a run with a checkpoint would resume with another configuration, and if one without would
    overwrite a configuration that the user has written."""
    path, newest = run / experiments.FILE, run_directory.latest_checkpoint(run)
    if newest is None and path.exists() and not experiments.is_complete(path):
        raise InputError(
            f"{path}: training writes the complete configuration there; rename this one, or set another run"
        )
    if newest is None or not path.exists():
        return
    run_directory.refuse_newer(newest)
    if not any(run.glob(f"checkpoints/*/{run_directory.TRAINING}")):  # it was passed on, or imported
        raise InputError(f"{newest}: has no {run_directory.TRAINING} to go on from; try nmt init NAME --from {run}")
    old = experiments.load(path)
    keys = experiments.conflicts(old, experiment, extend=extend)
    if keys == [experiments.HORIZON]:
        raise InputError(
            f"{run}: its learning rate follows a schedule of {old.training.stopping.updates} updates, and "
            f"{experiments.HORIZON} is {experiment.training.stopping.updates} now; add --extend to go on by the new "
            "schedule, or set another run"
        )
    if keys:
        raise InputError(
            f"{run}: was made by a configuration with other {', '.join(keys)}; go on with its own, nmt train "
            f"{shlex.quote(str(path))} (more updates: --set {experiments.HORIZON}=N --extend), or set another run"
        )


def _observe(
    announce: Callable[..., str], callbacks: Sequence[object], trainer: Trainer, event: str, result: Any
) -> None:
    """Reports a validation, and calls the methods of the callbacks."""
    if event == "on_validation":
        place = trainer.position
        epoch = place.epoch + (place.batch > 0)  # of the last update
        is_best = trainer.best_validation.best_update == place.update
        log.info(announce(validation.Validated(place.update, epoch, place.seconds / 60, result, is_best)), styled=True)
    for callback in callbacks:
        getattr(callback, event, lambda *_: None)(trainer, result)


def _origin(start_from: Path, model: ModelConfig) -> Path:
    """Finds the checkpoint that a new run starts from. Raises InputError if its model is another one."""
    try:
        origin = find_checkpoint(start_from)
    except InputError as error:
        raise InputError(f"training.start_from: {error}") from None
    described = run_of(origin) / experiments.FILE
    old = experiments.load(described)
    run_directory.verify(origin, (run_directory.MODEL, run_directory.STATE))
    checked_state(origin, old, run_directory.read_lengths(run_of(origin)))
    if changed := list(filter(experiments.decides, differences(old.model, model))):
        raise InputError(
            f"training.start_from: {origin}: is of another model.{changed[0]} than this config; give the model section "
            f"the values that {described} has (dropout and embedding.pretrained may differ)"
        )
    return origin


def _start(
    model: Seq2Seq[Any, Any], experiment: Experiment, data: PreparedData, *, origin: Path | None, has_vectors: bool
) -> None:
    """Gives a new model the weights that training starts from, and freezes those that are not trained."""
    config = experiment.training
    if origin is not None:
        _start_from(origin, model, data.tokenizers)
    elif has_vectors:
        start_from_vectors = plugins.find("parts", "word_vectors", "model.embedding.pretrained")
        _report(("vectors", text) for text in start_from_vectors(model, experiment.model.embedding, data))
    if config.freeze or config.lora is not None:
        restrict = plugins.find("parts", "adapters", "training.freeze" if config.freeze else "training.lora")
        restrict(model, config.freeze, config.lora)


def _start_from(origin: Path, model: Seq2Seq[Any, Any], tokenizers: TokenizerPair) -> None:
    """Gives a new model the weights of a checkpoint; if its vocabulary differs, those of the pieces that both have."""
    vocabulary = run_directory.read_state(origin).get("vocabulary")
    if vocabulary == tokenizers.fingerprint:
        checkpoints.load_weights(origin, model)
        log.info(f"starting from {origin}")
        return
    load_weights_by_piece = plugins.find("parts", "vocabulary_transfer", "training.start_from")
    old = TokenizerPair.load(run_of(origin))
    if vocabulary != old.fingerprint:
        raise InputError(f"training.start_from: {origin}: was trained with another vocabulary than its run has")
    log.info(f"starting from {origin} {load_weights_by_piece(origin, model, old, tokenizers)}")


def _summary(
    experiment: Experiment, data: PreparedData, model: Seq2Seq[Any, Any], chosen: Compute, processes: Processes
) -> Iterator[tuple[str, str]]:
    """Yields a summary of the training, for the user."""
    config = experiment.training
    parts = count({name: parameter.numel() for name, parameter in model.named_parameters()})
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = "" if trained == sum(parts.values()) else f"; trained {trained:,}, {trained / sum(parts.values()):.1%}"
    order = epoch_batches(data.train, config.batching, seed=experiment.seed, epoch=0)
    tokens = int(data.train.target_lengths.sum(dtype="int64")) + len(data.train)
    waste = padding_waste(order, data.train.source_lengths, data.train.target_lengths)
    source, target, joint = data.tokenizers.source, data.tokenizers.target, " (joint)" * data.tokenizers.joint
    valid = "none" if data.valid is None else f"{len(data.valid):,} pairs"
    yield "train", f"{len(data.train):,} pairs, {tokens:,} target tokens; valid {valid}"
    yield "vocabulary", f"{source.size:,} source, {target.size:,} target{joint}"
    padding = f"padding {waste.source:.1%} of source and {waste.target:.1%} of target"
    yield "batches", f"{len(order):,} an epoch, {padding}"
    of_parts = ", ".join(f"{part} {count:,}" for part, count in parts.items())
    yield "parameters", f"{sum(parts.values()):,}: {of_parts}{frozen}"
    if (guided := config.guided_attention) is not None:
        yield "links", f"of {data.train.linked_pairs:,} pairs, for heads {guided.heads} with weight {guided.weight:g}"
    yield "device", chosen.label if processes.size == 1 else f"{processes.size} processes, each on {chosen.label}"


def _outcome(trainer: Trainer, experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yields what was reached, how long it took, where the model is, and commands that use it."""
    best, position = trainer.best_validation, trainer.position
    if best.best is not None:
        metric = validation.deciding_metric(best.figures, trainer.config.validation.metric)
        yield "best", f"{metric} {best.figures[metric]:.2f} at update {best.best_update:,}"
    yield "time", f"{position.seconds / 60:.1f} min, {position.update:,} updates"
    yield "model", str(trainer.directory() / ("latest" if best.best is None else "best"))
    run = shlex.quote(experiment.run)
    to = " --to LANGUAGE" if len(experiment.data.target_languages) > 1 else ""
    yield "translate", f"nmt translate {run}{to} --input FILE --output TRANSLATION"
    if experiment.data.test_corpora:
        yield "measure", f"nmt evaluate {run}"
    yield "more", f"nmt info {run}"


def _chosen_search(trainer: Trainer, experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Writes the settings of the search that suit the model best into the config.yaml of the run, and yields them, if
    validations translate."""
    is_translated = trainer.best_validation.best is not None and experiment.training.validation.bleu
    if not is_translated or not isinstance(trainer.validate, Validation):
        return
    from nmt.workflows.choose_search import choose_length_penalty

    try:
        chosen = choose_length_penalty(trainer.validate, trainer.position.seconds)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        chosen = None  # the model in training is still there
    if chosen is not None:
        penalty, reason = chosen
        search = experiment.search.model_copy(update={"length_penalty": penalty})
        experiments.save(experiment.model_copy(update={"search": search}), trainer.directory() / experiments.FILE)
        yield "search", f"length_penalty {reason}"


def _calibrated(trainer: Trainer, experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Lets a plug-in learn how sure the best checkpoint may be of its translations, if there is time."""
    if trainer.best_validation.best is not None and plugins.has("parts", "calibrate"):
        calibrate = plugins.find("parts", "calibrate", "nmt train")
        yield from calibrate(trainer.directory(), experiment, trainer.position.seconds, trainer.compute)


def _report(rows: Iterable[tuple[str, str]]) -> None:
    """Logs labels and texts as a table."""
    for label, text in rows:
        log.info(f"{label:<11}{text}")
