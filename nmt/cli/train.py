"""`nmt train`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Annotated

import typer

import nmt
from nmt.cli.options import Config, Device, Overrides, Precision, machine_option
from nmt.core.memory import gc_paused

_resuming = partial(typer.Option, rich_help_panel="Resuming")

Processes = Annotated[
    int,
    machine_option(
        "--processes",
        metavar="N",
        min=1,
        help="Train with N processes on this machine. They share its cores; on CUDA, each uses one GPU.",
    ),
]


SkipDamaged = Annotated[
    bool,
    _resuming(
        "--skip-damaged",
        help="If the newest checkpoint is damaged, rename it and continue from the newest complete one.",
    ),
]


Extend = Annotated[
    bool,
    _resuming(
        "--extend",
        help="Continue with another training.stopping.updates, and with the learning-rate schedule for that number.",
    ),
]


def train(
    config: Config,
    device: Device = "auto",
    precision: Precision = "auto",
    overrides: Overrides = None,
    processes: Processes = 1,
    skip_damaged: SkipDamaged = False,
    extend: Extend = False,
) -> None:
    """Train a model, or resume its training.

    Prepares the corpus first if needed. If the run directory has a checkpoint, training continues from it. Ctrl-C
    saves and stops, and the same command continues.
    Processes on several machines: see docs/train.md.
    """
    from nmt import experiment

    settings = experiment.load(config, overrides or [], with_corpora=True)
    choices = [part for override in overrides or [] for part in ("--set", override)]
    options = [*choices, "--device", device, "--precision", precision, "--quiet"]
    options += ["--skip-damaged"] if skip_damaged else []
    options += ["--extend"] if extend else []
    others: AbstractContextManager[None] = nullcontext()
    if processes > 1:
        from nmt.training.launch import spawn_workers

        others = spawn_workers(processes, ["train", *options, "--", str(config)])
    with others:
        with gc_paused():
            from nmt.workflows import train as workflow

            nmt.accelerate()
        workflow.train(
            settings,
            device=device,
            precision=precision,
            skip_damaged=skip_damaged,
            extend=extend,
            threads=nmt.on_idle_cores,
        )
