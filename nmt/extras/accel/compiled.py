"""The library that ``kernels.cpp`` is compiled to, by ``setup.py`` when nmt is installed.

Nothing is compiled later, unless ``NMT_KERNELS=compile`` asks for a library made for this very CPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import time
from functools import cache
from pathlib import Path

from nmt.core import cpu, log
from nmt.core.errors import InputError

SOURCE = Path(__file__).with_name("native") / "kernels.cpp"
SWITCH = "NMT_KERNELS"
"""The environment variable that turns the kernels off (``off``) or has them compiled for this CPU (``compile``)."""
NEEDED = {
    "x86_64_v4_vnni": "avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni bmi2 fma",
    "x86_64_v3": "avx2 bmi2 f16c fma movbe",
    "aarch64": "",
    "arm64": "",
}
"""Features of the CPU that each library of ``setup.py`` needs, the fastest library first."""
OPTIONS = (
    *("-O3", "-std=c++17", "-march=native"),
    *("-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
)
SECONDS = 120
"""Limit of the time of a compiler; ten are usual."""


@cache
def compiled() -> ctypes.CDLL | None:
    """The library; None where there is none for this CPU or it is turned off. PyTorch's operations then compute the
    same, and ``--verbose`` gives the reason."""
    try:
        path = _compiled_here() if os.environ.get(SWITCH) == "compile" else installed()
        return ctypes.CDLL(str(path))
    except (InputError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        reason = " ".join(str(getattr(error, "stderr", None) or error).split())[:500]
        (log.warning if os.environ.get(SWITCH) == "compile" else log.detail)(f"kernels: PyTorch's own: {reason}")
        return None


def installed() -> Path:
    """The fastest library that was installed and that this CPU can execute. Raises InputError for none."""
    if os.environ.get(SWITCH) == "off":
        raise InputError(f"{SWITCH}=off")
    machine, features = platform.machine(), cpu.features()
    for name, needed in NEEDED.items():
        if name.startswith(machine) and features.issuperset(needed.split()):
            for path in SOURCE.parent.glob(f"kernels_{name}.*"):
                return path
    raise InputError("nmt was installed without them: there was no C++ compiler, or it did not know this CPU")


@cache
def multiplies_tiles() -> bool:
    """True if the CPU has a unit for products of tiles of bytes (AMX), which PyTorch uses."""
    return "amx_int8" in cpu.features()


def _compiled_here() -> Path:
    """The library for this CPU in the user's cache, compiled there once."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    compiler = next((found for name in names if (found := shutil.which(name))), None)
    if compiler is None:
        raise InputError(f"there is no C++ compiler ({', '.join(names)})")
    options = [*OPTIONS, *(["-mprefer-vector-width=512"] if "avx512f" in cpu.features() else [])]
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=SECONDS).stdout
    # machines may share a home folder
    parts = [
        SOURCE.read_bytes(),
        version,
        " ".join(options).encode(),
        platform.machine().encode(),
        " ".join(sorted(cpu.features())).encode(),
    ]
    path = _cache() / f"kernels-{hashlib.sha256(b'/'.join(parts)).hexdigest()[:16]}.so"
    if path.exists():
        _refuse_foreign(path)
        return path
    for partial in path.parent.glob("*.partial-*"):  # of a machine that went down
        if partial.stat().st_mtime < time.time() - 2 * SECONDS:
            partial.unlink(missing_ok=True)
    log.info(f"kernels: compiling them for this CPU, once ({compiler})")
    # a shell, so that what has begun is ended, or cleared away, when nmt is killed meanwhile
    script = 'umask 077; to=$1 part=$1.partial-$$; shift; "$@" -o "$part" && mv "$part" "$to" || ! rm -f "$part"'
    command = ["sh", "-c", script, "", str(path), compiler, *options, "-shared", "-fPIC", str(SOURCE)]
    subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=True, timeout=SECONDS, start_new_session=True
    )
    return path


def _cache() -> Path:
    """The user's folder for files that can be made again (XDG base directory specification: a relative path is to be
    ignored). Raises InputError where others could put a library."""
    given = Path(os.environ.get("XDG_CACHE_HOME") or "")
    folder = (given if given.is_absolute() else Path.home() / ".cache") / "nmt"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(folder)
    return folder


def _refuse_foreign(path: Path) -> None:
    """Raises InputError unless a file or folder belongs to the user and no one else may write to it."""
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or path.is_symlink():
        raise InputError(f"{path}: must belong to you, and no one else may write to it (chmod go-w); nothing is loaded")
