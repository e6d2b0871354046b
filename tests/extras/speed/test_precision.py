"""The precision of the fastest products."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import nmt
from nmt.core import cpu, device
from nmt.extras.speed import precision


@pytest.fixture
def has_instructions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cpu, "features", lambda: frozenset({"avx512_bf16"}))
    precision.fastest_on_cpu.cache_clear()
    yield
    precision.fastest_on_cpu.cache_clear()


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (3.0, ("bfloat16", "this CPU multiplies it 3 times as fast as float32")),
        (1.1, ("float32", "this CPU multiplies bfloat16 only 1.1 times as fast")),
        (0.55, ("float32", "this CPU multiplies bfloat16 only 0.55 times as fast")),
    ],
)
@pytest.mark.usefixtures("has_instructions")
def test_an_instruction_set_is_no_speed(
    gain: float, expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[torch.dtype] = []

    def seconds(dtype: torch.dtype) -> float:
        calls.append(dtype)
        disturbed = 9.0 if len(calls) in (1, 2, 5, 6) else 0.0  # first calls, and another program
        return disturbed + (1.0 if dtype == torch.float32 else 1 / gain)

    monkeypatch.setattr(precision, "_seconds", seconds)
    assert precision.fastest_on_cpu() == expected
    assert calls == [torch.float32, torch.bfloat16] * 6, "in turn"
    nmt.accelerate()
    assert device.compute("cpu", "auto").precision == expected[0]


@pytest.mark.usefixtures("has_instructions")
def test_measuring_takes_some_milliseconds() -> None:
    assert 0 < precision._seconds(torch.float32) < 5
    assert precision.fastest_on_cpu()[0] in ("float32", "bfloat16")


def test_without_instructions_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "features", lambda: frozenset({"avx2"}))
    monkeypatch.setattr(precision, "_seconds", lambda _: pytest.fail("measured"))
    precision.fastest_on_cpu.cache_clear()
    assert precision.fastest_on_cpu() == ("float32", "this CPU has no bfloat16 matrix products (AVX512-BF16 or AMX)")
    precision.fastest_on_cpu.cache_clear()
