"""`nmt states`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.options import Model, Overrides, To, check_model, with_options, with_search
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting, whole_file, writing
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from nmt.extras.pages.states.trace import Trace

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
<body class="states">
<h1>{title}</h1>
"""

_file = partial(typer.Option, metavar="FILE")
_number = partial(typer.Option, metavar="N", min=1)


@dataclass(frozen=True)
class StatesOptions:
    """The options of `nmt states`."""

    model: Model = None
    source: Annotated[Path | None, _file("--source", "-s")] = None
    """Source sentences."""
    target: Annotated[Path | None, _file("--target", "-t")] = None
    """Their translations, for the decoder."""
    output: Annotated[Path | None, _file("--output", "-o")] = None
    """One picture, .svg or .png, or all as .html."""
    side: Annotated[Literal["encoder", "decoder"], typer.Option()] = "encoder"
    """States of the encoder, or of the decoder, which is forced to produce --target."""
    layer: Annotated[int | None, _number()] = None
    """Layer, from 1 at the bottom; default: the top."""
    direction: Annotated[Literal["forward", "backward"], typer.Option()] = "forward"
    """Direction of a bidirectional encoder."""
    curves: Annotated[bool, typer.Option("--curves")] = False
    """Draw sentences as curves through the principal components of their states."""
    line: Annotated[int | None, _number()] = None
    """Draw this line. Default: the first, or first ten."""
    units: Annotated[int, _number()] = 24
    """Number of units to draw: those that vary most."""
    to: To = None
    overrides: Overrides = None


@with_options(StatesOptions)
def states(options: StatesOptions) -> None:
    """Draw the states of a model over sentences.

    Draws the gates and states of a recurrent layer as heatmaps, with a row for each unit and a column for each
    subword. With --curves, also for Transformers, it draws sentences as curves through their states.
    """
    source, output, side = options.source, options.output, options.side
    if source is None or output is None:
        raise InputError("--source and --output: give both, the sentences and the picture")
    if side == "decoder" and options.target is None:
        raise InputError("--side decoder: its states follow given translations; give --target as well")
    ending = output.suffix.lower()
    if ending not in (".svg", ".png", ".html"):
        raise InputError(f"--output {output}: name a file that ends in .svg, .png or .html")
    refuse_overwriting(output, source, options.target)
    changes = with_search(options.overrides, {"to": options.to})
    check_model(options.model, changes, needs_language=True)
    with gc_paused():
        from nmt.data.context import DocumentContext
        from nmt.extras.pages.draw import COLOURS
        from nmt.extras.pages.states.trace import chosen_layer, trace
        from nmt.translator.loading import load_trained
        from nmt.workflows.align import pairs

    first, most = options.line or 1, 1
    if options.line is None and (options.curves or ending == ".html"):
        most = len(COLOURS)
    document = DocumentContext()  # a model may read previous sentences
    in_document = ((*document.sentences([one]), other) for one, other in pairs(source, options.target))
    numbered = list(islice(enumerate(in_document, 1), first - 1, first - 1 + most))
    if not numbered:
        raise InputError(f"{source}: has no line {first}")
    trained = load_trained(options.model, changes, device="cpu", precision="float32")
    layer, direction = options.layer, options.direction
    if chosen_layer(trained.model, side, layer, direction) is None and not options.curves:
        raise InputError(f"{trained.checkpoint}: its {side} is a Transformer, which has no gates; add --curves")
    traced = partial(trace, trained, side=side, layer=layer, direction=direction)
    found = {f"{number}: {pair[side == 'decoder']}": traced(*pair, line=number) for number, pair in numbered}
    title = f"States of {trained.checkpoint}: {side}, {f'layer {layer}' if layer else 'top layer'}, {direction}"
    _write_pictures(found, output, curves=options.curves, units=options.units, title=title)
    log.info(f"states: {output}")


def _write_pictures(traces: Mapping[str, Trace], path: Path, *, curves: bool, units: int, title: str) -> None:
    """Writes the gates of a sentence, or all sentences as ``curves``, as PNG or SVG, by the ending of the name; or a
    page of HTML of all of them. Keys are the names of the sentences. Raises InputError if the file cannot be
    written."""
    from nmt.extras.pages.draw import draw_curves, draw_gates, save
    from nmt.extras.pages.states.trace import components
    from nmt.extras.pages.viewer import page_file

    format = path.suffix.lower()[1:]
    figures = {} if curves else {name: draw_gates(trace, units=units) for name, trace in traces.items()}
    if curves or (format == "html" and len(traces) > 1):
        figures["Principal components"] = draw_curves(traces, *components(traces.values()))
    data = _PAGE.format(title=escape(title), style=page_file("style.css")).encode()
    for heading, figure in figures.items():
        save(figure, stream := BytesIO(), "png" if format == "png" else "svg")
        picture = stream.getvalue()
        data += f"<h2>{escape(heading)}</h2>\n".encode("utf-8", "replace") + picture[picture.find(b"<svg") :]
    with writing(f"--output {path}"), whole_file(path) as partial:
        partial.write_bytes(data if format == "html" else picture)
