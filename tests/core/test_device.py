"""Devices and precisions."""

from __future__ import annotations

import pytest

from nmt.core import device, log


def test_float32_is_explained_to_who_trains_or_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "FASTEST", {})
    expected = "precision: float32, because the speed of no other is known\n"
    assert device.compute("cpu", "auto").precision == "float32"
    assert capsys.readouterr().err == ""
    device.compute("cpu", "auto", notice=log.info)
    assert capsys.readouterr().err == expected
    monkeypatch.setattr(log, "_verbosity", log.Verbosity.VERBOSE)
    device.compute("cpu", "auto")
    assert capsys.readouterr().err == expected
