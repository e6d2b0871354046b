"""The CPU as files of several architectures name it, and its threads."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.core import cpu


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    cpu._info.cache_clear()
    yield
    cpu._info.cache_clear()


@pytest.mark.parametrize(
    ("text", "name", "features"),
    [
        ("processor\t: 0\nmodel name\t: X: 1.2 GHz\nflags\t\t: fpu avx2\n\nprocessor\t: 1\n", "X: 1.2 GHz", "fpu avx2"),
        ("processor\t: 0\nFeatures\t: fp asimd\n", platform.machine(), "fp asimd"),
        (None, platform.machine(), ""),
    ],
    ids=["x86", "ARM", "no file"],
)
def test_name_and_features(
    text: str | None, name: str, features: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(cpu, "Path", lambda path: tmp_path / Path(path).name)
    assert (cpu.name(), cpu.features()) == (name, set(features.split()))


@pytest.mark.parametrize(("value", "threads"), [("3", 3), ("", 7), ("0", 7), ("2,1", 7), (None, 7)])
def test_the_user_may_set_the_number_of_threads(
    value: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "core_count", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if value is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert cpu.thread_count() == threads
