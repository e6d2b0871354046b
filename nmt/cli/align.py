"""`nmt align`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, TextIO

import nmt
from nmt.cli.align_options import CONFLICTS, AlignOptions
from nmt.cli.options import check_model, with_options
from nmt.config.yaml_source import Override
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from nmt.alignment import Magnitude
    from nmt.alignment.directions import Join
    from nmt.alignment.formats import AlignmentWriter
    from nmt.alignment.views import View
    from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, OpenWriter, ReportOptions


@with_options(AlignOptions, CONFLICTS)
def align(options: AlignOptions) -> None:
    """Align the words of sentence pairs.

    Uses a model's attention or gradients, and prints one line for each pair. With --target it aligns given pairs
    (forced decoding), and without it the model's own translations. With --reverse two models align the pairs, one
    from each side, and their alignments are joined. With --links no model is needed: links from files are joined,
    converted, drawn or scored. With --lexicon, --terms or --suspects the links themselves are written only with
    --output or --format. With --compare it prints how far the methods of a model agree.
    """
    from nmt.workflows.align import AlignmentInputs

    assert options.source is not None
    inputs = AlignmentInputs(options.source, options.target, options.gold, options.gold_base or 0, options.text)
    outputs = _outputs(options)
    if options.aligner is not None or options.learn:
        from nmt.extras.aligner.align import align_learned

        align_learned(options.aligner, inputs, outputs, min_probability=options.min_probability)
    elif options.links is not None:
        _align_links(options, inputs, outputs)
    else:
        _align_by_models(options, inputs, outputs)


def _align_links(options: AlignOptions, inputs: AlignmentInputs, outputs: AlignmentOutputs) -> None:
    from nmt.alignment.views import LINKS, parse_link_view
    from nmt.workflows.align_links import LinkFile, ReverseLinks, align_links

    assert options.links is not None
    views = [parse_link_view(text) for text in options.views or [LINKS]]
    _check_sides(views, options.reverse_links, "files; give --reverse-links as well")
    reverse = None
    if options.reverse_links is not None:
        file = LinkFile(options.reverse_links, options.links_base, options.target_first)
        reverse = ReverseLinks(file, _join(options))
    first = LinkFile(options.links, options.links_base, options.target_first and reverse is None)
    align_links(first, reverse, views, inputs, outputs)


def _align_by_models(options: AlignOptions, inputs: AlignmentInputs, outputs: AlignmentOutputs) -> None:
    from nmt.alignment.views import BY_ATTENTION, View, parse_view

    magnitude: Magnitude = "signed" if options.signed else "raw" if options.raw else "relative"
    views = [parse_view(text) for text in options.views or []]
    views = views or [View(options.method or "attention", magnitude=magnitude)]
    chosen = options.views or options.heads or options.choose_heads or options.reverse
    if options.format_ == "html" and not chosen and views[0].method in BY_ATTENTION:
        views.append(replace(views[0], heads="*", each=True))
    _check_sides(views, options.reverse, "models; give --reverse as well")
    changes = options.changes
    if options.heads is not None:
        changes.append(Override.text("alignment.heads", "--heads", options.heads))
    check_model(options.model, changes, needs_language=True)
    with gc_paused():
        from nmt.workflows import align_models as workflow

    reverse = None
    if options.reverse is not None:
        reverse = workflow.Reverse(options.reverse, _join(options), options.reverse_to)
        try:
            check_model(options.reverse, reverse.changes(changes), needs_language=True)
        except InputError as error:
            raise InputError(*(message.replace("--to", "--reverse-to") for message in error.messages)) from None
    models = workflow.AlignmentModels(
        options.model,
        changes,
        reverse,
        options.device,
        options.precision,
        options.choose_heads,
        options.level or "word",
    )
    if options.compare:
        workflow.compare(models, inputs, json=options.json, load=nmt.load_translator)
    else:
        workflow.align(models, views, inputs, outputs, nmt.load_translator)


def _join(options: AlignOptions) -> Join:
    from nmt.alignment import directions

    return directions.join(options.symmetrize or directions.DEFAULT, options.threshold)


def _check_sides(views: list[View], reverse: object, remedy: str) -> None:
    for view in views:
        if view.side is not None and reverse is None:
            raise InputError(f"--view {view.name}: is of one of two {remedy}")


def _outputs(options: AlignOptions) -> AlignmentOutputs:
    from nmt.workflows.align import AlignmentOutputs

    reports: list[ReportOptions] = []
    if options.lexicon is not None:
        from nmt.extras.pages.corpus_reports import LexiconOptions

        examples = 3 if options.examples is None else options.examples
        reports.append(LexiconOptions(options.lexicon, options.min_count or 1, options.lowercase, examples))
    if options.terms is not None:
        from nmt.extras.pages.corpus_reports import TermsOptions

        reports.append(TermsOptions(options.terms, options.min_count or TermsOptions.min_count, options.lowercase))
    if options.suspects is not None:
        from nmt.extras.pages.corpus_filter import MIN_SCORE
        from nmt.extras.pages.corpus_reports import SuspectsOptions

        min_score = MIN_SCORE if options.min_score is None else options.min_score
        if not isfinite(min_score):
            raise InputError(f"--min-score {min_score}: give a finite number")
        reports.append(SuspectsOptions(options.suspects, min_score))
    writer = None
    if options.format_ is not None or options.output is not None or not reports:
        writer = _writer(options)
    outputs = AlignmentOutputs(options.output, writer, reports, pictures=options.format_ in ("png", "svg"))
    paths = [path.resolve() for path in outputs.files.values()]
    if len(set(paths)) < len(paths):
        raise InputError(
            "--output, --lexicon, --terms and --suspects: two of them are the same file; give each its own"
        )
    return outputs


def _writer(options: AlignOptions) -> OpenWriter:
    from nmt.workflows.align import file, lines

    on_terminal = options.output is None and options.base is None and sys.stdout.isatty()
    format_ = options.format_ or ("heatmap" if on_terminal else "pharaoh")
    if format_ == "html":
        from nmt.extras.pages.viewer import open_page

        return open_page
    if format_ == "png" or format_ == "svg":
        from nmt.extras.pages.plot import PictureWriter

        return file(lambda path, header: PictureWriter(path, header.gold, languages=header.languages, format=format_))
    if format_ == "heatmap":
        from nmt.extras.pages.heatmap import HeatmapWriter

        return lines(HeatmapWriter)
    from nmt.alignment.formats import LineWriter, NpzWriter, gold_line, jsonl_line, pharaoh_line
    from nmt.alignment.link_files import TsvWriter

    if format_ == "npz":
        return file(lambda path, _: NpzWriter(path))
    base = options.base or 0
    writers: dict[str, Callable[[TextIO], AlignmentWriter]] = {
        "pharaoh": lambda stream: LineWriter(stream, lambda pair: pharaoh_line(pair.links, base)),
        "gold": lambda stream: LineWriter(stream, lambda pair: gold_line(pair.as_gold(), base)),
        "tsv": partial(TsvWriter, base=base),
        "jsonl": lambda stream: LineWriter(stream, jsonl_line),
    }
    return lines(writers[format_])
