"""The library that ``kernels.cpp`` is compiled to: once for a CPU and a compiler, and then kept."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from nmt.core import log

SOURCE = Path(__file__).with_name("kernels.cpp")
SWITCH = "NMT_KERNELS"
"""The environment variable that turns the kernels off: ``NMT_KERNELS=off``."""
FLAGS = (
    *("-O3", "-std=c++17", "-march=native"),
    *("-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
)
SECONDS = 120
"""Limit of the time of a compiler; ten are usual."""


@cache
def compiled() -> ctypes.CDLL | None:
    """The library; None where it is turned off, or cannot be compiled or stored. PyTorch's operations then compute the
    same, and ``--verbose`` gives the reason."""
    if os.environ.get(SWITCH) == "off":
        log.detail(f"kernels: turned off by {SWITCH}=off")
        return None
    compiler = _compiler()
    if compiler is None:
        log.detail("kernels: PyTorch's own, because there is no C++ compiler (c++, g++ or clang++, or what CXX names)")
        return None
    try:
        path = _folder() / f"kernels-{_fingerprint(compiler)}.so"
        if path.exists():
            try:
                return ctypes.CDLL(str(path))
            except OSError:
                log.detail(f"kernels: {path} is damaged")
        _compile(compiler, path)
        return ctypes.CDLL(str(path))
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        reason = " ".join(str(getattr(error, "stderr", None) or error).split())
        log.detail(f"kernels: PyTorch's own, because {compiler} did not make others: {reason[:500]}")
        return None


@cache
def multiplies_tiles() -> bool:
    """True if the CPU has a unit for products of tiles of bytes (AMX), which PyTorch uses."""
    return " amx_int8 " in f"{_cpu()} "


def _compiler() -> str | None:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    return next((path for name in names if (path := shutil.which(name))), None)


def _folder() -> Path:
    """Folder for files that can be made again (the XDG base directory specification)."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nmt"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _fingerprint(compiler: str) -> str:
    """Hash of all that the library depends on; machines may share a home folder."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=SECONDS).stdout
    parts = [SOURCE.read_bytes(), version, " ".join(_flags()).encode(), platform.machine().encode(), _cpu().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@cache
def _cpu() -> str:
    """Features of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _flags() -> tuple[str, ...]:
    # tanh and exp take two thirds of the time with the wide vectors, which compilers do not use by default
    return (*FLAGS, "-mprefer-vector-width=512") if " avx512f " in f"{_cpu()} " else FLAGS


def _compile(compiler: str, path: Path) -> None:
    """Compiles to a temporary file, for several processes may do so at once."""
    log.detail(f"kernels: compiling them for this CPU, once ({compiler})")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        library = Path(folder) / path.name
        subprocess.run(
            [compiler, *_flags(), "-shared", "-fPIC", str(SOURCE), "-o", str(library)],
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=SECONDS,
        )
        library.replace(path)
