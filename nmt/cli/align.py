"""`nmt align`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TextIO

import nmt
from nmt import plugins
from nmt.cli.align_options import CONFLICTS, FORMATS, ON_TERMINAL, VIEWED, AlignOptions
from nmt.cli.options import check_model, with_options
from nmt.config.yaml_source import Override
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from nmt.alignment import Magnitude
    from nmt.alignment.directions import Join
    from nmt.alignment.formats import AlignmentWriter
    from nmt.alignment.views import View
    from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, OpenWriter


@with_options(AlignOptions, CONFLICTS)
def align(options: AlignOptions) -> None:
    """Align the words of sentence pairs.

    Uses a model's attention or gradients, and prints one line for each pair. With --target it aligns given pairs
    (forced decoding), and without it the model's own translations. With --reverse two models align the pairs, one
    from each side, and their alignments are joined. With --links no model is needed: links from files are joined,
    converted, drawn or scored. With --compare it prints how far the methods of a model agree."""
    from nmt.workflows.align import AlignmentInputs

    assert options.source is not None
    inputs = AlignmentInputs(options.source, options.target, options.gold, options.gold_base or 0, options.text)
    outputs = _outputs(options)
    options.run(inputs, outputs)


def align_links(options: AlignOptions, inputs: AlignmentInputs, outputs: AlignmentOutputs) -> None:
    """Writes links from files."""
    from nmt.alignment.views import LINKS, parse_link_view
    from nmt.workflows import align_links as workflow

    assert options.links is not None
    views = [parse_link_view(text) for text in options.views or [LINKS]]
    _check_sides(views, options.reverse_links, "files; give --reverse-links as well")
    reverse = None
    if options.reverse_links is not None:
        file = workflow.LinkFile(options.reverse_links, options.links_base, options.target_first)
        reverse = workflow.ReverseLinks(file, _join(options))
    first = workflow.LinkFile(options.links, options.links_base, options.target_first and reverse is None)
    workflow.align_links(first, reverse, views, inputs, outputs)


def align_by_models(options: AlignOptions, inputs: AlignmentInputs, outputs: AlignmentOutputs) -> None:
    """Writes alignments by one model or two."""
    from nmt.alignment.views import BY_ATTENTION, View, parse_view

    magnitude: Magnitude = "signed" if options.signed else "raw" if options.raw else "relative"
    views = [parse_view(text) for text in options.views or []]
    views = views or [View(options.method or "attention", magnitude=magnitude)]
    chosen = options.views or options.heads or options.choose_heads or options.reverse
    if options.format_ == VIEWED and not chosen and views[0].method in BY_ATTENTION:
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

    reports = options.reports()
    writer = None
    if options.format_ is not None or options.output is not None or not reports:
        writer = _writer(options)
    format_ = FORMATS.get(options.format_ or "")
    is_folder = format_ is not None and format_.output == "folder"
    return AlignmentOutputs(options.output, writer, reports, pictures=is_folder)


def _writer(options: AlignOptions) -> OpenWriter:
    from nmt.workflows.align import file, lines

    on_terminal = options.output is None and options.base is None and sys.stdout.isatty()
    format_ = options.format_ or (ON_TERMINAL if on_terminal else None) or "pharaoh"
    if format_ in FORMATS:
        opened: OpenWriter = plugins.find("formats", format_, f"--format {format_}")
        return opened
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
