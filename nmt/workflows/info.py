"""A description of a run or a checkpoint, from its files only: no weights are loaded, and PyTorch is not needed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any

import safetensors

from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.core.files import read_json, refuse_special
from nmt.core.terminal_width import printable
from nmt.experiment import Experiment
from nmt.models.names import count
from nmt.models.rnn.readers_config import ContextSourceConfig
from nmt.training import metrics as metrics_files
from nmt.training import run_directory
from nmt.training.validation import deciding_metric
from nmt.translator.find_run import ALIGNER, EXPORTED, LAYER, find, find_checkpoint, is_checkpoint, run_of

LINKS = ("best", "latest", "averaged")
"""The links of a run to its checkpoints."""

BAR = 20
"""Number of characters of the bar for all parameters of a model."""

_MADE_BY = {ALIGNER: "of nmt aligner", LAYER: "of nmt aligner, for --method trained"}


@dataclass(frozen=True)
class ParameterCounts:
    """A part of the model."""

    name: str
    what: str
    parameters: int


@dataclass(frozen=True)
class Vocabulary:
    """The subwords of both sides, including the special ones."""

    kind: str | None
    """The kind of segmentation; None if the subwords were taken from ``given``."""
    given: str | None
    joint: bool
    source: int
    target: int


@dataclass(frozen=True)
class CorpusSummary:
    """The training corpus. Counts are those of nmt prepare; they are None if its report is missing."""

    files: tuple[str, ...]
    languages: tuple[str, str] | None
    """Languages of the first corpus, by ``languages`` or by the names of its files; None if neither gives them."""
    directions: tuple[tuple[str, str], ...]
    """Source and target languages of a model of several languages."""
    pairs: int | None
    kept: int | None
    valid: int | None


@dataclass(frozen=True)
class Training:
    """The training of a checkpoint so far; values are None if they are unknown, as for an average of checkpoints."""

    updates: int
    epoch: int | None
    target_tokens: int | None
    seconds: float | None
    precision: str | None
    written: str
    """Time of the file in ISO 8601, UTC."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of the run, and the figures of its validation."""

    name: str
    update: int
    links: tuple[str, ...]
    figures: dict[str, float]


@dataclass(frozen=True)
class Exported:
    """The model in another format, and the checkpoint that it was exported from."""

    format: str
    checkpoint: str


@dataclass(frozen=True)
class Info:
    """The facts about a run, and about the checkpoint of it that is used."""

    run: str
    checkpoint: str
    """Folder, by the user's name for it."""
    name: str
    """Name of the folder itself, if ``checkpoint`` is a link."""
    corpus: CorpusSummary
    vocabulary: Vocabulary
    parts: tuple[ParameterCounts, ...]
    parameters: int
    format: str
    """Number format of the weights, by its name in safetensors."""
    bytes: int
    """Size of the file of weights."""
    training: Training
    metric: str
    """Metric that chooses the best checkpoint."""
    best: Checkpoint | None
    """The checkpoint that ``best`` links to; None if nothing was validated."""
    checkpoints: tuple[Checkpoint, ...]
    """Checkpoints of the run, oldest first and averages last."""
    files: tuple[str, ...]
    """Files that other commands have written into the run."""
    exported: tuple[Exported, ...]
    model: dict[str, Any]
    """The model section of the configuration."""
    is_imported: bool


def inspect(model: str | None, overrides: Sequence[str] = ()) -> Info:
    """Describes a run or a checkpoint of it. Raises InputError if it is missing or damaged."""
    named = find(model, overrides)
    folder = find_checkpoint(named, overrides)
    run = run_of(folder) if is_checkpoint(named) else named
    experiment = experiments.load(run / experiments.FILE, overrides)
    shapes, form = _header(folder / run_directory.MODEL)
    found = _checkpoints(run)
    counts = count({name: prod(shape) for name, shape in shapes.items()})
    vocabulary = _vocabulary(experiment, shapes, folder / run_directory.MODEL)
    return Info(
        run=str(run),
        checkpoint=str(folder),
        name=folder.resolve().name,
        corpus=_corpus(experiment, run),
        vocabulary=vocabulary,
        parts=tuple(
            ParameterCounts(name, _what(name, experiment, vocabulary), numbers) for name, numbers in counts.items()
        ),
        parameters=sum(counts.values()),
        format=form,
        bytes=(folder / run_directory.MODEL).stat().st_size,
        training=_training(folder),
        metric=experiment.training.validation.metric,
        best=next((checkpoint for checkpoint in found if "best" in checkpoint.links), None),
        checkpoints=found,
        files=tuple(name for name in (ALIGNER, LAYER) if (run / name).exists()),
        exported=_exported(run),
        model=experiment.model.model_dump(mode="json"),
        is_imported=experiment.data.imported is not None,
    )


def _header(path: Path) -> tuple[dict[str, tuple[int, ...]], str]:
    """Reads the shapes of the tensors in a file, and the format of its numbers."""
    try:
        refuse_special(path)
        with safetensors.safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
            forms = {each.get_dtype() for each in slices.values()}
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise run_directory.Damaged(path, error) from None
    return shapes, ", ".join(sorted(forms))


def _vocabulary(experiment: Experiment, shapes: dict[str, tuple[int, ...]], path: Path) -> Vocabulary:
    """Describes the vocabulary, with sizes from the encoder's embedding and from the output layer."""
    subwords = experiment.data.subwords
    try:
        source, target = shapes["encoder.embedding.table.weight"][0], shapes["output.bias_V"][0]
    except (KeyError, IndexError):
        raise InputError(f"{path}: holds no embedding or no output layer of ours: it is of another program") from None
    kind, given = (subwords.kind, None) if subwords.model is None else (None, str(subwords.model))
    return Vocabulary(kind, given, subwords.joint, source, target)


def _what(part: str, experiment: Experiment, vocabulary: Vocabulary) -> str:
    """Describes a part of the model in words."""
    model = experiment.model
    sizes = {vocabulary.source, vocabulary.target}
    rows = f"{vocabulary.source:,}" if len(sizes) == 1 else f"{vocabulary.source:,} and {vocabulary.target:,}"
    shared = {"none": "", "output": ", the target's is the output layer too", "all": ", one for source, target, output"}
    heads = len(model.head_names)
    is_reader = isinstance(model.decoder, ContextSourceConfig)
    kind = model.decoder.kind if is_reader else f"{model.attention.score.kind}, {model.attention.weights.kind}"
    words = {
        "embedding": f"{rows} x {model.embedding.size}{shared[model.embedding.tie]}",
        "encoder": model.encoder.words,
        "attention": kind + (f", {heads} heads" if heads > 1 else ""),
        "decoder": model.decoder.words,
        "output": f"{model.readout_size} to {vocabulary.target:,}",
    }
    return words.get(part, "")


def _corpus(experiment: Experiment, run: Path) -> CorpusSummary:
    data = experiment.data
    corpora = data.train_corpora
    pairs = kept = valid = None
    # it may have been deleted once the model was trained
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, InputError):
        report = read_json((data.prepared or run / "prepared") / "report.json")
        pairs = sum(int(each["pairs"]) for each in report["corpora"])
        kept = sum(int(each["kept"]) for each in report["corpora"])
        valid = int(report["valid"]["pairs"]) if report.get("valid") else None
    directions = tuple(dict.fromkeys(each.languages for each in corpora if each.languages is not None))
    names = tuple(each.name for each in corpora)
    names = names if data.imported is None else (f"imported: {data.imported.name}",)
    return CorpusSummary(names, corpora[0].language_names if corpora else None, directions, pairs, kept, valid)


def _training(folder: Path) -> Training:
    state = run_directory.read_state(folder)
    written = datetime.fromtimestamp((folder / run_directory.STATE).stat().st_mtime, UTC).isoformat("T", "seconds")
    try:
        if "position" not in state:
            return Training(int(state.get("update", _update(folder))), None, None, None, None, written)
        place = state["position"]
        epoch, spent = int(place["epoch"]) + (int(place["batch"]) > 0), float(place["seconds"])
        return Training(int(place["update"]), epoch, int(place["tokens"]), spent, str(state["precision"]), written)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise run_directory.Damaged(folder / run_directory.STATE, error) from None


def _checkpoints(run: Path) -> tuple[Checkpoint, ...]:
    validated: dict[int, dict[str, float]] = {}
    try:
        for line in metrics_files.read(run):
            if line["kind"] == "valid":
                validated[line["update"]] = _figures(line)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{run / metrics_files.FILE}: is not a file of metrics of nmt train: {error}") from None
    leading = {name: (run / name).resolve() for name in LINKS if (run / name).exists()}
    figures = {folder: validated.get(_update(folder), {}) for folder in run_directory.checkpoint_paths(run)}
    for folder in run_directory.average_paths(run):
        measured = run_directory.read_state(folder).get("measured")
        figures[folder] = _figures(measured) if isinstance(measured, dict) else {}
    checkpoints = []
    for folder, shown in figures.items():
        links = tuple(name for name, place in leading.items() if place == folder.resolve())
        checkpoints.append(Checkpoint(folder.name, _update(folder), links, shown))
    return tuple(checkpoints)


def _update(folder: Path) -> int:
    """Reads the update in a checkpoint's name: its own, or the newest one of an average."""
    number = folder.resolve().name.split("-")[1:2]
    return int(number[0]) if number and number[0].isdecimal() else 0


def _figures(line: dict[str, Any]) -> dict[str, float]:
    skipped = ("kind", "update", "checkpoints")
    return {name: float(each) for name, each in line.items() if name not in skipped and each is not None}


def _exported(run: Path) -> tuple[Exported, ...]:
    found = []
    for about in sorted((run / EXPORTED).glob("*/nmt.json")):
        try:
            found.append(Exported(about.parent.name, str(read_json(about)["checkpoint"])))
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{about}: damaged; delete its folder, and export again with: nmt export {run}") from None
    return tuple(found)


# ------------------------------------------------------------------------------------------- as text for a terminal


def text(info: Info) -> str:
    """Formats a page: the run, the parts of the model, its training, the files, and the commands to continue with."""
    directions = info.corpus.directions or [info.corpus.languages or ()]
    languages = "".join(f", {' to '.join(direction)}" for direction in directions if direction)
    named = info.checkpoint.rpartition("/")[2]
    own = "" if named == info.name else f" ({named})"
    parts = (_model_lines, _fact_lines, _checkpoint_lines, _file_lines, _command_lines)
    sections = [[f"{info.run}{languages}: checkpoint {info.name}{own}"], *(lines(info) for lines in parts)]
    return "\n\n".join("\n".join(map(printable, section)) for section in sections if section)


def _model_lines(info: Info) -> list[str]:
    """Lists the parts in the order in which a sentence goes through them, each with its share of the parameters."""
    names = ["source", *(part.name for part in info.parts), "target"]
    rows = []
    for part in info.parts:
        bar = "█" * max(1, round(BAR * part.parameters / info.parameters))
        share = f"{part.parameters / info.parameters:.0%}"
        rows.append((part.name, part.what, f"{part.parameters:,}", share, bar))
    rows.append(("together", f"{info.format}, {info.bytes / 2**20:.1f} MiB", f"{info.parameters:,}", "", ""))
    return [f"model  {' → '.join(names)}", *_table(rows, right=(2, 3))]


def _fact_lines(info: Info) -> list[str]:
    corpus, vocabulary, training = info.corpus, info.vocabulary, info.training
    of = f" of {corpus.pairs:,}" if corpus.pairs != corpus.kept else ""
    pairs = "" if corpus.kept is None else f"{corpus.kept:,}{of} pairs: "
    valid = "" if corpus.valid is None else f"; valid {corpus.valid:,}"
    joint = "joint" if vocabulary.joint else f"and {vocabulary.target:,} of the target"
    minutes = None if training.seconds is None else training.seconds / 60
    trained = [
        f"{training.updates:,} updates",
        "" if training.epoch is None else f"in epoch {training.epoch}",
        "" if training.target_tokens is None else f"{training.target_tokens:,} target tokens",
        "" if minutes is None else f"{minutes:.1f} min" if minutes < 90 else f"{minutes / 60:.1f} h",
        training.precision or "",
        f"written {datetime.fromisoformat(training.written).astimezone():%Y-%m-%d %H:%M}",
    ]
    rows = [
        ("corpus", f"{pairs}{', '.join(corpus.files)}{valid}"),
        ("subwords", f"{vocabulary.source:,} {vocabulary.kind or f'of {vocabulary.given}'}, {joint}"),
        ("training", ", ".join(filter(None, trained))),
    ]
    if info.best is not None and info.best.figures:
        shown = ", ".join(f"{name} {value:.2f}" for name, value in info.best.figures.items())
        rows.append(("best", f"{shown} ({info.best.name}, by {deciding_metric(info.best.figures, info.metric)})"))
    return [f"{label:<9}{words}" for label, words in rows]


def _checkpoint_lines(info: Info) -> list[str]:
    if not info.checkpoints:
        return []
    names = list(dict.fromkeys(name for each in info.checkpoints for name in each.figures))
    rows = [("checkpoints", *names, "")]
    for each in info.checkpoints:
        shown = (f"{each.figures[name]:.2f}" if name in each.figures else "-" for name in names)
        rows.append((each.name, *shown, ", ".join(each.links)))
    return _table(rows, right=range(1, len(names) + 1), indent="")


def _file_lines(info: Info) -> list[str]:
    rows = [(name, _MADE_BY[name]) for name in info.files]
    for each in info.exported:
        of = "" if each.checkpoint == info.name else f", of {each.checkpoint}"
        use = "for nmt translate --engine ctranslate2" if each.format == "ctranslate2" else "of nmt export"
        rows.append((f"exported/{each.format}", f"{use}{of}"))
    return ["files", *_table(rows)] if rows else []


def _command_lines(info: Info) -> list[str]:
    linked = [each for link in ("best", "latest") for each in info.checkpoints if link in each.links]
    used = (linked or info.checkpoints[-1:])[:1]  # the checkpoint that is used for the run directory
    model = shlex.quote(info.run if info.name in [each.name for each in used] else info.checkpoint)
    run = shlex.quote(info.run)
    to = " --to LANGUAGE" if len({target for _, target in info.corpus.directions}) > 1 else ""
    align, is_taught = f"nmt align {model}{to} --source FILE --target FILE", {LAYER, ALIGNER} <= {*info.files}
    rows = [
        ("translate", f"nmt translate {model}{to} < FILE"),
        ("measure", f"nmt evaluate {model}{to} --source FILE --reference FILE"),
        ("align", f"{align} --method trained" if is_taught else align),
        ("fine-tune", f"nmt init NAME --from {run}")
        if info.is_imported
        else ("train on", f"nmt train {shlex.quote(f'{info.run}/config.yaml')}"),
        ("explain", f"nmt config {run} --explain KEY"),
    ]
    if not is_taught:
        rows.insert(3, ("align better", f"nmt aligner {model}" + " SOURCE TARGET" * info.is_imported))
    return ["go on with", *_table(rows)]


def _table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "  ") -> list[str]:
    """Aligns rows in columns; the columns ``right`` are right-aligned, for numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        columns = enumerate(zip(row, widths, strict=True))
        cells = (cell.rjust(width) if column in right else cell.ljust(width) for column, (cell, width) in columns)
        lines.append(indent + "  ".join(cells).rstrip())
    return lines
