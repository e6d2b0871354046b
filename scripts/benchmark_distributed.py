"""Gain of several processes on a CPU: target tokens/s of two processes of one thread each (gloo), against one process
of two threads and against one of one thread.

    python scripts/benchmark_distributed.py configs/multi30k-de-en.yaml [--set key=value] [--precision float32]

Each figure is of ``nmt train`` itself, on the configuration's own data. The three are started in turn, ``--rounds``
times, because a machine's speed drifts; a start's speed is the median of its log lines of ``--updates`` updates, the
first of which warms up and does not count. What is reported is the median over the rounds, and of the ratios within a
round. Prints a JSON line for each figure, and a table on stderr. Other programs on the same cores make two threads that
wait for each other look far worse than they are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measuring import plainly, print_table, report

from nmt import experiment as experiments
from nmt.core import log
from nmt.core.device import compute
from nmt.training import metrics
from nmt.workflows.prepare import prepare

LOG_LINES = 6


@dataclass(frozen=True)
class Arrangement:
    """A number of processes, and of threads of each."""

    processes: int
    threads: int
    """Number of threads of each process."""

    @property
    def name(self) -> str:
        """Returns the name in the reported figures."""
        plural = "es" if self.processes > 1 else ""
        return f"{self.processes}_process{plural}_of_{self.threads}_thread{'s' if self.threads > 1 else ''}"


TWO, WIDE, NARROW = Arrangement(2, 1), Arrangement(1, 2), Arrangement(1, 1)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is started")
    parser.add_argument("--updates", type=int, default=5, help="updates of a log line")
    arguments = parser.parse_args()
    log.set_verbosity(log.Verbosity.QUIET)
    experiment = experiments.load(arguments.config, arguments.overrides)
    chosen = compute("cpu", arguments.precision)
    speeds: dict[Arrangement, list[float]] = {TWO: [], WIDE: [], NARROW: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared = experiment.data.prepared or folder / "prepared"
        prepare(experiment.data.model_copy(update={"prepared": prepared}), run=folder, seed=experiment.seed)
        settings = [
            *arguments.overrides,
            f"data.prepared={prepared}",
            "training.schedule=constant",
            f"training.stopping={{updates: {LOG_LINES * arguments.updates}}}",
            f"training.log_every={arguments.updates}",
            "training.validation={every: 1000000, metric: loss, bleu: false}",
            "training.average=null",
            "training.tensorboard=false",
        ]
        for number in range(arguments.rounds):
            for arrangement, measured in speeds.items():
                run = folder / f"{arrangement.name}-{number}"
                measured.append(speed(arguments.config, [*settings, f"run={run}"], arrangement, chosen.precision, run))
    for arrangement, measured in speeds.items():
        label = f"training_tokens_per_second_{arrangement.name}"
        report(label, statistics.median(measured), "target tokens/s", chosen)
    for other in (WIDE, NARROW):
        ratios = [two / one for two, one in zip(speeds[TWO], speeds[other], strict=True)]
        report(f"{TWO.name}_over_{other.name}", statistics.median(ratios), "", chosen)
    print_table()


def speed(config: Path, settings: Sequence[str], arrangement: Arrangement, precision: str, run: Path) -> float:
    """Measures the target tokens per second of one start of ``nmt train``."""
    options = ["--device", "cpu", "--precision", precision, "--processes", str(arrangement.processes), "--quiet"]
    given = [part for each in settings for part in ("--set", each)]
    subprocess.run(
        [sys.executable, "-m", "nmt", "train", str(config), *options, *given],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": str(arrangement.threads)},
    )
    lines = [float(line["tokens_per_second"]) for line in metrics.read(run) if line["kind"] == "train"]
    return statistics.median(lines[1:])


if __name__ == "__main__":
    plainly(main)
