"""Measures how many minutes a training takes until its translations reach a score.

    python scripts/speedrun.py configs/multi30k-de-en-tiny.yaml --file scripts/speedruns.yaml --systems adamw,muon \\
        --metric bleu --target 39.5 --seeds 1,2,3

A system is a list of overrides in the file. One that has several keys, with spaces between them, is one change. Each
system is trained with each seed by ``nmt train``, in a new folder and from the raw corpus on. The minutes are those of
the whole command, with preparation and validations, on ``--processes`` cores, and the score is that of the last
validation. An override with ``{links}`` gets the word links of ``nmt align --learn``, whose minutes count as well.

A system has reached the target if the mean of its scores is above it with p < 0.01, by Student's t-test (one-sided).
``--leave-one-out`` also trains each system without each of its overrides. What has been trained in ``--output`` is not
trained again.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from measuring import plainly

from nmt import experiment
from nmt.core.errors import InputError
from nmt.core.files import reading

P_BAR = 0.01


class Run(NamedTuple):
    """A training from the raw corpus to the last validation."""

    score: float
    updates: int
    minutes: float
    core_minutes: float
    """Processor minutes of all processes."""


def train(config: Path, overrides: Sequence[str], folder: Path, options: argparse.Namespace, seed: int) -> Run:
    """Trains in a new folder, unless that has been done."""
    result = folder / "result.json"
    if result.is_file():
        return Run(**json.loads(result.read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    links = folder / "train.links"
    settings = [
        f"run={folder / 'run'}",
        f"seed={seed}",
        *(part.format(links=links) for each in overrides for part in each.split()),
    ]
    corpus = experiment.load(config).data.train_corpora[0]
    processor_s, started = _processor_seconds(), time.monotonic()
    if any("{links}" in each for each in overrides):
        folder.mkdir(parents=True)
        nmt("align", "--learn", "--source", corpus.source, "--target", corpus.target, "--output", links)
    nmt("train", config, "--processes", options.processes, *(part for each in settings for part in ("--set", each)))
    minutes, core_minutes = (time.monotonic() - started) / 60, (_processor_seconds() - processor_s) / 60
    lines = map(json.loads, (folder / "run" / "metrics.jsonl").read_text().splitlines())
    last = [line for line in lines if line["kind"] != "train"][-1]
    if options.metric not in last:
        raise InputError(f"--metric {options.metric}: a validation has {', '.join(last)}")
    run = Run(last[options.metric], last["update"], minutes, core_minutes)
    result.write_text(json.dumps(run._asdict()) + "\n")
    return run


def nmt(*arguments: object) -> None:
    """Runs a command of nmt; raises InputError if it fails."""
    if subprocess.run([sys.executable, "-m", "nmt", *map(str, arguments), "--quiet"], check=False).returncode:
        raise InputError(f"nmt {arguments[0]} has failed")


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def probability(scores: Sequence[float], target: float) -> float:
    """Returns p of a mean that is above the target only by chance.

    With n scores and t = sqrt(n) (mean - target) / deviation, p is the share of cos(u)^(n - 2) between atan(t / sqrt(n
    - 1)) and pi / 2: Student's distribution after the substitution x = sqrt(n - 1) tan(u).
    """
    count, deviation = len(scores), statistics.stdev(scores)
    t = math.sqrt(count) * (statistics.fmean(scores) - target) / max(deviation, 1e-9)
    u = np.linspace(math.atan(t / math.sqrt(count - 1)), math.pi / 2, 10_001)
    all_of_it = np.linspace(-math.pi / 2, math.pi / 2, 10_001)
    tail, whole = (np.trapezoid(np.cos(each) ** (count - 2), each) for each in (u, all_of_it))
    return float(tail / whole)


def systems(options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Yields the names and overrides of the systems."""
    with reading(f"--file {options.file}"):
        known: dict[str, list[str]] = yaml.safe_load(options.file.read_text())
    for name in options.systems.split(",") if options.systems else known:
        if name not in known:
            raise InputError(f"--systems {name}: {options.file} has {', '.join(known)}")
        yield name, known[name]
        if options.leave_one_out:
            for left in known[name]:
                key = left.split("=")[0].rpartition(".")[2]
                yield f"{name} without {key}", [each for each in known[name] if each != left]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--file", type=Path, required=True, help="YAML of systems")
    parser.add_argument("--systems", help="names, separated by commas; default: all")
    parser.add_argument("--metric", default="bleu", help="of the validation, such as chrf")
    parser.add_argument("--target", type=float)
    parser.add_argument("--seeds", type=_numbers, default="1,2,3", help="separated by commas")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--leave-one-out", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("runs/speedrun"))
    options = parser.parse_args()
    print(f"| system | {options.metric} | mean | p | updates | minutes | core minutes |\n|---|---|---|---|---|---|---|")
    for name, overrides in systems(options):
        folder = options.output / name
        runs = [train(options.config, overrides, folder / f"seed-{seed}", options, seed) for seed in options.seeds]
        scores = [run.score for run in runs]
        p = "–"
        if options.target is not None and len(scores) > 1:
            chance = probability(scores, options.target)
            p = f"{chance:.4f}, {'reached' if chance < P_BAR else 'not reached'}"
        print(
            f"| {name} | {', '.join(f'{score:.1f}' for score in scores)} | {statistics.fmean(scores):.2f} | {p} "
            f"| {runs[0].updates:,} | {statistics.fmean(run.minutes for run in runs):.1f} "
            f"| {statistics.fmean(run.core_minutes for run in runs):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    plainly(main)
