"""`nmt doctor`: a description of the system in ten lines, to paste into a report."""

from __future__ import annotations

import locale
import os
import platform
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer

from nmt.core import cpu
from nmt.core.errors import InputError
from nmt.core.installation import NAME, install_command
from nmt.core.version import VERSION

PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "pydantic", "typer")
FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "bf16")
"""CPU features that decide which code runs."""
VARIABLE = re.compile(r"(?!NMT_API_KEY)(NMT|OMP|MKL|CUDA|TORCH)_\w+|MULTI30K")


def doctor() -> None:
    """Print versions, processor, kernels, devices, extras and folders.

    Paste the output into bug reports. The command writes no files and sends nothing."""
    typer.echo("\n".join(f"{label:<10}{text}" for label, text in findings().items()))


def findings() -> dict[str, str]:
    """Collects the lines by their labels."""
    import torch

    from nmt.core.device import compute
    from nmt.extras.speed.compiled import installed

    try:
        kernels = installed().name
    except InputError as error:
        kernels = f"none: {error}"
    devices = [f"cpu ({torch.get_num_threads()} threads)"]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices.append(f"cuda:{index} ({properties.name}, {properties.total_memory >> 30} GiB)")
    features = " ".join(each for each in FEATURES if each in cpu.features()) or "features unknown"
    where = Path(__file__).parents[2]
    return {
        "version": f"{VERSION} in {where}; Python {platform.python_version()}; {platform.platform()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
        "cpu": f"{cpu.name()}, {os.cpu_count()} cores, {features}",
        "memory": _memory(),
        "devices": ", ".join(devices),
        "precision": f"auto is {compute('auto', 'auto').precision}",
        "kernels": kernels,
        "extras": _extras(),
        "folders": _folders(),
        "terminal": _terminal(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _memory() -> str:
    path = Path("/proc/meminfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    sizes = {name: int(value.split()[0]) / 2**20 for name, _, value in (line.partition(":") for line in lines)}
    return f"{sizes['MemAvailable']:.1f} of {sizes['MemTotal']:.1f} GiB free" if "MemAvailable" in sizes else "unknown"


def _extras() -> str:
    """Lists the extras that are installed, and the command for the others."""
    try:
        requirements = requires(NAME) or []
    except PackageNotFoundError:
        return f"unknown: {NAME} is not installed, its folder is on the path"
    needed: dict[str, list[str]] = {}
    for requirement in requirements:
        package, _, marker = requirement.partition(";")
        if found := re.search(r"extra == ['\"]([\w-]+)['\"]", marker):
            needed.setdefault(found[1], []).append(re.split(r"[^\w.-]", package.strip())[0])
    is_missing = {extra: "not installed" in map(_version, needed[extra]) for extra in needed if extra != "all"}
    there = [extra for extra in is_missing if not is_missing[extra]]
    missing = [extra for extra in is_missing if is_missing[extra]]
    advice = f"; missing: {', '.join(missing)} ({install_command(missing[0])})" if missing else ""
    return (", ".join(there) or "none") + advice


def _folders() -> str:
    here = Path.cwd()
    free = shutil.disk_usage(here).free / 2**30
    runs = len(list(here.glob("runs/*/latest")))
    access = "" if os.access(here, os.W_OK) else ", not writable"
    return f"{here} ({free:.1f} GiB free{access}), {runs} trained under runs/"


def _terminal() -> str:
    variables = [f"{name}={value}" for name, value in sorted(os.environ.items()) if VARIABLE.fullmatch(name)]
    kind = "a terminal" if sys.stdout.isatty() else "a pipe or file"
    return ", ".join(
        [f"stdout {kind}, {sys.stdout.encoding}", f"locale {locale.setlocale(locale.LC_CTYPE)}", *variables]
    )
