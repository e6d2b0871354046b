"""The same seed, configuration and machine give the same bits, whatever is built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflows.families import FAMILIES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The fingerprints that two processes come to, which order what they hash, and the files of a folder, otherwise."""
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.workflows.families", str(tmp_path_factory.mktemp(f"process{number}"))],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": str(number)},
        )
        for number in (1, 2)
    ]  # fmt: skip
    found = []
    for process in begun:
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr.decode()
        found.append(json.loads(stdout))
    return found


@pytest.mark.parametrize("family", list(FAMILIES))
def test_two_processes_train_the_same_weights(family: str, twice: list[dict[str, str]]) -> None:
    one, other = twice
    assert one[family] == other[family]


def test_other_families_have_other_weights(twice: list[dict[str, str]]) -> None:
    """Otherwise the fingerprints would show nothing."""
    assert len(set(twice[0].values())) == len(twice[0])
