"""Devices and precisions."""

from __future__ import annotations

import pytest

from nmt.core import device, log


def test_float32_is_explained_to_who_trains_or_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "_cpu_has_bfloat16", lambda: False)
    expected = "precision: float32, because this CPU has no bfloat16 matrix products (AVX512-BF16 or AMX)\n"
    assert device.compute("cpu", "auto").precision == "float32"
    assert capsys.readouterr().err == ""
    device.compute("cpu", "auto", notice=log.info)
    assert capsys.readouterr().err == expected
    monkeypatch.setattr(log, "_verbosity", log.Verbosity.VERBOSE)
    device.compute("cpu", "auto")
    assert capsys.readouterr().err == expected
