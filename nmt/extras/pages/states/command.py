"""`nmt states`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from html import escape
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.options import Model, Overrides, To, check_model, with_search
from nmt.core.errors import InputError
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

_CURVES = "Draw sentences as curves through the principal components of their states."
_file = partial(typer.Option, metavar="FILE", show_default=False)
_number = partial(typer.Option, metavar="N", min=1)


def states(
    model: Model = None,
    source: Annotated[Path | None, _file("--source", "-s", help="Source sentences.")] = None,
    target: Annotated[Path | None, _file("--target", "-t", help="Their translations, for the decoder.")] = None,
    output: Annotated[Path | None, _file("--output", "-o", help="One picture, .svg or .png, or all as .html.")] = None,
    side: Annotated[
        Literal["encoder", "decoder"],
        typer.Option(help="States of the encoder, or of the decoder, which is forced to produce --target."),
    ] = "encoder",
    layer: Annotated[int | None, _number(help="Layer, from 1 at the bottom; default: the top.")] = None,
    direction: Annotated[
        Literal["forward", "backward"], typer.Option(help="Direction of a bidirectional encoder.")
    ] = "forward",
    curves: Annotated[bool, typer.Option("--curves", help=_CURVES)] = False,
    line: Annotated[int | None, _number(help="Draw this line. Default: the first, or first ten.")] = None,
    units: Annotated[int, _number(help="Number of units to draw: those that vary most.")] = 24,
    to: To = None,
    overrides: Overrides = None,
) -> None:
    """Draw the states of a model over sentences.

    Draws the gates and states of a recurrent layer as heatmaps, with a row for each unit and a column for each
    subword. With --curves, also for Transformers, it draws sentences as curves through their states.
    """
    if source is None or output is None:
        raise InputError("--source and --output: give both, the sentences and the picture")
    if side == "decoder" and target is None:
        raise InputError("--side decoder: its states follow given translations; give --target as well")
    ending = output.suffix.lower()
    if ending not in (".svg", ".png", ".html"):
        raise InputError(f"--output {output}: name a file that ends in .svg, .png or .html")
    changes = with_search(overrides, {"to": to})
    check_model(model, changes, needs_language=True)
    with gc_paused():
        from nmt.core import log
        from nmt.core.files import refuse_overwriting
        from nmt.data.context import DocumentContext
        from nmt.extras.pages.draw import COLOURS
        from nmt.extras.pages.states.trace import chosen_layer, trace
        from nmt.translator.loading import load_trained
        from nmt.workflows.align import pairs

    refuse_overwriting(output, source, target, option="--output")
    first, most = (1, len(COLOURS) if curves or ending == ".html" else 1) if line is None else (line, 1)
    document = DocumentContext()  # a model may read previous sentences
    in_document = ((*document.sentences([one]), other) for one, other in pairs(source, target))
    numbered = list(islice(enumerate(in_document, 1), first - 1, first - 1 + most))
    if not numbered:
        raise InputError(f"{source}: has no line {first}")
    trained = load_trained(model, changes, device="cpu", precision="float32")
    if chosen_layer(trained.model, side, layer, direction) is None and not curves:
        raise InputError(f"{trained.checkpoint}: its {side} is a Transformer, which has no gates; add --curves")
    traced = partial(trace, trained, side=side, layer=layer, direction=direction)
    found = {f"{number}: {pair[side == 'decoder']}": traced(*pair, line=number) for number, pair in numbered}
    title = f"States of {trained.checkpoint}: {side}, {f'layer {layer}' if layer else 'top layer'}, {direction}"
    _write_pictures(found, output, curves=curves, units=units, title=title)
    log.info(f"states: {output}")


def _write_pictures(traces: Mapping[str, Trace], path: Path, *, curves: bool, units: int, title: str) -> None:
    """Writes the gates of a sentence, or all sentences as ``curves``, as PNG or SVG, by the ending of the name; or a
    page of HTML of all of them. Keys are the names of the sentences. Raises InputError if the file cannot be
    written."""
    from nmt.core.files import whole_file, writing
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
