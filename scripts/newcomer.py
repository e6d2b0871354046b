"""A newcomer's first ten minutes: a TSV of sentence pairs, `nmt init`, and then whatever each command says comes next,
to the report. What a person fills in, the names of two files, is filled in; nothing else is known of the commands.

    python scripts/newcomer.py                # 2,000 pairs of data/de-en: a table of the steps and their seconds
    python scripts/newcomer.py --tsv my.tsv --wheel      # own pairs; nmt from a wheel in an empty environment

With `--wheel` the commands see nothing of the repository, and the first translation of all is compared with the second.

Exits with 1 where a command fails, names no next one, or all take longer than ten minutes together, and where the first
translation takes more than 1.1 times as long as the second.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TRAIN = ROOT / "data" / "de-en" / "train"
BAR_SECONDS = 600
BAR_FIRST = 1.1
"""The first translation of an installation in times of the second."""
EXPECTED = ("init", "train", "translate", "align", "report")

NEXT = re.compile(r"^(?:next:?|translate) +(nmt .+)$", re.MULTILINE)
"""A line that says which command comes next."""


class Step(NamedTuple):
    command: str
    seconds: float
    cpu_seconds: float
    """Of all cores, which tell how much of the time other programs took."""


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="A newcomer's way from a TSV to a report, timed.")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--tsv", type=Path, help="lines of source, TAB, target, of which the first are taken")
    parser.add_argument("--wheel", action="store_true", help="install a wheel in an empty environment, and use that")
    parser.add_argument("--updates", type=int, help="train for so many, not as many as nmt init has chosen")
    parser.add_argument("--folder", type=Path, help="where to work, and to leave all; default: one that is removed")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() if options.folder is None else nullcontext(options.folder) as folder:
        folder = Path(folder).resolve()
        work = folder / "work" if options.wheel else folder
        if options.wheel:
            _program[:] = [str(installed(folder / "environment")), "-m"]
            os.environ.update(PYTHONPATH="", HOME=str(folder))
        steps = follow(work, pairs=options.pairs, updates=options.updates, tsv=options.tsv)
        ratio = _first_against_second(steps, work) if options.wheel else 0.0
    total = sum(step.seconds for step in steps)
    print(f"\n{'seconds':>8} {'of CPU':>8}  command")
    for step in steps:
        print(f"{step.seconds:8.1f} {step.cpu_seconds:8.1f}  {step.command}")
    used = sum(step.cpu_seconds for step in steps)
    print(f"{total:8.1f} {used:8.1f}  together, {'within' if total <= BAR_SECONDS else 'OVER'} {BAR_SECONDS}")
    if options.wheel:
        print(f"the first translation took {ratio:.2f} times as long as the second, bar {BAR_FIRST}")
    return 0 if total <= BAR_SECONDS and ratio <= BAR_FIRST else 1


_program = [sys.executable, "-m"]
"""Runs nmt; with ``--wheel`` the Python of the new environment."""


def installed(environment: Path) -> Path:
    """The Python of a new environment that has nmt from a wheel, with the versions that the tests have."""
    build = ["pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(environment.parent), str(ROOT)]
    subprocess.run([sys.executable, "-m", *build], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    (wheel,) = environment.parent.glob("nmt_attention-*.whl")
    python = environment / "bin" / "python"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *constraints, str(wheel)], check=True)
    return python


def _first_against_second(steps: Sequence[Step], folder: Path) -> float:
    """How much longer the first translation took than the same again."""
    (first,) = [step for step in steps if step.command.startswith("nmt translate")]
    started = time.monotonic()
    run(first.command, folder)
    return first.seconds / (time.monotonic() - started)


def follow(folder: Path, *, pairs: int, updates: int | None, tsv: Path | None = None) -> list[Step]:
    """Goes from command to command until one names no next."""
    folder.mkdir(parents=True, exist_ok=True)
    if tsv is None:
        write_pairs(folder / "pairs.tsv", pairs)
    else:
        with tsv.open(encoding="utf-8") as lines:
            (folder / "pairs.tsv").write_text("".join(islice(lines, pairs)), encoding="utf-8")
    steps: list[Step] = []
    command: str | None = "nmt init first --tsv pairs.tsv"
    while command is not None:
        command = filled_in(command, folder)
        if updates is not None and command.startswith("nmt train "):
            command += f" --set training.stopping.updates={updates}"
        started, used = time.monotonic(), _cpu_seconds()
        said = run(command, folder)
        steps.append(Step(command, time.monotonic() - started, _cpu_seconds() - used))
        found = NEXT.search(said)
        command = None if found is None else found[1]
    done = tuple(step.command.split()[1] for step in steps)
    if done != EXPECTED:
        sys.exit(f"{done[-1]} names no next command, or the wrong one: came from {' to '.join(done)}")
    return steps


def _cpu_seconds() -> float:
    """Of the commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def write_pairs(path: Path, count: int) -> None:
    """The first pairs of the corpus that ships as lines of source, TAB, target."""
    with (
        TRAIN.with_suffix(".de").open(encoding="utf-8") as source,
        TRAIN.with_suffix(".en").open(encoding="utf-8") as target,
        path.open("w", encoding="utf-8", newline="\n") as pairs,
    ):
        for one, other in islice(zip(source, target, strict=True), count):
            pairs.write(f"{one.rstrip()}\t{other.rstrip()}\n")


def filled_in(command: str, folder: Path) -> str:
    """The command with files in place of FILE and TRANSLATION: the sources of the pairs that were held out to test."""
    if "FILE" not in command:
        return command
    held_out = (folder / "data" / "first" / "test.tsv").read_text(encoding="utf-8").splitlines()
    (folder / "text.de").write_text("".join(f"{line.split(chr(9))[0]}\n" for line in held_out), encoding="utf-8")
    return command.replace("FILE", "text.de").replace("TRANSLATION", "text.en")


def run(command: str, folder: Path) -> str:
    """What a command says on stderr, which is shown as it comes; ends the script if it fails."""
    print(f"\n$ {command}", flush=True)
    environment = os.environ if _program[0] != sys.executable else {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.Popen(
        [*_program, *shlex.split(command)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert done.stderr is not None
    said = []
    for line in done.stderr:
        print(line, end="", flush=True)
        said.append(line)
    if done.wait() != 0:
        sys.exit(1)
    return "".join(said)


if __name__ == "__main__":
    sys.exit(main())
