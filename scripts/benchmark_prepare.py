"""How fast `prepare` is, and whether its memory grows with the corpus.

    python scripts/benchmark_prepare.py                                   # data/de-en, 500,000 and 5,000,000 pairs
    python scripts/benchmark_prepare.py --pairs 100000 1000000 --source a.de.gz --target a.en.gz
    python scripts/benchmark_prepare.py --duplicates                      # with the duplicates filter on
    python scripts/benchmark_prepare.py --duplicates --joined             # pairs of text that differ, of two pairs each
    python scripts/benchmark_prepare.py --joined --epoch                  # and opened and batched as training does

The corpus is repeated to the sizes asked for, in a temporary folder, and prepared by a process of its own. Every figure
is a line of JSON on stdout. Memory is the peak resident set of that process with its children, as the kernel accounts
it (VmHWM for the process, sampled every 50 ms for the sum), so it includes pages of mapped files. With ``--epoch``
another process opens the result and makes the batches of two epochs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import family, size_of

from nmt.data.corpus import read_lines

_BLOCK = 1 << 16
ROOT = Path(__file__).resolve().parent.parent

# What the measured process runs: its arguments are the config as JSON, the run folder, and where to write the seconds.
PREPARE = """
import json, sys, time
from pathlib import Path
from nmt.data.config import DataConfig
from nmt.workflows.prepare import prepare
config = DataConfig.model_validate_json(sys.argv[1])
begin = time.perf_counter()
prepared = prepare(config, run=Path(sys.argv[2]), seed=1)
Path(sys.argv[3]).write_text(json.dumps({"seconds": time.perf_counter() - begin, "kept": len(prepared.train)}))
"""


# The same for training: its arguments are the run folder and where to write the seconds.
EPOCH = """
import json, sys, time
from pathlib import Path
from nmt.data.batching import BatchingConfig, epoch_batches
from nmt.data.prepared import open_folder
begin = time.perf_counter()
train = open_folder(Path(sys.argv[1]) / "prepared", "", reused=True).train
for epoch in range(2):
    batches = epoch_batches(train, BatchingConfig(), seed=1, epoch=epoch)
    del batches
Path(sys.argv[2]).write_text(json.dumps({"seconds": time.perf_counter() - begin, "kept": len(train)}))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="source side of the corpus to repeat; default: data/de-en")
    parser.add_argument("--target", type=Path, help="target side")
    parser.add_argument("--pairs", type=int, nargs="+", default=[500_000, 5_000_000], help="sizes to measure")
    parser.add_argument("--size", type=int, default=2000, help="subwords; the shipped corpus has about 4,000")
    parser.add_argument("--duplicates", action="store_true", help="drop duplicates, which the repetitions are")
    parser.add_argument("--joined", action="store_true", help="join two pairs drawn at random, so that few pairs recur")
    parser.add_argument("--epoch", action="store_true", help="measure the start of a training too")
    parser.add_argument("--learn", type=int, default=200_000, help="pairs to learn subwords from, which sets the peak")
    parser.add_argument("--workers", type=int, help="threads; default: one per core")
    arguments = parser.parse_args()
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target go together")
    source = arguments.source or _shipped("de")
    target = arguments.target or _shipped("en")

    peaks: dict[str, list[int]] = {}
    for pairs in arguments.pairs:
        with tempfile.TemporaryDirectory(prefix="benchmark-prepare-") as name:
            folder = Path(name)
            for side, path in (("source", source), ("target", target)):
                _write(path, folder / side, pairs, joined=arguments.joined)
            config = {
                "train": {"source": str(folder / "source"), "target": str(folder / "target")},
                "subwords": {"size": arguments.size, "training_sentences": arguments.learn},
                "filters": {"duplicates": arguments.duplicates},
                "workers": arguments.workers,
            }
            run, result = str(folder / "run"), folder / "result.json"
            programs = {"prepare": [PREPARE, json.dumps(config), run]} | (
                {"epoch": [EPOCH, run]} if arguments.epoch else {}
            )
            for what, program in programs.items():
                peak, private = _peak_memory([sys.executable, "-c", *program, str(result)])
                measured = json.loads(result.read_text())
                peaks.setdefault(what, []).append(peak)
                _print(f"{what} {pairs} pairs", pairs / measured["seconds"], "pairs/s", duplicates=arguments.duplicates)
                _print(f"{what} {pairs} pairs, kept", measured["kept"], "pairs", duplicates=arguments.duplicates)
                for label, kib in (("peak memory", peak), ("peak memory but for mapped files", private)):
                    _print(f"{what} {pairs} pairs, {label}", kib / 1024, "MiB", duplicates=arguments.duplicates)
    for what, of_sizes in peaks.items():
        if len(of_sizes) > 1:
            name = f"{what} peak memory, {arguments.pairs[-1]} over {arguments.pairs[0]} pairs"
            _print(name, of_sizes[-1] / of_sizes[0], "ratio", duplicates=arguments.duplicates)


def _shipped(language: str) -> Path:
    """The training side of the corpus that ships."""
    for name in (f"train.{language}", f"train.{language}.gz"):
        if (ROOT / "data" / "de-en" / name).exists():
            return ROOT / "data" / "de-en" / name
    raise SystemExit(f"data/de-en/train.{language}: no such file; name a corpus by --source and --target")


def _write(path: Path, to: Path, lines: int, *, joined: bool) -> None:
    """Write the lines of `path` over and over, `lines` in all; where `joined`, two of them drawn at random as one, the
    same ones for each side."""
    once = list(read_lines(path))
    random = np.random.default_rng(1)
    with to.open("w", encoding="utf-8", newline="") as file:
        for start in range(0, lines, _BLOCK):
            count = min(_BLOCK, lines - start)
            if joined:
                drawn = random.integers(len(once), size=(count, 2)).tolist()
                file.writelines(f"{once[first]} {once[second]}\n" for first, second in drawn)
            else:
                file.writelines(f"{once[number % len(once)]}\n" for number in range(start, start + count))


def _peak_memory(command: list[str]) -> tuple[int, int]:
    """Run a command and return the most KiB that it and its children had resident at once: all, and without the pages
    of mapped files."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment)
    peak = private = 0
    while process.poll() is None:
        processes = list(family(process.pid))
        peak = max(peak, sum(size_of(pid, "VmRSS") for pid in processes), *(size_of(pid, "VmHWM") for pid in processes))
        private = max(private, sum(size_of(pid, "RssAnon") for pid in processes))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(process.returncode)
    return peak, private


def _print(name: str, value: float, unit: str, *, duplicates: bool) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    figure = {
        "name": name, "value": round(value, 3), "unit": unit, "duplicates_filter": duplicates,
        "commit": commit.stdout.strip() or None, "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }  # fmt: skip
    print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
