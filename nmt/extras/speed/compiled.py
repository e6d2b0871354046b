"""The library that ``kernels.cpp`` is compiled to, by ``setup.py`` when nmt is installed. Nothing is compiled later."""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from pathlib import Path

from nmt.core import cpu, log
from nmt.core.errors import InputError

SOURCE = Path(__file__).with_name("native") / "kernels.cpp"
SWITCH = "NMT_KERNELS"
"""The environment variable that turns the kernels off (``off``)."""
NEEDED = {
    "x86_64_v4_bf16": "avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni avx512_bf16 bmi2 fma",
    "x86_64_v4_vnni": "avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni bmi2 fma",
    "x86_64_v3": "avx2 bmi2 f16c fma movbe",
    "aarch64": "",
    "arm64": "",
}
"""CPU features that each library of ``setup.py`` needs, the fastest library first."""


@cache
def compiled() -> ctypes.CDLL | None:
    """Loads the library; returns None if there is none for this CPU or it is turned off. PyTorch's operations then
    compute the same, and ``--verbose`` gives the reason."""
    try:
        loaded = ctypes.CDLL(str(installed()))
        return loaded if loaded.payments_float32 else None  # that of an older version lacks it
    except (InputError, OSError, AttributeError) as error:
        log.detail(f"kernels: PyTorch's own: {error}")
        return None


def installed() -> Path:
    """Finds the fastest library that was installed and that this CPU can execute. Raises InputError if there is
    none."""
    if (switch := os.environ.get(SWITCH)) == "off":
        raise InputError(f"{SWITCH}=off")
    if switch:
        log.warning(f"{SWITCH}={switch}: is not off, and changes nothing")
    machine, features = platform.machine(), cpu.features()
    for name, needed in NEEDED.items():
        if name.startswith(machine) and features.issuperset(needed.split()):
            for path in SOURCE.parent.glob(f"kernels_{name}.*"):
                return path
    raise InputError("nmt was installed without them: there was no C++ compiler, or it did not know this CPU")
