"""Records what a change of the code must keep: losses, weights, translations and alignments.

    python scripts/record.py make FILE [--tree FOLDER] [--run RUN ...] [--only TEXT]
    python scripts/record.py compare FILE OTHER [--relative 1e-4]

``make`` trains eight small models for 200 updates on data/de-en, each with one thread and with two, with the kernels
and without, in float32. It records the losses and a hash of the weights. With each RUN, a run directory, it translates
the test set of data/de-en and aligns its validation set by every method; a refusal is recorded too. It uses only
commands and configuration keys, so that FILE can be made of any checkout, which ``--tree`` names. FILE is written after
every record, and a record that it contains is not made again: the same command continues after an interruption.

``compare`` prints the records that differ. With ``--relative`` losses may differ by that share, and weights are not
compared. Bits depend on the processor and on PyTorch: compare recordings of one machine. Exit code 1: a record differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data" / "de-en"

RNN = "model.encoder={kind: rnn, size: 64}"
TRANSFORMER = "{kind: transformer, layers: 2, size: 64, heads: 4, feed_forward: 128}"
TRAININGS: Mapping[str, tuple[str, ...]] = {
    "lstm additive, input feeding": (
        RNN, "model.decoder={kind: rnn, cell: lstm, size: 128, query: current, input_feeding: true}",
        "model.attention.score=additive",
    ),
    "gru dot": (
        "model.encoder={kind: rnn, cell: gru, size: 64}", "model.decoder={kind: rnn, cell: gru, size: 128}",
        "model.attention.score=dot",
    ),
    "elman, no attention": (
        "model.encoder={kind: rnn, cell: elman, size: 64}", "model.decoder={kind: rnn, cell: elman, size: 128}",
        "model.attention.score=none",
    ),
    "local_p": (RNN, "model.decoder={kind: rnn, size: 128}", "model.attention={score: general, weights: local_p}"),
    "hard": (RNN, "model.decoder={kind: rnn, size: 128}", "model.attention={score: additive, weights: hard}"),
    "transformer": (
        f"model.encoder={TRANSFORMER}", f"model.decoder={TRANSFORMER}", "model.attention.score=scaled_dot",
    ),
    "transformer encoder, lstm decoder": (
        f"model.encoder={TRANSFORMER}", "model.decoder={kind: rnn, cell: lstm, size: 64}",
        "model.attention.score=additive",
    ),
    "minimum risk": (RNN, "model.decoder={kind: rnn, size: 64}", "training.risk={samples: 4}"),
}  # fmt: skip
COMMON = (
    "model.embedding={size: 64, tie: none}", "training.batching.batch_tokens=512", "training.stopping={updates: 200}",
    "training.validation={every: 200, metric: loss, bleu: false}", "training.log_every=1", "training.schedule=constant",
    # so small that differences of rounding do not grow
    "training.optimizer={kind: adamw, learning_rate: 3e-4}",
)  # fmt: skip
SEARCHES: Mapping[str, tuple[str, ...]] = {
    "greedy": ("--beam", "1", "--precision", "float32"),
    "beam 5": ("--beam", "5", "--precision", "float32"),
    "int8": ("--beam", "5", "--precision", "int8"),
    "sampling": ("--sample", "--seed", "7", "--precision", "float32"),
}
METHODS = ("attention", "shifted-attention", "gradient", "input-x-gradient", "trained")

Record: TypeAlias = dict[str, Any]
"""``losses`` and ``weights`` of a training, or ``lines`` of a command."""
Recording: TypeAlias = dict[str, Record]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="record a checkout")
    maker.add_argument("file", type=Path)
    maker.add_argument("--tree", type=Path, default=ROOT, help="the checkout; default: this one")
    maker.add_argument("--run", type=Path, action="append", default=[], help="translate and align with it; repeatable")
    maker.add_argument("--only", default="", metavar="TEXT", help="records whose name contains this")
    comparer = commands.add_parser("compare", help="compare two recordings")
    comparer.add_argument("file", type=Path)
    comparer.add_argument("other", type=Path)
    comparer.add_argument("--relative", type=float, default=0.0, help="share by which losses may differ; default: 0")
    options = parser.parse_args(arguments)
    if options.command == "compare":
        first, second = (json.loads(file.read_text(encoding="utf-8")) for file in (options.file, options.other))
        differences = list(compare(first, second, relative=options.relative))
        print("\n".join(differences) or "no difference")
        return 1 if differences else 0
    recording: Recording = json.loads(options.file.read_text(encoding="utf-8")) if options.file.exists() else {}
    for name, make in records(options.tree.resolve(), [run.absolute() for run in options.run]):
        if options.only in name and name not in recording:
            recording[name] = make()
            options.file.write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")
            print(name, file=sys.stderr)
    return 0


def compare(first: Recording, second: Recording, *, relative: float) -> Iterator[str]:
    """A line for each record that differs or that one recording lacks."""
    for name in dict.fromkeys([*first, *second]):
        if name not in first or name not in second:
            yield f"{name}: only in one of them"
        elif "losses" in first[name]:
            losses, others = first[name]["losses"], second[name]["losses"]
            updates = range(max(len(losses), len(others)))
            place = next((i for i in updates if not _close(losses[i : i + 1], others[i : i + 1], relative)), None)
            if place is not None:
                yield f"{name}: losses differ from update {place + 1} on"
            elif not relative and first[name]["weights"] != second[name]["weights"]:
                yield f"{name}: weights differ"
        elif first[name] != second[name]:
            lines, others = first[name]["lines"], second[name]["lines"]
            count = sum(a != b for a, b in zip(lines, others, strict=False)) + abs(len(lines) - len(others))
            yield f"{name}: {count} of {len(lines)} lines differ"


def _close(loss: Sequence[float], other: Sequence[float], relative: float) -> bool:
    """Compare the losses of one update, of which either may be missing."""
    return len(loss) == len(other) and all(abs(a - b) <= relative * abs(a) for a, b in zip(loss, other, strict=True))


def records(tree: Path, runs: Sequence[Path]) -> Iterator[tuple[str, Callable[[], Record]]]:
    """Names of all records, each with the function that makes it."""
    for run in runs:
        for kernels in (True, False):
            suffix = f"{run.name}, {'kernels' if kernels else 'no kernels'}"
            for name, options in SEARCHES.items():
                command, text = ["translate", str(run), *options], DATA / "test.de"
                yield f"{name}, {suffix}", partial(output, tree, command, text, kernels)
            for method in METHODS:
                pairs = ["--source", str(DATA / "valid.de"), "--target", str(DATA / "valid.en")]
                command = ["align", str(run), *pairs, "--method", method, "--precision", "float32"]
                yield f"{method}, {suffix}", partial(output, tree, command, None, kernels)
    for name, settings in TRAININGS.items():
        for threads in (1, 2):
            for kernels in (True, False):
                suffix = f"{threads} threads, {'kernels' if kernels else 'no kernels'}"
                yield f"{name}, {suffix}", partial(training, tree, settings, threads, kernels)


def training(tree: Path, settings: Sequence[str], threads: int, kernels: bool) -> Record:
    """Losses of the updates, and a hash of the weights after them. A refusal ends this program."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [f"data.{part}={{source: {DATA / part}.de, target: {DATA / part}.en}}" for part in ("train", "valid")]
        words = [word for s in (f"run={folder}/run", *COMMON, *settings, *parts) for word in ("--set", s)]
        config = str(ROOT / "configs" / "de-en.yaml")
        done = nmt(tree, ["train", config, *words, "--precision", "float32"], None, threads, kernels)
        if done.returncode != 0:
            sys.exit(done.stderr.decode())
        run = Path(folder) / "run"
        lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        losses = [line["loss"] for line in lines if line["kind"] == "train"]
        weights = hashlib.sha256((run / "latest" / "model.safetensors").read_bytes()).hexdigest()
    return {"losses": losses, "weights": weights}


def output(tree: Path, command: Sequence[str], text: Path | None, kernels: bool) -> Record:
    """Lines that a command writes, or those of its refusal, on one thread."""
    done = nmt(tree, command, text, 1, kernels)
    if done.returncode not in (0, 2):
        sys.exit(done.stderr.decode())
    lines = done.stdout.decode() if done.returncode == 0 else done.stderr.decode().replace(str(tree), "")
    return {"lines": lines.splitlines()}


def nmt(
    tree: Path, command: Sequence[str], text: Path | None, threads: int, kernels: bool
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of a checkout on the CPU, with a file as its input."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": str(threads)}
    environment.pop("NMT_KERNELS", None)
    if not kernels:
        environment["NMT_KERNELS"] = "off"
    words = [sys.executable, "-m", "nmt", *command, "--device", "cpu", "--quiet"]
    stdin = b"" if text is None else text.read_bytes()
    return subprocess.run(words, cwd=tree, env=environment, input=stdin, capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
