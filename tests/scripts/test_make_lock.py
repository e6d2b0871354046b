"""``requirements.lock`` says what ``constraints.txt`` says, with hashes."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.make_lock import without_torch

ROOT = Path(__file__).resolve().parents[2]


def pins(text: str) -> set[str]:
    """Name and version of each requirement, in one spelling."""
    found = re.findall(r"^([\w.-]+)==([\w.+-]+)", text, re.MULTILINE)
    return {f"{name.lower().replace('_', '-')}=={version}" for name, version in found}


def test_the_lock_has_the_pinned_versions_of_all_core_dependencies() -> None:
    lock, constraints = ((ROOT / name).read_text("utf-8") for name in ("requirements.lock", "constraints.txt"))
    assert pins(lock) <= pins(constraints)
    core = (ROOT / "pyproject.toml").read_text("utf-8").partition("\ndependencies = [")[2].partition("\n]")[0]
    names = {name.lower() for name in re.findall(r'^    "([\w-]+)>=[\d.]+,<\d+"', core, re.MULTILINE)}
    assert len(names) == core.count(">=")
    assert names - {pin.partition("==")[0] for pin in pins(lock)} == {"torch"}


def test_each_requirement_has_hashes_and_no_place() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    blocks = re.split(r"\n(?=\w)", lock)[1:]
    assert len(blocks) >= len(pins(lock))
    for block in blocks:
        requirement, *hashes = block.replace(" \\", "").splitlines()
        assert "==" in requirement
        assert hashes
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes), requirement
    assert "://" not in lock


def test_what_belongs_to_one_build_of_pytorch_is_left_out() -> None:
    first, last = "a==1 \\\n    --hash=x\n", "torchfoo==3 \\\n    --hash=v\n"
    left_out = "nvidia-b==13 ; sys_platform == 'linux' \\\n    --hash=y \\\n    --hash=z\ntorch==2 \\\n    --hash=w\n"
    assert without_torch(first + left_out + last) == first + last
