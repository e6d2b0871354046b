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
from nmt.data.store import Store
from nmt.evaluation.bootstrap import compare, sentence_counts
from nmt.evaluation.by_length import by_length
from nmt.evaluation.translation import scores, warn_of_bleu
from nmt.experiment import Experiment
from nmt.extras.pages.draw import draw_by_length, draw_chart, draw_model, plot_alignment, save
from nmt.extras.pages.report import writer
from nmt.extras.pages.report.charts import length_charts, look_charts, snapshot_charts, training_charts
from nmt.extras.pages.report.model_summary import facts_of, origin_of, parts_of
from nmt.extras.pages.report.record import Run, Sample, Snapshots, TrainingCorpus, ValidationTranslations, looks
from nmt.training import metrics, run_directory
from nmt.translator.find_run import CONFIDENCE, find, find_checkpoint, is_checkpoint, newest, run_of

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
    to: str | None
    """Language of the translations; None if it has no name."""


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
    first, *others = (_run(name, each, overrides, options) for name, each in zip(names, read, strict=True))
    runs = [first, *(_compared(run, first) for run in others)]
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
    languages = dict.fromkeys(corpus.target_language for corpus in experiment.data.valid_corpora)
    to = experiment.search.to or next(iter(languages), None)
    prepared = None
    try:
        prepared = opened(experiment.data, run=folder)
    except InputError as error:
        imported = "it is imported, and has none" if experiment.data.imported is not None else error
        notes.append(f"nothing is told of its corpus, and nothing translated: {imported}")
    else:
        if translate and prepared.valid is None:
            notes.append("nothing is translated: its config has no data.valid")
        elif translate and len(languages) > 1:
            notes.append(f"its translations are those into {to}; --to chooses another language")
    return _Read(model, folder, experiment, checkpoint, measured, prepared, tuple(notes), to)


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


def _run(name: str, read: _Read, overrides: Sequence[str], options: RunReportOptions) -> Run:
    parts = parts_of(read.experiment, read.folder)
    corpus = translated = None
    if read.prepared is not None:
        lengths = read.prepared.train.source_lengths, read.prepared.train.target_lengths
        corpus = TrainingCorpus(read.prepared.report, *map(np.bincount, lengths))
        if options.translations and read.prepared.valid is not None:
            translated = _translated(name, read, read.prepared.valid, overrides, options)
    facts, snapshots = facts_of(read.experiment, parts, read.metrics), _snapshots(read.folder)
    origin = origin_of(read.experiment, read.folder, read.checkpoint)
    return Run(name, facts, read.metrics, parts, corpus, translated, snapshots, read.notes, origin)


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
    name: str, read: _Read, store: Store, overrides: Sequence[str], options: RunReportOptions
) -> ValidationTranslations:
    """Translates the validation set into one language."""
    import nmt
    from nmt.extras.trust import confidence

    translator = nmt.load_translator(
        str(read.checkpoint), device=options.device, precision=options.precision, overrides=overrides
    ).to(target_language=read.to)
    if (translator.trained.run / CONFIDENCE).exists():
        try:
            translator = confidence.with_confidence(translator, True)
        except InputError as error:
            log.warning(f"{name}: translations are shown without confidence: {error}")
    languages = [corpus.target_language for corpus in read.experiment.data.valid_corpora]
    rows = [row for row, corpus in enumerate(store.corpus.tolist()) if languages[corpus] == read.to]
    if not rows:
        raise InputError(f"--to {read.to}: no corpus of data.valid is into it; choose another or add --no-translations")
    all_sources = store.source_texts()
    sources, references = [all_sources[row] for row in rows], [store.text(row).target for row in rows]
    log.info(f"{name}: translating the {len(rows):,} sentences of its validation set")
    with log.progress(total=len(rows), description="translate", unit="line") as bar:
        found = translator.reporting(bar.update).translate(sources)
    hypotheses = [each.text for each in found]
    limit = translator.search.max_source_tokens
    fits = [bool(each.text) and not each.cut and each.longest <= limit for each in found]
    attention = None
    if translator.trained.experiment.model.head_names:
        rows = [row for row, fit in enumerate(fits) if fit]
        pairs = translator.aligner.piece_weights([sources[row] for row in rows], [hypotheses[row] for row in rows])
        attention = looks([each.weights_TS for each in pairs])
    warn_of_bleu(references)
    measured, lengths = scores(hypotheses, references), by_length(sources, hypotheses, references)
    texts = list(zip(sources, references, found, strict=True))
    samples = _samples(translator, texts, fits, options.samples or 20)
    return ValidationTranslations(sources, references, hypotheses, measured, lengths, attention, samples)


def evenly(count: int, number: int) -> list[int]:
    """Chooses ``number`` of ``count`` indices, or all, at equal distances from the first on."""
    number = min(count, number)
    return [place * count // number for place in range(number)]


def _samples(
    translator: Translator, texts: Sequence[tuple[str, str, Translation]], fits: Sequence[bool], number: int
) -> tuple[Sample, ...]:
    """Creates samples with alignments by attention, or by gradients if a model has no attention; without weights if a
    side is too long for that."""
    from nmt.alignment.formats import Alignment

    rows = evenly(len(texts), number)
    shown = [row for row in rows if fits[row]]
    sources, hypotheses = [texts[row][0] for row in shown], [texts[row][2].text for row in shown]
    found = translator.align(sources, hypotheses, method=translator.aligner.methods[0])
    aligned = dict(zip(shown, found, strict=True))
    samples = []
    for row in rows:
        source, reference, translation = texts[row]
        words = tuple(source.split()), tuple(translation.text.split())
        unaligned = Alignment(*words, (), np.zeros((len(words[1]), len(words[0]))))
        alignment = aligned.get(row, unaligned)
        samples.append(Sample(row + 1, source, reference, translation.text, alignment, translation.confidence))
    return tuple(samples)


def _compared(run: Run, first: Run) -> Run:
    """Compares a run with the first one by the paired bootstrap, if both have the same validation set."""
    one, other = first.translated, run.translated
    if one is None or other is None:
        return run
    if (one.sources, one.references) != (other.sources, other.references):
        note = f"its validation set is not that of {first.name}: their translations are not compared"
        return replace(run, notes=(*run.notes, note))
    comparison = compare(*(sentence_counts(each.hypotheses, each.references) for each in (one, other)))
    return replace(run, translated=replace(other, against_first=comparison))


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
