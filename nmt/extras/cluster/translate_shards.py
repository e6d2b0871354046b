"""Translation of many files on many machines: ``translate_one`` translates one of them. Ray calls it for each, or each
process of a job array does for its part of them."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

import nmt
from nmt import experiment as experiments
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import content_hash, make_folder, reading
from nmt.data.atomic_folder import locked
from nmt.experiment import Experiment
from nmt.extras.cluster.cluster import Cluster, NodeFault, check_installed, connected, on_this_node
from nmt.extras.cluster.manifest import FILE, ShardManifest, remove_leftovers
from nmt.extras.cluster.records import ShardOptions, Tally, translate_shard
from nmt.extras.cluster.shards import Shard, check_output, check_wanted, find_shards
from nmt.training import run_directory
from nmt.translator.find_run import find_checkpoint, run_of
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions

FIELD = "text"
"""Default name of the field with a record's text."""


@dataclass(frozen=True)
class ShardJob:
    """Settings that all shards share; see ``nmt.workflows.translate``. ``translate_shards`` makes all paths absolute,
    and the same on all machines."""

    output: Path
    """The folder of the translations."""
    overrides: tuple[str, ...]
    wanted: OutputOptions
    field: str | None = None
    """Name of the field with a record's text."""
    engine: str = "nmt"
    device: str = "auto"
    precision: str = "auto"
    context: bool = False
    checkpoints: tuple[Path, ...] = ()
    """The model, and the models of an ensemble with it."""
    weights: tuple[str, ...] = ()
    """A hash of the weights of each checkpoint."""
    version: str = nmt.__version__
    """The version of nmt."""
    part: tuple[int, int] | None = None
    """I and N for the I-th, from 1, of N parts of the shards, which this process translates; None for Ray."""


Task: TypeAlias = tuple[ShardJob, Shard]


def translate_shards(job: ShardJob, models: Sequence[str | None], input: Path, ray: str | None) -> None:
    """Writes for each shard that ``input`` stands for a file of the same name into the output folder: the lines that
    ``translate`` writes, or the records with the translation of their field in one more. The first model is that of the
    configuration, and the others are an ensemble with it. With ``context`` the lines or records of a shard are read
    with those before them, as ``translate`` does. ``ray`` is an address; see ``nmt.extras.cluster.cluster.connected``.
    Without it this process translates its part of the shards, while others may translate theirs.

    A shard whose translation is there is not translated again; see ``nmt.extras.cluster.manifest``. One that cannot be
    translated does not keep others from it. Raises InputError for it at the end, and at once for a fault of a machine.
    """
    shards, output = find_shards(input), job.output
    if ray is not None:
        check_installed()
    elif job.part is not None:
        number, count = job.part
        shards = shards[number - 1 :: count]
    check_wanted(shards, job.wanted.format, job.field)
    check_output(shards, output)
    if job.engine == "auto":
        log.info("engine: nmt's own: it is the same on all machines")
        job = replace(job, engine="nmt")
    if job.engine != "nmt" and job.precision == "auto":
        raise InputError(f"--precision auto: with many machines and --engine {job.engine} name one for all of them")
    checkpoints = [find_checkpoint(models[0], job.overrides), *(find_checkpoint(name) for name in models[1:])]
    experiment = experiments.load(run_of(checkpoints[0]) / experiments.FILE, job.overrides)
    job.wanted.check(experiment.search.n_best)
    log.info(f"model: {checkpoints[0]}")
    job = replace(
        job, output=output.absolute(), field=job.field or FIELD,
        weights=tuple(_hash(checkpoint / run_directory.MODEL) for checkpoint in checkpoints),
        checkpoints=tuple(checkpoint.resolve() for checkpoint in checkpoints),
    )  # fmt: skip
    make_folder(output)
    with ExitStack() as stack:
        if job.part is not None:  # the same part again waits for the first one
            stack.enter_context(locked(output / "part-{}-of-{}".format(*job.part)))
        # the parts of a job array begin one after the other, and translate at the same time
        lock = stack.enter_context(ExitStack())
        lock.enter_context(locked(job.output))
        manifest = ShardManifest.load(output)
        if manifest is None or not (manifest.has_any(output) or job.part):
            manifest = ShardManifest()
        if job.precision == "auto":  # the precision with which the folder was started, on any machine
            job = replace(job, precision=manifest.made_with.get("--precision", "auto"))
        if manifest.shards:
            manifest.check(_made_with(job, experiment), output)
        remaining = manifest.remaining(shards, output)
        remove_leftovers(output, shards)
        if there := len(shards) - len(remaining):
            log.info(f"{output}: {there} of {len(shards)} shards are translated already")
        if not remaining:
            return
        cluster = None if ray is None else stack.enter_context(connected(ray))
        job = _settled(cluster, job)
        manifest.begin(_made_with(job, experiment), remaining).save(output)
        if ray is None:
            lock.close()
        failed = _share_out(cluster, job, remaining, total=len(shards))
        remove_leftovers(output, shards)
    if failed:
        raise InputError(
            f"{len(failed)} of {len(shards)} shards could not be translated, {failed[0].path} the first; mend "
            "what the warnings say and run it again: what is done is not done again"
        )


def _share_out(cluster: Cluster | None, job: ShardJob, shards: Sequence[Shard], *, total: int) -> list[Shard]:
    """Has the shards translated and logs the progress. Returns the shards that could not be translated."""
    failed: list[Shard] = []
    lines = 0
    tasks = [(job, shard) for shard in shards]
    if cluster is None:
        results = _one_by_one(tasks)
    else:
        results = cluster.unordered(translate_one, tasks, gpus=int(job.device == "cuda"))
    progress = log.progress(total=total, description="translate", unit="shards", initial=total - len(shards))
    with closing(results), progress as bar:
        for (_, shard), found in results:
            if isinstance(found, NodeFault):
                raise found
            if isinstance(found, InputError):
                log.warning(f"{shard.path}: {found}")
                failed.append(shard)
                continue
            for warning in found.warnings:
                log.warning(f"{shard.path}: {warning}")
            if found.unsaid:
                log.warning(f"{shard.path}: {found.unsaid:,} more lines have such warnings")
            lines += found.lines
            bar.update(1)
    log.info(f"{job.output}: {len(shards) - len(failed):,} shards translated, {lines:,} lines")
    return failed


def _one_by_one(tasks: Iterable[Task]) -> Generator[tuple[Task, Tally | InputError], None, None]:
    """Translates shards in this process, like ``Cluster.unordered``."""
    for task in tasks:
        try:
            yield task, translate_one(task)
        except InputError as error:
            yield task, error


def translate_one(task: Task) -> Tally:
    """Translates a shard in this process, which keeps the model for the next one. Raises NodeFault for a fault of this
    machine and InputError for a fault of the shard."""
    job, shard = task
    translator = _translator(job)
    try:
        here = Shard.of(shard.path)
    except OSError as error:
        raise on_this_node(f"{shard.path}: cannot be read: {error.strerror}; {_SHARED}") from None
    if not (job.output / FILE).exists():
        raise on_this_node(f"{job.output}: is not the folder that it is elsewhere; {_SHARED}")
    if here != shard:
        raise InputError("has changed since this run began; run it again")
    try:
        options = ShardOptions(job.wanted, job.field or FIELD, translator.document() if job.context else None)
        return translate_shard(translator, options, shard, job.output / shard.name)
    except OSError as error:
        raise InputError(f"{error.filename or job.output}: {error.strerror or error}") from None


def settle(job: ShardJob) -> str:
    """Returns the precision of a job's model on this machine, which the job may leave open. Raises InputError."""
    translator = _translator(job)
    if job.context:
        translator.document()
    if job.wanted.alignment:
        translator.aligner.check_method("attention")
    return translator.trained.compute.precision


_SHARED = "all nodes need a file system that they share"

_here: tuple[ShardJob, str, Translator] | None = None
"""ShardJob, device and translator that this process has loaded, or None."""


def _translator(job: ShardJob) -> Translator:
    """Returns the translator of this process, which is loaded unless the last job was the same."""
    global _here
    device = _device(job)
    if _here is None or (_here[0], _here[1]) != (job, device):
        _here = None  # freed before another one is loaded
        _check_node(job)
        if job.part is None:
            log.set_verbosity(log.Verbosity.SILENT)
            torch.set_num_threads(1)
            os.environ["OMP_NUM_THREADS"] = "1"  # for other engines
        model, *others = map(str, job.checkpoints)
        translator = nmt.load_translator(
            model, device=device, precision=job.precision, overrides=job.overrides, ensemble=others, engine=job.engine
        )
        if job.engine == "nmt":  # the precision for the next shards, if this job has left it open
            job = replace(job, precision=translator.trained.compute.precision)
        _here = (job, device, translator)
    return _here[2]


def _check_node(job: ShardJob) -> None:
    """Raises NodeFault if this machine lacks a version or file of the machine that started the job."""
    if nmt.__version__ != job.version:
        raise on_this_node(f"has nmt {nmt.__version__}, not {job.version}: install the same on all")
    for path in (*job.checkpoints, job.output):
        if not path.is_dir():
            raise on_this_node(f"{path}: is not there; {_SHARED}")
    for checkpoint, weights in zip(job.checkpoints, job.weights, strict=True):
        if _hash(checkpoint / run_directory.MODEL) != weights:
            raise on_this_node(f"{checkpoint}: has other weights than where this was started; {_SHARED}")


def _settled(cluster: Cluster | None, job: ShardJob) -> ShardJob:
    """Returns the job with a precision that is the same everywhere and, with Ray, such a device."""
    if cluster is None:
        found = settle(job)
    else:
        kind = job.device.partition(":")[0]
        if kind not in ("auto", "cpu", "cuda"):
            raise InputError(f"--device {job.device}: is none of auto, cpu, cuda")
        if ":" in job.device:
            raise InputError(f"--device {job.device}: with --ray it is Ray that chooses which; use cuda")
        if kind == "cuda" and cluster.gpus < 1:
            raise InputError("--device cuda: no node of the cluster has a GPU; use --device cpu or auto")
        job = replace(job, device="cuda" if kind != "cpu" and cluster.gpus >= 1 else "cpu")
        if cluster.cores < 1:
            log.info("no node of the cluster has a core; waiting for one")
        found = cluster.call(settle, job, gpus=int(job.device == "cuda"))
    return replace(job, precision=found) if job.engine == "nmt" else job


def _device(job: ShardJob) -> str:
    """Returns the name of the job's device for this process, with Ray the GPU that it has given this call."""
    if job.device != "cuda" or job.part is not None:
        return job.device
    import ray

    (gpu,) = ray.get_runtime_context().get_accelerator_ids()["GPU"]
    return f"cuda:{place_of(gpu, os.environ.get('CUDA_VISIBLE_DEVICES'))}"


def place_of(gpu: str, visible: str | None) -> int:
    """Finds the number, from 0, among the visible GPUs of a GPU that Ray names as in CUDA_VISIBLE_DEVICES."""
    return visible.split(",").index(gpu) if visible else int(gpu)


def _made_with(job: ShardJob, experiment: Experiment) -> dict[str, Any]:
    """Collects everything that the translation of a shard is a function of. ``batch_tokens`` does not belong to it,
    because a translation does not depend on its batch."""
    run = run_of(job.checkpoints[0])
    lengths = run_directory.read_lengths(run)
    made_with: dict[str, Any] = {
        "model": list(job.weights),
        "vocabulary": run_directory.read_state(job.checkpoints[0]).get("vocabulary"),
        "nmt": job.version,
        "--engine": job.engine,
        "--precision": job.precision,
        "--format": job.wanted.format,
        "--alignment": job.wanted.alignment,
        "--field": job.field,
        "search": experiment.search.model_dump(mode="json", exclude={"batch_tokens"}),
        "alignment": experiment.alignment.model_dump(mode="json"),
        "lengths": None if lengths is None else list(astuple(lengths)),
    }
    if job.context:  # only with context, because folders of earlier versions do not have it
        made_with["--context"] = experiment.data.context
    if job.engine == "ctranslate2":
        made_with["exported"] = _hash(run / "exported" / "ctranslate2" / "model.bin")
    return made_with


def _hash(path: Path) -> str:
    with reading(path):
        return content_hash(path).hex()
