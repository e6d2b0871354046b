"""A newcomer's first ten minutes: a TSV of sentence pairs, `nmt init`, and then whatever each command says comes next,
to the report. What a person fills in, the names of two files, is filled in; nothing else is known of the commands.

    python scripts/newcomer.py                # 2,000 pairs of data/de-en: a table of the steps and their seconds
    python scripts/newcomer.py --tsv my.tsv --wheel      # own pairs; nmt from a wheel in an empty environment

With `--wheel` the commands see nothing of the repository, and the first translation of all is compared with the second.

Then the same pairs come as other people have them: a TMX, a ZIP archive of OPUS, a TSV with rows that are no pairs, a
CSV of Excel. Each goes through `nmt init` and two updates of `nmt train`, and no pair may be lost or made up.

Exits with 1 where a command fails, names no next one, or all take longer than ten minutes together, where a form has
other pairs, and where the first translation takes more than 1.1 times as long as the second.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
TRAIN = ROOT / "data" / "de-en" / "train"
BAR_SECONDS = 600
BAR_FIRST = 1.1
"""Maximum duration of the first translation of an installation, relative to the second."""
EXPECTED = ("init", "train", "translate", "align", "report")

NEXT = re.compile(r"^(?:next:?|translate) +(nmt .+)$", re.MULTILINE)
"""Pattern of a line that names the next command."""


class Step(NamedTuple):
    command: str
    seconds: float
    cpu_seconds: float
    """CPU seconds of all cores, which show how much of the time other programs took."""


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
        other_forms(work)
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
"""Command that runs nmt; with ``--wheel`` it has the Python of the new environment."""


def installed(environment: Path) -> Path:
    """Creates an environment that has nmt from a wheel, with the versions that the tests have; returns its Python."""
    build = ["pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(environment.parent), str(ROOT)]
    subprocess.run([sys.executable, "-m", *build], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    (wheel,) = environment.parent.glob("nmt_attention-*.whl")
    python = environment / "bin" / "python"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *constraints, str(wheel)], check=True)
    return python


def _first_against_second(steps: Sequence[Step], folder: Path) -> float:
    """Measures the ratio of the time of the first translation to that of its repetition."""
    (first,) = [step for step in steps if step.command.startswith("nmt translate")]
    started = time.monotonic()
    run(first.command, folder)
    return first.seconds / (time.monotonic() - started)


def follow(folder: Path, *, pairs: int, updates: int | None, tsv: Path | None = None) -> list[Step]:
    """Runs one command after the other until one names no next command."""
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


def other_forms(folder: Path) -> None:
    """Tries the other forms of the pairs; ends the script if some are lost or made up."""
    pairs = [tuple(line.split("\t")) for line in (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()]
    for name, write in FORMS.items():
        path = folder / name
        write(path, [(one, other) for one, other in pairs])
        stem = path.stem.partition(".")[0]
        run(f"nmt init {stem} --tsv {name} --no-time", folder)
        run(f"nmt train {stem}.yaml --set training.stopping.updates=2", folder)
        parts = [folder / "data" / stem / f"{part}.tsv" for part in ("train", "valid", "test")]
        found = {tuple(line.split("\t")) for part in parts for line in part.read_text(encoding="utf-8").splitlines()}
        if found != {*pairs}:
            sys.exit(f"{name}: {len({*pairs} - found)} pairs are lost, and {len(found - {*pairs})} made up")
        print(f"{name}: all {len(found):,} different pairs are there", flush=True)


def write_tmx(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Writes a translation memory, with markup in the segments."""
    root = ElementTree.Element("tmx", version="1.4")
    ElementTree.SubElement(root, "header", srclang="de-DE")
    body = ElementTree.SubElement(root, "body")
    for pair in pairs:
        unit = ElementTree.SubElement(body, "tu")
        for language, text in zip(("de-DE", "en-US"), pair, strict=True):
            segment = ElementTree.SubElement(ElementTree.SubElement(unit, "tuv", {"xml:lang": language}), "seg")
            segment.text = text
            ElementTree.SubElement(segment, "ph", x="1").text = "<br/>"
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def write_opus(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Writes an archive in the form of OPUS."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("README", "LICENSE"):
            archive.writestr(name, "Not a sentence.\n")
        for side, language in ((1, "en"), (0, "de")):
            archive.writestr(f"Tatoeba.de-en.{language}", "".join(f"{pair[side]}\n" for pair in pairs))


def write_messy(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Writes a TSV in which one row in thirty is not a pair."""
    faults = (b"no pair", b"", b"two\tTABs\there", b"gr\xfcn\tgreen")
    with path.open("wb") as file:
        for number, pair in enumerate(pairs):
            if number % 30 == 0:
                file.write(faults[number // 30 % len(faults)] + b"\n")
            file.write("\t".join(pair).encode() + b"\n")


def write_csv(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Writes a CSV of a German Excel."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL).writerows(pairs)


FORMS = {"memory.tmx": write_tmx, "opus.de-en.zip": write_opus, "messy.tsv": write_messy, "excel.csv": write_csv}


def _cpu_seconds() -> float:
    """Returns the CPU seconds of the commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def write_pairs(path: Path, count: int) -> None:
    """Writes the first pairs of the corpus that ships as lines of source, TAB, target."""
    with (
        TRAIN.with_suffix(".de").open(encoding="utf-8") as source,
        TRAIN.with_suffix(".en").open(encoding="utf-8") as target,
        path.open("w", encoding="utf-8", newline="\n") as pairs,
    ):
        for one, other in islice(zip(source, target, strict=True), count):
            pairs.write(f"{one.rstrip()}\t{other.rstrip()}\n")


def filled_in(command: str, folder: Path) -> str:
    """Returns the command with files in place of FILE and TRANSLATION: the sources of the pairs that were held out for
    testing."""
    if "FILE" not in command:
        return command
    held_out = (folder / "data" / "first" / "test.tsv").read_text(encoding="utf-8").splitlines()
    (folder / "text.de").write_text("".join(f"{line.split(chr(9))[0]}\n" for line in held_out), encoding="utf-8")
    return command.replace("FILE", "text.de").replace("TRANSLATION", "text.en")


def run(command: str, folder: Path) -> str:
    """Runs a command and returns its stderr, which is shown as it is written; ends the script if the command fails."""
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
