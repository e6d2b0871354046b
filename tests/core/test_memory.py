"""Free memory that lies between what is kept goes back to the system."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from nmt.core import memory

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no malloc_trim")


def resident_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


@pytest.mark.parametrize(("since_s", "falls"), [(4.9, False), (5.1, True)])
def test_what_lies_between_goes_back_but_not_too_often(
    monkeypatch: pytest.MonkeyPatch, since_s: float, falls: bool
) -> None:
    monkeypatch.setattr(memory, "_last_s", -memory.EVERY_S)
    memory.give_back()  # what other tests have left free would be taken first
    before = resident_mib()
    blocks = [bytes(1000) for _ in range(100_000)]
    kept = blocks[::500]
    del blocks
    assert resident_mib() > before + 80

    monkeypatch.setattr(memory, "_last_s", 100.0)
    assert memory.EVERY_S == 5.0
    monkeypatch.setattr("time.monotonic", lambda: 100.0 + since_s)
    memory.give_back()
    assert len(kept) == 200
    assert (resident_mib() < before + 20) == falls
