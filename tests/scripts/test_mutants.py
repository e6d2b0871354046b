"""Planted faults: every one fits its function, and an edit is one of the syntax tree."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from mutants import MUTANTS, Mutant, planted  # noqa: E402


def test_each_fault_fits_its_function_and_has_its_tests() -> None:
    wrong = []
    for mutant in MUTANTS:
        try:
            ast.parse(planted(mutant, ROOT)[1])
        except LookupError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)
    assert all((ROOT / mutant.tests[0].split("::")[0]).exists() for mutant in MUTANTS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_an_edit_ignores_the_format_and_the_file_of_its_function(tmp_path: Path) -> None:
    (tmp_path / "nmt" / "search").mkdir(parents=True)
    (tmp_path / "nmt" / "search" / "other.py").write_text("def f(a, b):\n    return a + b\n", encoding="utf-8")
    file = tmp_path / "nmt" / "search" / "beam.py"
    file.write_text(
        "class Beam:\n    def f(self, a, b):\n        'é'; return 2 * (a\n            + b)\n", encoding="utf-8"
    )
    path, text = planted(Mutant("sign", "nmt.search:Beam.f", "a + b", "a - b", ()), tmp_path)
    assert path == file
    assert text.decode() == "class Beam:\n    def f(self, a, b):\n        'é'; return 2 * ((a - b))\n"
    for function, code in (("nmt.search:Beam.g", "a + b"), ("nmt.search:Beam.f", "a + a"), ("nmt.search:f", "a or b")):
        with pytest.raises(LookupError, match="0 times"):
            planted(Mutant("none", function, code, "a", ()), tmp_path)
