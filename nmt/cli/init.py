"""`nmt init`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import nmt
from nmt.cli.conflicts import Excludes
from nmt.cli.options import Device, with_options
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nmt.data.config import CorpusConfig
    from nmt.experiment import Experiment
    from nmt.workflows.init_config import CorpusParts, Measure, Speed

_file = partial(typer.Option, metavar="FILE", rich_help_panel="Input files")
_count = partial(typer.Option, metavar="N", min=0, rich_help_panel="Held-out pairs")


@dataclass(frozen=True)
class InitOptions:
    """The options of `nmt init`."""

    name: Annotated[str | None, typer.Argument(metavar="NAME")] = None
    """Name of the configuration NAME.yaml and of the run runs/NAME."""
    source: Annotated[Path | None, _file("--source", "-s")] = None
    """Source sentences, one per line."""
    target: Annotated[Path | None, _file("--target", "-t")] = None
    """Their translations."""
    valid_source: Annotated[Path | None, _file()] = None
    """Source sentences to validate on."""
    valid_target: Annotated[Path | None, _file()] = None
    """Their translations."""
    test_source: Annotated[Path | None, _file()] = None
    """Source sentences to test on."""
    test_target: Annotated[Path | None, _file()] = None
    """Their translations."""
    valid_pairs: Annotated[int | None, _count()] = None
    """Pairs to hold out; default: a twentieth of all, at most 1000. 0: none."""
    test_pairs: Annotated[int | None, _count()] = None
    """Pairs to hold out; default: a twentieth of all, at most 1000. 0: none."""
    start_from: Annotated[str | None, typer.Option("--from", metavar="MODEL")] = None
    """Fine-tune this run at a lower learning rate."""
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1)] = 1
    """Seed of the split and of the training."""
    minutes: Annotated[float | None, typer.Option(metavar="N", min=0.1)] = None
    """Train for as many updates as take about N minutes."""
    no_time: Annotated[bool, typer.Option("--no-time")] = False
    """Skip the measurement of the training time (10 s), as --quiet does."""
    device: Device = "auto"

    def parts(self) -> tuple[str, Callable[[], CorpusParts]]:
        """Returns the name, and the function that makes the corpora, which is called when all options are checked."""
        if self.name is None:
            raise InputError("NAME is missing; give one such as de-en")
        train = _corpus(self.source, self.target, "")
        if train is None:
            raise InputError("there is nothing to train on; give two files, nmt init NAME FILE FILE, or --tsv FILE")
        valid = _corpus(self.valid_source, self.valid_target, "valid-")
        test = _corpus(self.test_source, self.test_target, "test-")
        for part, corpus, count in (("valid", valid, self.valid_pairs), ("test", test, self.test_pairs)):
            if corpus is not None and count is not None:
                raise InputError(f"--{part}-pairs: --{part}-source or --{part}-tsv has such pairs; leave one out")
        from nmt.workflows.init_config import CorpusParts

        return self.name, partial(CorpusParts, train, valid, test, self.valid_pairs, self.test_pairs)


CONFLICTS = (
    Excludes("minutes", "no_time", "--minutes measures how long an update takes; leave out --no-time, or --minutes"),
)  # fmt: skip


@with_options(InitOptions, CONFLICTS)
def init(options: InitOptions) -> None:
    """Write a configuration for your own sentence pairs.

    Sizes depend on the number of pairs and the machine, and comments give the reasons. If you give no files to validate
    or test on, pairs are held out for this, and all parts are written to data/NAME. A NAME such as configs/mine writes
    configs/mine.yaml, for the run runs/mine. Nothing is overwritten."""
    minutes = options.minutes
    is_timed = minutes is not None or not (options.no_time or log.verbosity() == log.Verbosity.QUIET)
    name, parts = options.parts()
    cuda, measure = _machine(options.device, minutes=minutes, is_timed=is_timed)
    from nmt.workflows.init_config import init_config

    init_config(
        name, parts(), seed=options.seed, cuda=cuda, measure=measure, minutes=minutes, start_from=options.start_from
    )


def _corpus(source: Path | None, target: Path | None, prefix: str) -> CorpusConfig | None:
    if source is None and target is None:
        return None
    if source is None or target is None:
        raise InputError(f"--{prefix}source and --{prefix}target go together; give both")
    from nmt.config.file_path import expand
    from nmt.data.config import CorpusConfig

    for path in (source, target):
        try:
            changed = expand(path) != path
            str(path).encode()
        except ValueError:  # an unknown variable, or a value that is not text
            changed = True
        if changed:
            raise InputError(f"{path}: a configuration cannot name this file: its name is not plain text; rename it")
    return CorpusConfig(pairs=source) if source is target else CorpusConfig(source=source, target=target)


def _machine(device: str, *, minutes: float | None, is_timed: bool) -> tuple[bool, Measure | None]:
    """Returns True if the model will train on CUDA, and the function that measures its training if this machine can run
    it."""
    cuda = _has_cuda(device)
    if is_timed and cuda and not _has_cuda("auto"):
        if minutes is not None:
            raise InputError("--minutes: no CUDA device is here to measure on; leave it out, or use --device cpu")
        is_timed = False

    def measure(experiment: Experiment, pairs: Sequence[tuple[str, str]]) -> Speed:
        with gc_paused():
            from nmt.workflows.training_time import measure_training

            nmt.accelerate()
        return measure_training(experiment, pairs, device=device, threads=nmt.on_idle_cores)

    return cuda, measure if is_timed else None


def _has_cuda(device: str) -> bool:
    """Returns True if the model will train on CUDA. A named device need not exist on this machine."""
    if device == "auto":
        import torch

        return torch.cuda.is_available()
    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise InputError(f"--device {device}: is none of auto, cpu, cuda, cuda:N")
    return device != "cpu"
