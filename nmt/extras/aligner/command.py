"""`nmt aligner`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli import options
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused


def aligner(
    model: options.Model = None,
    source: Annotated[
        Path | None, typer.Option("--source", "-s", metavar="FILE", help="Sentences to learn from.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--target", "-t", metavar="FILE", help="Their translations.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write an aligner that needs no model to this file; without this option, learn for MODEL and write to "
            "its run.",
        ),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="FILE",
            help="With --output: go on from the aligner in this file, which learns from further pairs.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Seed of the alignment layer. Default: 1.")
    ] = None,
    to: options.To = None,
    device: options.Device = "auto",
    precision: options.UsePrecision = "auto",
    overrides: options.Overrides = None,
) -> None:
    """Learn to align words from sentence pairs.

    With --output, learns from --source and --target, without a translation model; with --continue as well, learns on
    from an aligner that was learnt before. Otherwise learns for a trained model, from its training pairs or the given
    ones, and also trains an alignment layer on top of the model, for nmt align --method trained."""
    if (source is None) != (target is None):
        raise InputError("--source and --target go together; give both")
    if output is not None:
        if source is None or target is None:
            raise InputError("--output needs text to learn from; give --source and --target as well")
        given = {"MODEL": model, "--to": to, "--seed": seed, "--set": overrides or None}
        given |= {"--device": None if device == "auto" else device}
        given |= {"--precision": None if precision == "auto" else precision}
        for option, value in given.items():
            if value is not None:
                raise InputError(f"--output: writes an aligner that needs no model; leave out {option}, or --output")
        from nmt.extras.aligner.learn_text import learn_from_text

        learn_from_text(source, target, output, earlier)
        return
    if earlier is not None:
        raise InputError("--continue goes on from an aligner that needs no model; give --output as well")
    changes = options.with_search(overrides, {"to": to})
    options.check_model(model, changes, needs_language=source is not None)
    with gc_paused():
        import nmt
        from nmt.extras.aligner.learn import learn_for_model

        nmt.accelerate()
    learn_for_model(
        model,
        changes,
        source=source,
        target=target,
        seed=1 if seed is None else seed,
        device=device,
        precision=precision,
    )
