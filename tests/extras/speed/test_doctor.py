"""`nmt doctor` says what other ways of asking say."""

from __future__ import annotations

import importlib.metadata
import platform

import pytest
import torch

from nmt.extras.speed import doctor


def test_ten_lines_tell_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.findings()
    assert len(found) == 10
    assert not any("\n" in text for text in found.values())
    assert f"Python {platform.python_version()};" in found["version"]
    assert f"torch {torch.__version__}," in found["packages"]
    assert found["devices"].startswith(f"cpu ({torch.get_num_threads()} threads)")
    monkeypatch.setenv("NMT_KERNELS", "off")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert doctor.findings()["kernels"] == "none: NMT_KERNELS=off"
    monkeypatch.setenv("NMT_API_KEY", "s3cret")
    assert "OMP_NUM_THREADS=7" in doctor.findings()["terminal"]
    assert "s3cret" not in "".join(doctor.findings().values())  # they are pasted into reports


def test_extras_go_by_the_packages_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = ["torch>=2", 'ray[client]>=2; extra == "ray"', 'grpcio; extra == "ray"', 'onnx>=1; extra == "on-nx"']
    monkeypatch.setattr(doctor, "requires", lambda name: requirements)

    def version(name: str) -> str:
        if name in ("grpcio", "onnx"):
            return "1.0"
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", version)
    assert doctor.findings()["extras"].startswith("on-nx; missing: ray (pip install ")
