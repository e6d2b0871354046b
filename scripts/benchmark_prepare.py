"""Speed and memory of `prepare` by the size of the corpus.

    python scripts/benchmark_prepare.py                                   # data/de-en, 500,000 and 5,000,000 pairs
    python scripts/benchmark_prepare.py --pairs 100000 1000000 --source a.de.gz --target a.en.gz
    python scripts/benchmark_prepare.py --duplicates                      # with the duplicates filter on
    python scripts/benchmark_prepare.py --duplicates --joined             # pairs of text that differ, of two pairs each
    python scripts/benchmark_prepare.py --joined --epoch                  # and opened and batched as training does
    python scripts/benchmark_prepare.py --joined --duplicates --faults    # with faults, which are told
    python scripts/benchmark_prepare.py --joined --pairs 100000 --train 20 --repeat 500         # and trained on
    python scripts/benchmark_prepare.py --joined --aligner --pairs 100000 5000000               # nmt aligner instead

The corpus is repeated to the sizes asked for, in a temporary folder, and prepared by a process of its own. Every figure
is a line of JSON on stdout. Memory is the peak resident set of that process with its children, as the kernel accounts
it (VmHWM for the process, sampled every 50 ms for the sum), so it includes pages of mapped files. With ``--epoch``
another process opens the result and makes the batches of two epochs. With ``--faults`` two pairs in a hundred are
wrong: one is the pair before it in capitals, one has its sides swapped; the report of prepare is compared with what was
written, and `nmt languages` reports on the corpus. With ``--train`` a tiny model is trained on the last
corpus, prepared once and repeated ``--repeat`` times in the files that training maps, and its memory is printed for
each minute.
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
FAULTS = {"near": 50, "swapped": 75}
"""Places of the faults in a hundred pairs."""
ROOT = Path(__file__).resolve().parent.parent

# Program of the measured process: its arguments are the config as JSON, the run folder, and where to write the seconds.
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


# The same for `nmt aligner`: its arguments are the folder of the corpus and where to write the seconds.
ALIGNER = """
import json, sys, time
from pathlib import Path
from nmt.extras.aligner.align import learn_from_text
folder, begin = Path(sys.argv[1]), time.perf_counter()
learn_from_text(folder / "source", folder / "target", folder / "aligner")
Path(sys.argv[2]).write_text(json.dumps({"seconds": time.perf_counter() - begin}))
"""


MODEL = {
    "embedding": {"size": 64, "tie": "all"},
    "encoder": {"kind": "rnn", "cell": "gru", "size": 64, "bidirectional": False},
    "decoder": {"kind": "rnn", "cell": "gru", "size": 64},
    "attention": {"score": "dot"},
}
"""Configuration of the model for ``--train``."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="source side of the corpus to repeat; default: data/de-en")
    parser.add_argument("--target", type=Path, help="target side")
    parser.add_argument("--pairs", type=int, nargs="+", default=[500_000, 5_000_000], help="sizes to measure")
    parser.add_argument("--size", type=int, default=2000, help="subwords; the shipped corpus has about 4,000")
    parser.add_argument("--duplicates", action="store_true", help="drop duplicates, which the repetitions are")
    parser.add_argument("--joined", action="store_true", help="join two pairs drawn at random, so that few pairs recur")
    parser.add_argument("--aligner", action="store_true", help="learn a word aligner instead")
    parser.add_argument("--epoch", action="store_true", help="measure the start of a training too")
    parser.add_argument("--faults", action="store_true", help="write near-duplicates and swapped pairs, and find them")
    parser.add_argument(
        "--train", type=float, metavar="MINUTES", help="train a tiny model on the last corpus for so long"
    )
    parser.add_argument("--repeat", type=int, default=1, help="with --train, how often the last corpus is read as one")
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
            _write((source, target), folder, pairs, joined=arguments.joined, faults=arguments.faults)
            config = {
                "train": {"source": str(folder / "source"), "target": str(folder / "target")},
                "subwords": {"size": arguments.size, "training_sentences": arguments.learn},
                "filters": {"duplicates": arguments.duplicates},
                "workers": arguments.workers,
            }
            run, result = str(folder / "run"), folder / "result.json"
            programs = {"prepare": [PREPARE, json.dumps(config), run]}
            if arguments.epoch:
                programs["epoch"] = [EPOCH, run]
            if arguments.aligner:
                programs = {"aligner": [ALIGNER, name]}
            for what, program in programs.items():
                peak, private = _peak_memory([sys.executable, "-c", *program, str(result)])
                measured = json.loads(result.read_text())
                peaks.setdefault(what, []).append(peak)
                _print(f"{what} {pairs} pairs", pairs / measured["seconds"], "pairs/s", duplicates=arguments.duplicates)
                if "kept" in measured:
                    _print(f"{what} {pairs} pairs, kept", measured["kept"], "pairs", duplicates=arguments.duplicates)
                for label, kib in (("peak memory", peak), ("peak memory but for mapped files", private)):
                    _print(f"{what} {pairs} pairs, {label}", kib / 1024, "MiB", duplicates=arguments.duplicates)
            if arguments.faults:
                _print_faults(folder, pairs, peaks, duplicates=arguments.duplicates)
            if arguments.train is not None and pairs == arguments.pairs[-1]:
                pairs = _repeat(folder / "run" / "prepared" / "train", arguments.repeat)
                _train(folder, config, arguments.train, pairs, duplicates=arguments.duplicates)
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


def _write(paths: tuple[Path, Path], folder: Path, lines: int, *, joined: bool, faults: bool) -> None:
    """Write the pairs of `paths` over and over, `lines` in all; where `joined`, two of them drawn at random as one.
    With `faults` pair 50 of a hundred is the one before it in capitals, and pair 75 has its sides swapped."""
    once = list(zip(*map(read_lines, paths), strict=True))
    random = np.random.default_rng(1)
    with (
        (folder / "source").open("w", encoding="utf-8", newline="") as source,
        (folder / "target").open("w", encoding="utf-8", newline="") as target,
    ):
        for start in range(0, lines, _BLOCK):
            count = min(_BLOCK, lines - start)
            if joined:
                drawn = random.integers(len(once), size=(count, 2)).tolist()
                pairs = [tuple(map(" ".join, zip(once[one], once[other], strict=True))) for one, other in drawn]
            else:
                pairs = [once[number % len(once)] for number in range(start, start + count)]
            if faults:
                for number in range(FAULTS["near"], count, 100):
                    pairs[number] = tuple(map(str.upper, pairs[number - 1]))
                for number in range(FAULTS["swapped"], count, 100):
                    pairs[number] = pairs[number][::-1]
            source.writelines(f"{pair[0]}\n" for pair in pairs)
            target.writelines(f"{pair[1]}\n" for pair in pairs)


def _print_faults(folder: Path, pairs: int, peaks: dict[str, list[int]], *, duplicates: bool) -> None:
    """Prints how many near-duplicates and swapped pairs were written, and what is reported of them."""
    report = json.loads((folder / "run" / "prepared" / "report.json").read_text(encoding="utf-8"))
    blocks = [min(_BLOCK, pairs - start) for start in range(0, pairs, _BLOCK)]
    written = {fault: sum(len(range(first, count, 100)) for count in blocks) for fault, first in FAULTS.items()}
    _print(f"near-duplicates in {pairs} pairs, written", written["near"], "pairs", duplicates=duplicates)
    told = report["corpora"][0]["near_duplicates"]["pairs"]
    _print(f"near-duplicates in {pairs} pairs, reported", told, "pairs", duplicates=duplicates)
    begin, result = time.perf_counter(), folder / "languages.txt"
    files = ["--source", str(folder / "source"), "--target", str(folder / "target")]
    command = [sys.executable, "-m", "nmt", "languages", *files, "--expected", "de,en", "--output", str(result)]
    peak, _ = _peak_memory(command)
    peaks.setdefault("languages", []).append(peak)
    _print(f"languages {pairs} pairs", pairs / (time.perf_counter() - begin), "pairs/s", duplicates=duplicates)
    _print(f"languages {pairs} pairs, peak memory", peak / 1024, "MiB", duplicates=duplicates)
    _print(f"swapped pairs in {pairs}, written", 100 * written["swapped"] / pairs, "%", duplicates=duplicates)
    print(result.read_text(encoding="utf-8"), file=sys.stderr)


def _repeat(store: Path, times: int) -> int:
    """Changes a store so that it repeats its pairs this many times, and returns their number."""
    description = json.loads((store / "store.json").read_text(encoding="utf-8"))
    counts = {name: count for name, (_, count) in description["columns"].items()}
    for name, column in description["columns"].items():
        path = store / f"{name}.bin"
        values = np.fromfile(path, column[0])
        with path.open("ab") as file:
            for number in range(1, times):
                if name.endswith(".offsets"):  # the first is 0
                    file.write((values[1:] + number * counts[name.removesuffix(".offsets")]).tobytes())
                else:
                    file.write(values.tobytes())
        column[1] = path.stat().st_size // values.itemsize
    description["pairs"] *= times
    (store / "store.json").write_text(json.dumps(description), encoding="utf-8")
    return int(description["pairs"])


def _train(folder: Path, data: dict[str, object], minutes: float, pairs: int, *, duplicates: bool) -> None:
    """Trains a tiny model on the prepared corpus, and prints its memory in each minute from the first updates on."""
    config, metrics = folder / "config.yaml", folder / "run" / "metrics.jsonl"
    training = {"stopping": {"minutes": minutes}, "batching": {"batch_tokens": 2048}, "keep": 1}
    config.write_text(
        json.dumps({"run": str(folder / "run"), "seed": 1, "data": data, "model": MODEL, "training": training})
    )
    options = ["--quiet", "--device", "cpu", "--precision", "float32"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-m", "nmt", "train", str(config), *options], env=environment)
    before = private = resident = 0
    of_minutes, begin = list[int](), time.monotonic()
    while process.poll() is None:
        processes = list(family(process.pid))
        private = max(private, sum(size_of(pid, "RssAnon") for pid in processes))
        resident = max(resident, sum(size_of(pid, "VmRSS") for pid in processes))
        if not metrics.is_file():
            begin, before = time.monotonic(), private
        elif time.monotonic() - begin >= 60:
            of_minutes.append(private)
            for label, kib in (("memory but for mapped files", private), ("memory", resident)):
                name = f"train {pairs} pairs, minute {len(of_minutes)}: {label}"
                _print(name, kib / 1024, "MiB", duplicates=duplicates)
            begin, private, resident = time.monotonic(), 0, 0
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(process.returncode)
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    _print(f"train {pairs} pairs, updates", max(line["update"] for line in lines), "updates", duplicates=duplicates)
    _print(f"train {pairs} pairs, memory until the first updates", before / 1024, "MiB", duplicates=duplicates)
    if len(of_minutes) > 3:  # until then more is loaded
        growth = max(of_minutes[3:]) / of_minutes[2]
        _print(f"train {pairs} pairs, memory of later minutes over minute 3", growth, "ratio", duplicates=duplicates)


def _peak_memory(command: list[str]) -> tuple[int, int]:
    """Run a command and return the maximum KiB that it and its children had resident at once: all, and without the
    pages of mapped files."""
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
