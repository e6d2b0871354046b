"""What a run or a checkpoint is, from its files alone: no weights are loaded, and PyTorch is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from math import prod
from pathlib import Path
from typing import Any

import safetensors

from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.core.files import read_json, refuse_special
from nmt.experiment import Experiment
from nmt.models.parts import count
from nmt.training import folders
from nmt.training import metrics as metrics_files
from nmt.translator.find_run import ALIGNER, EXPORTED, LAYER, SHORTLIST, find, find_checkpoint, is_checkpoint, run_of

LINKS = ("best", "latest", "averaged")
"""Of a run, to checkpoints."""


@dataclass(frozen=True)
class Part:
    """A part of the model."""

    name: str
    what: str
    parameters: int


@dataclass(frozen=True)
class Vocabulary:
    """The subwords of both sides, the special ones among them."""

    kind: str | None
    """How they are cut; None where they were taken from ``given``."""
    given: str | None
    joint: bool
    source: int
    target: int


@dataclass(frozen=True)
class Corpus:
    """What the model is trained on. Counts are those of nmt prepare; None where its report is gone."""

    files: tuple[str, ...]
    languages: tuple[str, str] | None
    """As the names of files end; None where they tell none."""
    pairs: int | None
    kept: int | None
    valid: int | None


@dataclass(frozen=True)
class Training:
    """How far a checkpoint was trained; None where it does not tell, as an average of others."""

    updates: int
    epoch: int | None
    target_tokens: int | None
    seconds: float | None
    precision: str | None
    written: str
    """When, by the file's time: ISO 8601, UTC."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of the run, and what its validation has shown."""

    name: str
    update: int
    links: tuple[str, ...]
    figures: dict[str, float]


@dataclass(frozen=True)
class Exported:
    """The model in another format, and the checkpoint that it was made of."""

    format: str
    checkpoint: str


@dataclass(frozen=True)
class Info:
    """All that there is to say of a run, and of the checkpoint of it that is used."""

    run: str
    checkpoint: str
    """The folder, by the name that was asked for."""
    name: str
    """What that is called itself."""
    corpus: Corpus
    vocabulary: Vocabulary
    parts: tuple[Part, ...]
    parameters: int
    format: str
    """Of the weights, as safetensors calls it."""
    bytes: int
    """Of the file of weights."""
    training: Training
    metric: str
    """What decides which checkpoint is best."""
    best: Checkpoint | None
    """The one that ``best`` leads to; None where nothing was validated."""
    checkpoints: tuple[Checkpoint, ...]
    """Oldest first, averages last."""
    files: tuple[str, ...]
    """What further commands have left in the run."""
    exported: tuple[Exported, ...]
    model: dict[str, Any]
    """The model section of the configuration."""


def inspect(model: str | None, overrides: Sequence[str] = ()) -> Info:
    """What a run or a checkpoint of it is. Raises InputError for what is missing or damaged."""
    named = find(model, overrides)
    folder = find_checkpoint(named, overrides)
    run = run_of(folder) if is_checkpoint(named) else named
    experiment = experiments.load(run / experiments.FILE, overrides)
    shapes, form = _header(folder / folders.MODEL)
    found = _checkpoints(run)
    counts = count({name: prod(shape) for name, shape in shapes.items()})
    vocabulary = _vocabulary(experiment, shapes, folder / folders.MODEL)
    return Info(
        run=str(run),
        checkpoint=str(folder),
        name=folder.resolve().name,
        corpus=_corpus(experiment, run),
        vocabulary=vocabulary,
        parts=tuple(Part(name, _what(name, experiment, vocabulary), numbers) for name, numbers in counts.items()),
        parameters=sum(counts.values()),
        format=form,
        bytes=(folder / folders.MODEL).stat().st_size,
        training=_training(folder),
        metric=experiment.training.validation.metric,
        best=next((each for each in found if "best" in each.links), None),
        checkpoints=found,
        files=tuple(name for name in (ALIGNER, LAYER, SHORTLIST) if (run / name).exists()),
        exported=_exported(run),
        model=experiment.model.model_dump(mode="json"),
    )


def _header(path: Path) -> tuple[dict[str, tuple[int, ...]], str]:
    """The shapes of the tensors in a file, and the format of its numbers."""
    try:
        refuse_special(path)
        with safetensors.safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
            forms = {each.get_dtype() for each in slices.values()}
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise folders.Damaged(path, error) from None
    return shapes, ", ".join(sorted(forms))


def _vocabulary(experiment: Experiment, shapes: dict[str, tuple[int, ...]], path: Path) -> Vocabulary:
    """Its sizes are those of the embedding that the encoder has, and of the output layer."""
    subwords = experiment.data.subwords
    try:
        source, target = shapes["encoder.embedding.table.weight"][0], shapes["output.bias_V"][0]
    except (KeyError, IndexError):
        raise InputError(f"{path}: holds no embedding or no output layer of ours: it is of another program") from None
    if subwords.model is not None:
        return Vocabulary(None, str(subwords.model), subwords.joint, source, target)
    return Vocabulary(subwords.kind, None, subwords.joint, source, target)


def _what(part: str, experiment: Experiment, vocabulary: Vocabulary) -> str:
    """A part of the model in words."""
    model = experiment.model
    sizes = {vocabulary.source, vocabulary.target}
    rows = f"{vocabulary.source:,}" if len(sizes) == 1 else f"{vocabulary.source:,} and {vocabulary.target:,}"
    shared = {"none": "", "output": ", the target's is the output layer too", "all": ", one for source, target, output"}
    weights = model.attention.weights.kind
    words = {
        "embedding": f"{rows} x {model.embedding.size}{shared[model.embedding.tie]}",
        "encoder": model.encoder.words,
        "attention": f"{model.attention.score.kind}, {weights}" + _heads(len(model.head_names)),
        "decoder": model.decoder.words,
        "output": f"{model.readout_size} to {vocabulary.target:,}",
    }
    return words.get(part, "")


def _heads(heads: int) -> str:
    return f", {heads} heads" if heads > 1 else ""


def _corpus(experiment: Experiment, run: Path) -> Corpus:
    data = experiment.data
    corpora = data.train_corpora
    pairs = kept = valid = None
    try:
        report = read_json((data.prepared or run / "prepared") / "report.json")
        pairs = sum(int(each["pairs"]) for each in report["corpora"])
        kept = sum(int(each["kept"]) for each in report["corpora"])
        valid = int(report["valid"]["pairs"]) if report.get("valid") else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, InputError):
        pass  # it may have been deleted once the model was trained
    return Corpus(tuple(each.name for each in corpora), corpora[0].languages, pairs, kept, valid)


def _training(folder: Path) -> Training:
    state = folders.read_state(folder)
    written = datetime.fromtimestamp((folder / folders.STATE).stat().st_mtime, timezone.utc).isoformat("T", "seconds")
    try:
        if "position" not in state:
            return Training(int(state.get("update", _update(folder))), None, None, None, None, written)
        place = state["position"]
        epoch = int(place["epoch"]) + (int(place["batch"]) > 0)
        spent = float(place["seconds"])
        return Training(int(place["update"]), epoch, int(place["tokens"]), spent, str(state["precision"]), written)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise folders.Damaged(folder / folders.STATE, error) from None


def _checkpoints(run: Path) -> tuple[Checkpoint, ...]:
    validated: dict[int, dict[str, float]] = {}
    try:
        for line in metrics_files.read(run):
            if line["kind"] == "valid":
                validated[line["update"]] = _figures(line)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{run / metrics_files.FILE}: is no file of metrics as nmt train writes it: {error}") from None
    leading = {name: (run / name).resolve() for name in LINKS if (run / name).exists()}
    figures = {folder: validated.get(_update(folder), {}) for folder in folders.steps(run)}
    for folder in folders.averages(run):
        measured = folders.read_state(folder).get("measured")
        figures[folder] = _figures(measured) if isinstance(measured, dict) else {}
    return tuple(
        Checkpoint(
            folder.name,
            _update(folder),
            tuple(name for name, place in leading.items() if place == folder.resolve()),
            shown,
        )
        for folder, shown in figures.items()
    )


def _update(folder: Path) -> int:
    """The update in a checkpoint's name: its own, or the newest of those that are averaged."""
    number = folder.resolve().name.split("-")[1:2]
    return int(number[0]) if number and number[0].isdecimal() else 0


def _figures(line: dict[str, Any]) -> dict[str, float]:
    skipped = ("kind", "update", "checkpoints")
    return {name: float(each) for name, each in line.items() if name not in skipped and each is not None}


def _exported(run: Path) -> tuple[Exported, ...]:
    found = []
    for about in sorted((run / EXPORTED).glob("*/nmt.json")):
        try:
            tree = read_json(about)
            found.append(Exported(about.parent.name, str(tree["checkpoint"])))
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{about}: damaged; delete its folder, and export again with: nmt export {run}") from None
    return tuple(found)
