"""`nmt train`."""

from __future__ import annotations

from nmt.cli.options import Config, Device, Overrides, Precision, Quiet, Verbose, set_verbosity


def train(
    config: Config,
    device: Device = "auto",
    precision: Precision = "auto",
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a model, or go on training it.

    Prepares the corpus first if needed. Where the run directory that the configuration names holds a checkpoint,
    training goes on from it.
    Ctrl-C saves and stops; the same command goes on from there.
    Several processes, on one machine or many: torchrun --nproc-per-node 2 -m nmt train CONFIG.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    from nmt import experiment

    settings = experiment.load(config, overrides or [])

    from nmt.workflows import train as workflow

    workflow.train(settings, device=device, precision=precision)
