"""Return of free memory to the system, and garbage collection around the import of PyTorch."""

from __future__ import annotations

import gc
import importlib
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.core import memory


def resident_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no malloc_trim")
@pytest.mark.parametrize(("since_s", "falls"), [(4.9, False), (5.1, True)])
def test_free_pages_go_back_but_not_too_often(monkeypatch: pytest.MonkeyPatch, since_s: float, falls: bool) -> None:
    monkeypatch.setattr(memory, "_last_trim_s", -memory.TRIM_INTERVAL_S)
    memory.malloc_trim()  # memory that other tests have freed would otherwise count
    before = resident_mib()
    blocks = [bytes(1000) for _ in range(100_000)]
    kept = blocks[::500]
    del blocks
    assert resident_mib() > before + 80

    monkeypatch.setattr(memory, "_last_trim_s", 100.0)
    assert memory.TRIM_INTERVAL_S == 5.0
    monkeypatch.setattr("time.monotonic", lambda: 100.0 + since_s)
    memory.malloc_trim()
    assert len(kept) == 200
    assert (resident_mib() < before + 20) == falls


def test_imported_objects_are_never_scanned() -> None:
    program = """
import gc
from nmt.core.memory import gc_paused
events = []
gc.callbacks.append(lambda phase, info: events.append(phase))
events.clear()
with gc_paused():
    import torch
during = len(events)
print(during, gc.isenabled(), gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 10_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "0 True True True\n"


def test_collection_is_on_after_a_failed_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ModuleNotFoundError), memory.gc_paused():
        importlib.import_module("nmt.no_such_module")
    assert gc.isenabled()
    gc.unfreeze()


def test_nothing_is_frozen_where_pytorch_is_imported_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", gc)
    frozen = gc.get_freeze_count()
    with memory.gc_paused():
        assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
