"""The library of kernels that is loaded, and what happens where there is none."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from nmt.core import cpu, log
from nmt.core.errors import InputError
from nmt.extras.speed import compiled

ROOT = Path(__file__).parents[3]


def installing() -> dict[str, list[str]]:
    """The options of the libraries that ``setup.py`` compiles, by their names."""
    found: dict[str, list[str]] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("setuptools.setup", lambda **settings: found.update(
            {each.name.rpartition(".kernels_")[2]: each.extra_compile_args for each in settings["ext_modules"]}
        ))  # fmt: skip
        runpy.run_path(str(ROOT / "setup.py"))
    return found


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("avx2 bmi2 f16c fma movbe", "x86_64_v3"),
        ("avx2 bmi2 f16c fma movbe avx512f avx512bw avx512cd avx512dq avx512vl", "x86_64_v3"),
        ("avx2 bmi2 f16c fma movbe avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni", "x86_64_v4_vnni"),
        (
            "avx2 bmi2 f16c fma movbe avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni avx512_bf16",
            "x86_64_v4_bf16",
        ),
        ("avx2", None),
        ("", None),
    ],
)
def test_the_cpu_chooses_the_library(
    features: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "SOURCE", tmp_path / "kernels.cpp")
    monkeypatch.setattr(cpu, "features", lambda: frozenset(features.split()))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for name in installing():
        (tmp_path / f"kernels_{name}.abi3.so").touch()
    if expected is None:
        with pytest.raises(InputError, match="did not know this CPU"):
            compiled.installed()
    else:
        assert compiled.installed() == tmp_path / f"kernels_{expected}.abi3.so"


@pytest.mark.skipif(compiled.compiled() is None, reason="no C++ compiler: PyTorch's operations are used")
def test_a_library_that_is_turned_off_or_damaged_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PyTorch's operations then compute the same; ``--verbose`` says why."""
    path = compiled.installed()
    (tmp_path / path.name).write_bytes(b"no library")
    log.set_verbosity(log.Verbosity.VERBOSE)
    monkeypatch.setattr(compiled, "SOURCE", tmp_path / "kernels.cpp")
    assert compiled.compiled.__wrapped__() is None
    said = capsys.readouterr().err
    assert said.startswith(f"kernels: PyTorch's own: {tmp_path / path.name}: ")
    assert said.count("\n") == 1
    monkeypatch.setenv("NMT_KERNELS", "off")
    assert compiled.compiled.__wrapped__() is None
    assert capsys.readouterr().err == "kernels: PyTorch's own: NMT_KERNELS=off\n"
