"""`nmt states`."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import Model, Overrides, To, check_model, with_search
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused

_file = partial(typer.Option, metavar="FILE", show_default=False)


def states(
    model: Model = None,
    source: Annotated[Path | None, _file("--source", "-s", help="Source sentences.")] = None,
    target: Annotated[Path | None, _file("--target", "-t", help="Their translations, for the decoder.")] = None,
    output: Annotated[Path | None, _file("--output", "-o", help="One picture, .svg or .png, or all as .html.")] = None,
    side: Annotated[
        Literal["encoder", "decoder"],
        typer.Option(help="States of the encoder, or of the decoder, which is forced to produce --target."),
    ] = "encoder",
    layer: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Layer, from 1 at the bottom; default: the top.")
    ] = None,
    direction: Annotated[
        Literal["forward", "backward"], typer.Option(help="Direction of a bidirectional encoder.")
    ] = "forward",
    curves: Annotated[
        bool,
        typer.Option("--curves", help="Draw sentences as curves through the principal components of their states."),
    ] = False,
    line: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Draw this line. Default: the first, or first ten.")
    ] = None,
    units: Annotated[int, typer.Option(metavar="N", min=1, help="Number of units to draw: those that vary most.")] = 24,
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
        from nmt.extras.pages.states.pictures import MOST, write_pictures
        from nmt.extras.pages.states.trace import chosen_layer, trace
        from nmt.translator.loading import load_trained
        from nmt.workflows.align import pairs

    refuse_overwriting(output, source, target, option="--output")
    first, most = (1, MOST if curves or ending == ".html" else 1) if line is None else (line, 1)
    document = DocumentContext()  # a model may read previous sentences
    in_document = ((*document.sentences([one]), other) for one, other in pairs(source, target))
    numbered = list(islice(enumerate(in_document, 1), first - 1, first - 1 + most))
    if not numbered:
        raise InputError(f"{source}: has no line {first}")
    trained = load_trained(model, changes, device="cpu", precision="float32")
    if chosen_layer(trained.model, side, layer, direction) is None and not curves:
        raise InputError(f"{trained.checkpoint}: its {side} is a Transformer, which has no gates; add --curves")
    found = {
        f"{number}: {pair[side == 'decoder']}": trace(
            trained, *pair, side=side, layer=layer, direction=direction, line=number
        )
        for number, pair in numbered
    }
    title = f"States of {trained.checkpoint}: {side}, {f'layer {layer}' if layer else 'top layer'}, {direction}"
    write_pictures(found, output, curves=curves, units=units, title=title)
    log.info(f"states: {output}")
