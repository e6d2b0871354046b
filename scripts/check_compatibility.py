"""Installs nmt with its oldest, its pinned and the newest dependencies on each Python at hand, and runs some tests.

    python scripts/check_compatibility.py                      every Python from 3.11 to 3.14, all sets, all parts
    python scripts/check_compatibility.py --python 3.12 --set oldest --part core ray --record build/tried.jsonl

``oldest`` takes of each direct dependency the oldest release that its lower bound and the Python allow, ``newest`` the
newest that its upper bound allows, ``pinned`` what ``constraints.txt`` names; of what those need, the newest. PyTorch
is that of ``constraints.txt`` in all of them unless ``--torch`` names another, for a download may take gigabytes.

The part ``core`` is nmt with the server and some 300 tests of all kinds; each other part is one extra alone, or a
group of tools, with tests of its own. Each trial gets an environment of its own under
``build/compatibility`` or ``--place``, made by uv, which has settings of its own for where packages come from; it is
removed afterwards unless ``--keep``. With ``--record FILE`` each trial is noted there in JSON, and what has passed
according to it is not tried again: after a change to nmt begin with another file. Prints a table; exit code 1 where
anything failed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "compatibility"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SETS = {"oldest": "lowest-direct", "pinned": "highest", "newest": "highest"}
LIMIT_MINUTES = 60


@dataclass(frozen=True)
class Part:
    """A part of nmt: the extras to install with it, besides the needs of the tests, and the checks to run."""

    extras: tuple[str, ...]
    shown: tuple[str, ...]
    """Distributions whose versions are shown in the table."""
    imports: tuple[str, ...]
    """Modules that must be importable, because tests skip those that are missing."""
    tests: tuple[str, ...]
    marks: str = "not slow"
    tools: tuple[str, ...] = ()
    """Commands that run before the tests."""
    built: str = ""
    """Distribution that PyPI has only as source."""


PARTS = {
    "core": Part(
        ("serve",),
        ("torch", "numpy", "pydantic", "safetensors", "sacrebleu", "typer", "fastapi", "matplotlib"),
        ("torch", "matplotlib", "fastapi"),
        (
            "tests/core/test_lines.py", "tests/config/test_structure.py", "tests/data/test_config.py",
            "tests/data/test_tokenizer.py", "tests/evaluation/test_translation.py", "tests/extras/pages/test_draw.py",
            "tests/extras/service/test_app.py", "tests/workflows/test_golden.py",
        ),
    ),
    "serve": Part(
        ("serve",),
        ("fastapi", "starlette", "prometheus_client", "uvicorn"),
        ("fastapi", "prometheus_client", "uvicorn"),
        tuple(f"tests/extras/service/test_{name}.py" for name in ("app", "server", "engine", "command")),
    ),
    "tensorboard": Part(
        ("tensorboard",), ("tensorboard", "protobuf"), ("tensorboard",), ("tests/training/test_metrics.py",)
    ),
    "ctranslate2": Part(
        ("ctranslate2",), ("ctranslate2", "numpy"), ("ctranslate2",),
        ("tests/extras/exchange/export/test_ctranslate2.py", "tests/extras/exchange/test_export.py"),
    ),
    "onnx": Part(
        ("onnx",), ("onnx", "onnxruntime", "onnxscript", "numpy"), ("onnx", "onnxruntime", "onnxscript"),
        ("tests/extras/exchange/export/test_onnx.py", "tests/extras/exchange/export/test_export_onnx.py"),
    ),
    "zstd": Part(("zstd",), ("backports.zstd",), ("backports.zstd",), ("tests/data/test_formats.py",)),
    "ray": Part(
        ("ray",), ("ray", "pyarrow", "grpcio", "protobuf"), ("ray", "pyarrow.parquet", "grpc"),
        ("tests/extras/cluster/test_records.py", "tests/extras/cluster/test_cluster.py"),
    ),
    "hf": Part(("hf",), ("huggingface_hub",), ("huggingface_hub",), ("tests/extras/exchange/convert/test_hub.py",)),
    "docs": Part(
        (), ("mkdocs", "mkdocs-material", "latex2mathml"), ("mkdocs", "material", "latex2mathml"),
        ("tests/docs/test_site.py",),
    ),
    "eflomal": Part(
        ("eflomal",), ("eflomal", "numpy"), ("eflomal",),
        ("tests/scripts/test_benchmarks.py", "tests/scripts/test_figures.py"), "",
        built="eflomal",
    ),
    "dev": Part(
        ("serve",),
        ("ruff", "mypy", "import-linter", "pytest", "pytest-xdist", "hypothesis"),
        ("httpx", "xdist"),
        ("tests/core", "--numprocesses=2"),
        tools=("ruff check .", "ruff format --check .", f"mypy --cache-dir {os.devnull}", "lint-imports"),
    ),
}  # fmt: skip
"""``core`` tries configuration, text, scores, pictures, the server, and trained models that train on and translate."""


@dataclass(frozen=True)
class Tried:
    """The result of a trial of one part with one set on one Python."""

    python: str
    set: str
    part: str
    versions: str
    outcome: str
    seconds: float
    passed: bool


class Failed(Exception):
    """A step of a trial failed; the message is the last line of its output."""


def find_python(version: str) -> Path | None:
    """Finds an interpreter of a version that runs: on the path, or among those of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [Path(place) for place in [shutil.which(f"python{version}")] if place]
    found += sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    for path in found:
        if subprocess.run([path, "-c", "pass"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def pinned_torch() -> str:
    """Returns the version of PyTorch in ``constraints.txt``."""
    found = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def attempt(version: str, python: Path, set: str, part: str, torch: str, *, place: Path, keep: bool) -> Tried:
    """Creates an environment of a set for a part, installs nmt into it and tries the part."""
    place, started = place / f"{version}-{set}-{part}", time.monotonic()
    versions, outcome, passed = "", "", False
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        installed = _install(place, python, set, PARTS[part], torch)
        versions = ", ".join(f"{name} {installed[name]}" for name in PARTS[part].shown if name in installed)
        outcome, passed = _try(place / "env" / "bin", PARTS[part], set), True
    except Failed as error:
        outcome = str(error)
    if not keep:
        shutil.rmtree(place, ignore_errors=True)
    return Tried(version, set, part, versions, outcome, time.monotonic() - started, passed)


def _install(place: Path, python: Path, set: str, part: Part, torch: str) -> dict[str, str]:
    """Fills the environment; returns the versions of the installed distributions, by name."""
    (place / "torch.txt").write_text(f"torch=={torch}\n", encoding="utf-8")
    wheels = ["--only-binary", ":all:", *(["--no-binary", part.built] if part.built else [])]
    resolve: list[str | Path] = [
        "pip", "compile", ROOT / "pyproject.toml", "--python", python, "--resolution", SETS[set], *wheels,
        "--constraint", place / "torch.txt", "--output-file", place / "resolved.txt",
    ]  # fmt: skip
    resolve += ["--group", "pyproject.toml:dev", *(f"--extra={extra}" for extra in part.extras)]
    if set == "pinned":
        resolve += ["--constraint", ROOT / "constraints.txt"]
    inside = place / "env" / "bin" / "python"
    _uv(*resolve)
    _uv("venv", "--python", python, place / "env")
    _uv("pip", "install", "--python", inside, *wheels, "--requirement", place / "resolved.txt")
    _uv("pip", "install", "--python", inside, "--no-deps", ROOT)
    _run([inside.with_name("nmt"), "--version"], cwd=place)
    lines = _uv("pip", "list", "--python", inside, "--format", "freeze").splitlines()
    return {name: found for name, _, found in (line.partition("==") for line in lines)}


def _try(programs: Path, part: Part, set: str) -> str:
    """Runs the checks of a part; returns the last line of pytest's output."""
    _run([programs / "python", "-c", f"import {', '.join(part.imports)}"], cwd=ROOT)
    for tool in part.tools:
        name, *arguments = tool.split()
        if name == "mypy" and set == "oldest":
            continue  # old releases have other types, or none
        _run([programs / name, *arguments], cwd=ROOT)
    options = ["-q", "-p", "no:cacheprovider", "-m", part.marks]
    return passed_line(_run([programs / "python", "-m", "pytest", *options, *part.tests], cwd=ROOT))


def passed_line(said: str) -> str:
    """Returns the last line of pytest's output; raises Failed if no test was run, which pytest does not report."""
    last = said.strip().splitlines()[-1].strip("= ")
    if not re.search(r"\b[1-9]\d* passed\b", last):
        raise Failed(f"no test was run: {last}")
    return last


def _uv(*arguments: str | Path) -> str:
    return _run([sys.executable, "-m", "uv", *arguments], cwd=ROOT)


def _run(command: Sequence[str | Path], *, cwd: Path) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60 * LIMIT_MINUTES
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{Path(command[0]).name} was not done after {LIMIT_MINUTES} minutes") from None
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        raise Failed(said[-1].strip("= "))
    return done.stdout


def recorded(file: Path | None) -> list[Tried]:
    """Reads the trials in a file of ``--record``; the last of repeated ones counts."""
    if file is None or not file.exists():
        return []
    found: dict[tuple[str, str, str], Tried] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            each = Tried(**json.loads(line))
        except (ValueError, TypeError):
            sys.exit(f"error: {file}:{number}: no trial that --record has noted; name another file")
        found[each.python, each.set, each.part] = each
    return list(found.values())


def table(tried: Sequence[Tried]) -> Iterator[str]:
    """Formats the trials as a table in Markdown."""
    yield "| Python | set | part | versions | tests | seconds |"
    yield "|---|---|---|---|---|---|"
    for each in tried:
        outcome = ("" if each.passed else "FAILED: ") + each.outcome.replace("|", "\\|")
        yield f"| {each.python} | {each.set} | {each.part} | {each.versions} | {outcome} | {each.seconds:.0f} |"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=PYTHONS, help="versions; default: all")
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), help="default: all three")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="default: core and each extra")
    parser.add_argument("--torch", metavar="VERSION", default=pinned_torch(), help="default: that of constraints.txt")
    parser.add_argument("--record", metavar="FILE", type=Path, help="note trials there, and go on from it")
    parser.add_argument("--place", metavar="DIR", type=Path, default=PLACE, help="default: build/compatibility")
    parser.add_argument("--keep", action="store_true", help="leave the environments there")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _options(arguments)
    tried = {(each.python, each.set, each.part): each for each in recorded(options.record)}
    for version in options.python:
        python = find_python(version)
        if python is None:
            print(f"Python {version}: none is at hand", file=sys.stderr)
            continue
        for set, part in itertools.product(options.set, options.part):
            before = tried.get((version, set, part))
            if before is not None and before.passed:
                continue
            made = attempt(version, python, set, part, options.torch, place=options.place.resolve(), keep=options.keep)
            tried[version, set, part] = made
            if options.record is not None:
                options.record.parent.mkdir(parents=True, exist_ok=True)
                with options.record.open("a", encoding="utf-8") as file:
                    print(json.dumps(asdict(made)), file=file)
            print(f"Python {version}, {set}, {part}: {made.outcome}", file=sys.stderr, flush=True)
    print("\n".join(table(list(tried.values()))))
    return 0 if tried and all(each.passed for each in tried.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
