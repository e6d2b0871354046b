"""The faults that ``make mutants`` plants can be planted."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_fault_has_its_place_and_its_tests() -> None:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["mutants"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wrong = [each.name for each in module.MUTANTS if (ROOT / each.file).read_text("utf-8").count(each.text) != 1]
    assert not wrong
    assert all((ROOT / each.tests[0].split("::")[0]).exists() for each in module.MUTANTS)
    assert len({each.name for each in module.MUTANTS}) == len(module.MUTANTS)
