"""`nmt train`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import typer

import nmt
from nmt.cli.options import Config, TrainingOptions, machine_option, with_options
from nmt.core.memory import gc_paused

_resuming = partial(typer.Option, rich_help_panel="Resuming")


@dataclass(frozen=True)
class TrainOptions(TrainingOptions):
    """The options of `nmt train`."""

    config: Config
    processes: Annotated[int, machine_option(metavar="N", min=1)] = 1
    """Train with N processes on this machine. They share its cores; on CUDA, each uses one GPU."""
    skip_damaged: Annotated[bool, _resuming("--skip-damaged")] = False
    """If the newest checkpoint is damaged, rename it and continue from the newest complete one."""
    extend: Annotated[bool, _resuming("--extend")] = False
    """Continue with another training.stopping.updates, and with the learning-rate schedule for that number."""
    after: ClassVar[str] = "precision"

    def worker_arguments(self) -> list[str]:
        """The command line of the other processes on this machine."""
        choices = [part for override in self.overrides or [] for part in ("--set", override)]
        flags = ["--skip-damaged"] * self.skip_damaged + ["--extend"] * self.extend
        machine = ["--device", self.device, "--precision", self.precision, "--quiet"]
        return ["train", *choices, *machine, *flags, "--", str(self.config)]


@with_options(TrainOptions)
def train(options: TrainOptions) -> None:
    """Train a model, or resume its training.

    Prepares the corpus first if needed. If the run directory has a checkpoint, training continues from it. Ctrl-C
    saves and stops, and the same command continues.
    Processes on several machines: see docs/train.md.
    """
    from nmt import experiment

    settings = experiment.load(options.config, options.overrides or [], with_corpora=True)
    workers: AbstractContextManager[None] = nullcontext()
    if options.processes > 1:
        from nmt.training.launch import spawn_workers

        workers = spawn_workers(options.processes, options.worker_arguments())
    with workers:
        with gc_paused():
            from nmt.workflows import train as workflow

            nmt.accelerate()
        workflow.train(
            settings, device=options.device, precision=options.precision, skip_damaged=options.skip_damaged,
            extend=options.extend, threads=nmt.on_idle_cores,
        )  # fmt: skip
