"""`nmt shortlist`."""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import Device, Model, Overrides, Quiet, UsePrecision, Verbose, check_model, set_verbosity
from nmt.core.memory import gc_paused


def shortlist(
    model: Model = None,
    size: Annotated[
        int, typer.Option("--size", metavar="N", min=1, help="Number of target subwords for each source subword.")
    ] = 100,
    frequent: Annotated[
        int, typer.Option("--frequent", metavar="N", min=0, help="Most frequent target subwords to add for every line.")
    ] = 1000,
    device: Device = "auto",
    precision: UsePrecision = "auto",
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find the target subwords that each source subword needs, for nmt translate --shortlist.

    Learns the translations of subwords from the training pairs, and prints how many translations of the validation
    corpus are the same with the list."""
    set_verbosity(quiet=quiet, verbose=verbose)
    check_model(model, overrides or [])
    with gc_paused():
        import nmt
        from nmt.extras.accel import make_shortlist

    nmt.accelerate()
    make_shortlist.shortlist(model, overrides or [], size=size, frequent=frequent, device=device, precision=precision)
