"""Free memory that lies between what is kept goes back to the system; what is imported is not looked through."""

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


def test_nothing_is_collected_while_pytorch_is_imported_and_what_it_made_is_not_looked_at_afterwards() -> None:
    program = """
import gc
from nmt.core.memory import importing
begun = []
gc.callbacks.append(lambda phase, info: begun.append(phase))
begun.clear()
with importing():
    import torch
during = len(begun)
print(during, gc.isenabled(), gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 10_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "0 True True True\n"


def test_a_fault_in_an_import_leaves_collection_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ModuleNotFoundError), memory.importing():
        importlib.import_module("nmt.of_no_such_name")
    assert gc.isenabled()
    gc.unfreeze()


def test_with_pytorch_there_nothing_is_taken_for_lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", gc)
    frozen = gc.get_freeze_count()
    with memory.importing():
        assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
