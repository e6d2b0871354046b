"""Creation of a report of runs: reads their files, lets their models translate, and writes the page and its
pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt import experiment as experiments
from nmt.cli.options import with_search
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import make_folder, refuse_overwriting, refuse_unwritable, whole_file, writing
from nmt.data.prepared import PreparedData, opened
from nmt.evaluation.bootstrap import compare, sentence_counts
from nmt.evaluation.by_length import by_length
from nmt.evaluation.translation import scores, warn_of_bleu
from nmt.experiment import Experiment
from nmt.extras.pages.draw import draw_by_length, draw_chart, draw_model, plot_alignment, save
from nmt.extras.pages.report import writer
from nmt.extras.pages.report.attention import looks
from nmt.extras.pages.report.charts import length_charts, look_charts, snapshot_charts, training_charts
from nmt.extras.pages.report.model_summary import facts_of, origin_of, parts_of
from nmt.extras.pages.report.record import Run, Sample, Snapshots, TrainingCorpus, ValidationTranslations
from nmt.training import metrics, run_directory
from nmt.translator.find_run import find, find_checkpoint, is_checkpoint, newest, run_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.extras.pages.report.command import RunReportOptions
    from nmt.translator.translation import Translation
    from nmt.translator.translator import Translator

FILE = "report.html"
"""The page in a run directory."""


@dataclass(frozen=True)
class _Read:
    """The contents of a run's directory."""

    model: str | None
    """The user's name for it."""
    folder: Path
    experiment: Experiment
    checkpoint: Path | None
    metrics: tuple[Mapping[str, Any], ...]
    prepared: PreparedData | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Validated:
    """A run's validation set and its model's translations."""

    sources: list[str]
    references: list[str]
    hypotheses: list[str]


def report(options: RunReportOptions) -> None:
    """Writes one HTML file that shows runs side by side, as `nmt report`.

    Raises InputError for a run that does not exist, has no metrics or, with translations, no model, and for files that
    cannot be written.
    """
    models, output, pictures = options.runs or [], options.output, options.pictures
    searching = {"beam": options.beam, "batch_tokens": options.batch_tokens, "to": options.to}
    overrides = with_search(options.overrides, searching)
    read = [_read(model, overrides, translate=options.translations) for model in models or (None,)]
    names = _names(read)
    if output is None:  # not in the folder into which an archive is unpacked
        output = Path(models[0]).with_suffix(".html") if str(read[0].model).endswith(".zip") else read[0].folder / FILE
    refuse_unwritable(output)
    for each in read:
        refuse_overwriting(output, each.folder / experiments.FILE, each.folder / metrics.FILE)
    if pictures is not None:
        make_folder(pictures, option="--pictures")
    runs: list[Run] = []
    first: _Validated | None = None
    for name, each in zip(names, read, strict=True):
        run, validated = _run(name, each, overrides, options)
        if first is not None and validated is not None:
            run = _compared(run, runs[0], first, validated)
        first = first or (validated if not runs else None)
        runs.append(run)
    for run in runs:
        for note in run.notes:
            log.warning(f"{run.name}: {note}")
    html = writer.page(runs)
    with writing(f"--output {output}"), whole_file(output) as partial:
        # a lone surrogate, which UTF-8 does not have, becomes a question mark
        partial.write_bytes(html.encode("utf-8", errors="replace"))
    log.info(f"report: {output}")
    if pictures is not None:
        _draw_all(runs, pictures)
        log.info(f"pictures: {pictures}")


# ------------------------------------------------------------------------------------------------- what a run has left


def _read(model: str | None, overrides: Sequence[str], *, translate: bool) -> _Read:
    found = find(model, overrides)
    folder = run_of(found) if is_checkpoint(found) else found
    experiment = experiments.load(folder / experiments.FILE, overrides)
    measured = _metrics(folder, is_trained=newest(folder) is not None)
    notes = [] if measured else [f"there are no curves: {metrics.FILE} is missing, as of a model that was handed on"]
    checkpoint = find_checkpoint(model, overrides) if translate or newest(folder) is not None else None
    prepared = None
    try:
        prepared = opened(experiment.data, run=folder)
    except InputError as error:
        imported = "it is imported, and has none" if experiment.data.imported is not None else error
        notes.append(f"nothing is told of its corpus, and nothing translated: {imported}")
    else:
        if prepared.valid is None and translate:
            notes.append("nothing is translated: its config has no data.valid")
    return _Read(model, folder, experiment, checkpoint, measured, prepared, tuple(notes))


def _metrics(folder: Path, *, is_trained: bool) -> tuple[Mapping[str, Any], ...]:
    path = folder / metrics.FILE
    try:
        found = metrics.read(folder)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(found, 1):
        if not (isinstance(line, dict) and isinstance(line.get("kind"), str) and isinstance(line.get("update"), int)):
            raise InputError(f"{path}:{number}: is not a measurement; restore the file, or delete this line")
    if not found and not is_trained:
        raise InputError(f"{folder}: there are no measurements in {metrics.FILE}: nothing has been trained here yet")
    return tuple(found)


def _names(read: Sequence[_Read]) -> list[str]:
    """Lists the names of the run directories, or the user's names for them if two are equal. Raises InputError for a
    run that is named twice."""
    places = [(each.folder.resolve(), each.checkpoint and each.checkpoint.resolve()) for each in read]
    for number, each in enumerate(read):
        if places[number] in places[:number]:
            raise InputError(f"{each.model}: is named twice; name each run once")
    names = [folder.name for folder, _ in places]
    return names if len(set(names)) == len(names) else [str(each.model) for each in read]


# ------------------------------------------------------------------------------------------------- what is made of it


def _run(name: str, read: _Read, overrides: Sequence[str], options: RunReportOptions) -> tuple[Run, _Validated | None]:
    parts = parts_of(read.experiment, read.folder)
    corpus = None
    if read.prepared is not None:
        lengths = read.prepared.train.source_lengths, read.prepared.train.target_lengths
        corpus = TrainingCorpus(read.prepared.report, *map(np.bincount, lengths))
    run = Run(
        name=name,
        facts=facts_of(read.experiment, parts, read.metrics),
        metrics=read.metrics,
        parts=parts,
        corpus=corpus,
        translated=None,
        snapshots=_snapshots(read.folder),
        notes=read.notes,
        origin=origin_of(read.experiment, read.folder, read.checkpoint),
    )
    if not options.translations or read.prepared is None or read.prepared.valid is None:
        return run, None
    import nmt

    store = read.prepared.valid
    translator = nmt.load_translator(
        str(read.checkpoint), device=options.device, precision=options.precision, overrides=overrides
    )
    languages = [corpus.target_language for corpus in read.experiment.data.valid_corpora]
    to = read.experiment.search.to or languages[0]
    translator = translator.to(target_language=to)
    rows = [row for row, corpus in enumerate(store.corpus.tolist()) if languages[corpus] == to]
    if not rows:
        raise InputError(f"--to {to}: no corpus of data.valid is into it; choose another, or add --no-translations")
    if len(set(languages)) > 1:
        run = replace(run, notes=(*run.notes, f"its translations are those into {to}; --to chooses another language"))
    all_sources = store.source_texts()
    sources, references = [all_sources[row] for row in rows], [store.text(row).target for row in rows]
    log.info(f"{name}: translating the {len(rows):,} sentences of its validation set")
    with log.progress(total=len(rows), description="translate", unit="line") as bar:
        found = translator.reporting(bar.update).translate(sources)
    validated = _Validated(sources, references, [each.text for each in found])
    return replace(run, translated=_translated(translator, validated, found, options.samples or 20)), validated


def _snapshots(folder: Path) -> Snapshots | None:
    """Reads the snapshots of training; returns None if there are none. Pairs that are not in all of them, as after a
    change of the option, are left out."""
    from nmt.alignment.formats import read_jsonl

    noted = [(update, path, list(read_jsonl(path))) for update, path in run_directory.snapshot_paths(folder)]
    count = min((len(found) for *_, found in noted), default=0)
    if count == 0:
        return None
    first = noted[0][2]
    for _, path, found in noted:
        for one, other in zip(first[:count], found, strict=False):
            if (one.source_tokens, one.target_tokens) != (other.source_tokens, other.target_tokens):
                raise InputError(f"{path}: is of other sentences than the first snapshot; delete the older ones")
            if other.level != "subword":
                raise InputError(f"{path}: is between words, not between subwords; delete it")
    return Snapshots(
        updates=tuple(update for update, *_ in noted),
        pairs=tuple(tuple(found[place] for *_, found in noted) for place in range(count)),
        looks=tuple(looks([each.weights_TS for each in found[:count]]) for *_, found in noted),
    )


def _translated(
    translator: Translator, validated: _Validated, found: Sequence[Translation], samples: int
) -> ValidationTranslations:
    sources, references, hypotheses = validated.sources, validated.references, validated.hypotheses
    attention = None
    limit = translator.search.max_source_tokens
    fits = [bool(each.text) and not each.cut and each.longest <= limit for each in found]
    if translator.trained.experiment.model.head_names:
        rows = [row for row, fit in enumerate(fits) if fit]
        pairs = translator.aligner.piece_weights([sources[row] for row in rows], [hypotheses[row] for row in rows])
        attention = looks([each.weights_TS for each in pairs])
    warn_of_bleu(references)
    return ValidationTranslations(
        sentences=len(sources),
        scores=scores(hypotheses, references),
        lengths=by_length(sources, hypotheses, references),
        looks=attention,
        samples=_samples(translator, validated, fits, evenly(len(sources), samples)),
        against_first=None,
    )


def evenly(count: int, number: int) -> list[int]:
    """Chooses ``number`` of ``count`` indices, or all, at equal distances from the first on."""
    number = min(count, number)
    return [place * count // number for place in range(number)]


def _samples(
    translator: Translator, validated: _Validated, fits: Sequence[bool], rows: Sequence[int]
) -> tuple[Sample, ...]:
    """Creates samples with alignments by attention, or by gradients if a model has no attention; without weights if a
    side is too long for that."""
    from nmt.alignment.formats import Alignment

    shown = [row for row in rows if fits[row]]
    sources, hypotheses = validated.sources, validated.hypotheses
    method = translator.aligner.methods[0]
    aligned = iter(translator.align([sources[row] for row in shown], [hypotheses[row] for row in shown], method=method))
    found: list[Sample] = []
    for row in rows:
        words = tuple(sources[row].split()), tuple(hypotheses[row].split())
        unaligned = Alignment(*words, (), np.zeros((len(words[1]), len(words[0]))))
        alignment = next(aligned) if fits[row] else unaligned
        found.append(Sample(row + 1, sources[row], validated.references[row], hypotheses[row], alignment))
    return tuple(found)


def _compared(run: Run, first: Run, validated_first: _Validated, validated: _Validated) -> Run:
    """Compares each run with the first one by the paired bootstrap, if both have the same validation set."""
    same = (validated_first.sources, validated_first.references) == (validated.sources, validated.references)
    if not same or run.translated is None:
        note = f"its validation set is not that of {first.name}: their translations are not compared"
        return replace(run, notes=(*run.notes, note))
    one, other = (sentence_counts(each.hypotheses, each.references) for each in (validated_first, validated))
    return replace(run, translated=replace(run.translated, against_first=compare(one, other)))


# ------------------------------------------------------------------------------------------------- pictures


def _draw_all(runs: Sequence[Run], folder: Path) -> None:
    """Draws every picture of the page."""
    names = [run.name for run in runs]
    for chart in (*training_charts(runs), *length_charts(runs), *look_charts(runs), *snapshot_charts(runs)):
        save_picture(draw_chart(chart, names), folder, chart.key)
    series = {run.name: run.translated.lengths for run in runs if run.translated is not None}
    if any(series.values()):
        save_picture(draw_by_length(series), folder, "by-length")
    for place, run in enumerate(runs, 1):
        of = f"-{place}" if len(runs) > 1 else ""
        save_picture(draw_model(run.parts), folder, f"model{of}")
        sides = run.facts.get("languages", "").split(" → ")
        for sample in () if run.translated is None else run.translated.samples:
            figure = plot_alignment(sample.alignment, languages=sides if len(sides) == 2 else None)
            save_picture(figure, folder, f"attention{of}-{sample.number:06}")


def save_picture(figure: Figure, folder: Path, name: str) -> None:
    """Writes a figure as SVG and as PNG. Raises InputError if it cannot be written."""
    for format in ("svg", "png"):
        path = folder / f"{name}.{format}"
        with writing(f"--pictures {path}"), whole_file(path) as partial:
            save(figure, partial, format)
