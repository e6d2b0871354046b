"""Installs nmt with its oldest, its pinned and the newest dependencies on each Python at hand, and runs some tests.

    python scripts/check_compatibility.py                      every Python from 3.10 to 3.13, all three sets
    python scripts/check_compatibility.py --python 3.12 --set oldest --torch 2.13.0

``oldest`` takes of each direct dependency the oldest release that its lower bound and the Python allow, ``newest`` the
newest that its upper bound allows, ``pinned`` what ``constraints.txt`` names; of what those need, the newest. PyTorch
is that of ``constraints.txt`` in all of them unless ``--torch`` names another, for a download may take gigabytes. Each
set goes into an environment of its own under ``build/compatibility``, made by uv, which has settings of its own for
where packages come from; it is removed afterwards unless ``--keep``. Prints a table; exit code 1 where anything failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "compatibility"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SETS = {"oldest": "lowest-direct", "pinned": "highest", "newest": "highest"}
EXTRAS = ("plot", "serve", "dev")
SHOWN = ("torch", "numpy", "pydantic", "safetensors", "sacrebleu", "typer", "fastapi", "matplotlib")
TESTS = (
    "tests/core/test_lines.py", "tests/core/test_structure.py", "tests/data/test_config.py",
    "tests/data/test_tokenizer.py", "tests/evaluation/test_translation.py", "tests/alignment/test_plot.py",
    "tests/serving/test_app.py", "tests/workflows/test_golden.py",
)  # fmt: skip
"""Configuration, text, scores, pictures, the server, and trained models that train on, translate and align."""


@dataclass(frozen=True)
class Tried:
    """What came of one set on one Python."""

    python: str
    set: str
    versions: str
    outcome: str
    seconds: float
    passed: bool


class Failed(Exception):
    """A step of a trial did not succeed; holds the last line of what it said."""


def find_python(version: str) -> Path | None:
    """An interpreter of a version that runs: on the path, or among those of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [Path(place) for place in [shutil.which(f"python{version}")] if place]
    found += sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    for path in found:
        if subprocess.run([path, "-c", "pass"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def pinned_torch() -> str:
    """The version of PyTorch in ``constraints.txt``."""
    found = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def attempt(version: str, python: Path, set: str, torch: str, tests: Sequence[str], *, keep: bool) -> Tried:
    """Makes an environment of a set, installs nmt into it and runs tests."""
    place, started = PLACE / f"{version}-{set}", time.monotonic()
    versions, outcome, passed = "", "", False
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        installed = _install(place, version, python, set, torch)
        versions = ", ".join(f"{name} {installed[name]}" for name in SHOWN if name in installed)
        outcome, passed = _test(place / "env" / "bin" / "python", tests), True
    except Failed as error:
        outcome = str(error)
    if not keep:
        shutil.rmtree(place, ignore_errors=True)
    return Tried(version, set, versions, outcome, time.monotonic() - started, passed)


def _install(place: Path, version: str, python: Path, set: str, torch: str) -> dict[str, str]:
    """What the environment then holds, by name."""
    (place / "torch.txt").write_text(f"torch=={torch}\n", encoding="utf-8")
    resolve: list[str | Path] = [
        "pip", "compile", ROOT / "pyproject.toml", "--python", python, "--resolution", SETS[set], "--only-binary",
        ":all:", "--constraint", place / "torch.txt", "--output-file", place / "resolved.txt",
    ]  # fmt: skip
    resolve += [argument for extra in EXTRAS for argument in ("--extra", extra)]
    if set == "pinned":
        resolve += ["--constraint", ROOT / "constraints.txt"]
    inside = place / "env" / "bin" / "python"
    _uv(*resolve)
    _uv("venv", "--python", python, place / "env")
    _uv("pip", "install", "--python", inside, "--only-binary", ":all:", "--requirement", place / "resolved.txt")
    _uv("pip", "install", "--python", inside, "--no-deps", ROOT)
    _run([inside.with_name("nmt"), "--version"], cwd=place)
    lines = _uv("pip", "list", "--python", inside, "--format", "freeze").splitlines()
    return {name: found for name, _, found in (line.partition("==") for line in lines)}


def _test(python: Path, tests: Sequence[str]) -> str:
    command: list[str | Path] = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    return _run(command, cwd=ROOT).splitlines()[-1].strip("= ")


def _uv(*arguments: str | Path) -> str:
    return _run([sys.executable, "-m", "uv", *arguments], cwd=ROOT)


def _run(command: Sequence[str | Path], *, cwd: Path) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        raise Failed(said[-1].strip("= "))
    return done.stdout


def table(tried: Sequence[Tried]) -> Iterator[str]:
    """What was tried, in Markdown."""
    yield "| Python | set | versions | tests | seconds |"
    yield "|---|---|---|---|---|"
    for each in tried:
        outcome = each.outcome.replace("|", "\\|") if each.passed else f"FAILED: {each.outcome}"
        yield f"| {each.python} | {each.set} | {each.versions} | {outcome} | {each.seconds:.0f} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=PYTHONS, help="versions; default: all")
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), help="default: all three")
    parser.add_argument("--torch", metavar="VERSION", default=pinned_torch(), help="default: that of constraints.txt")
    parser.add_argument("--tests", nargs="+", metavar="PATH", default=TESTS, help="default: some 300 of all kinds")
    parser.add_argument("--keep", action="store_true", help="leave the environments in build/compatibility")
    options = parser.parse_args(arguments)
    tried: list[Tried] = []
    for version in options.python:
        python = find_python(version)
        if python is None:
            print(f"Python {version}: none is at hand", file=sys.stderr)
            continue
        for set in options.set:
            tried.append(attempt(version, python, set, options.torch, options.tests, keep=options.keep))
            print(f"Python {version}, {set}: {tried[-1].outcome}", file=sys.stderr)
    print("\n".join(table(tried)))
    return 0 if tried and all(each.passed for each in tried) else 1


if __name__ == "__main__":
    sys.exit(main())
