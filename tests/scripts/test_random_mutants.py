"""Faults drawn at random: what the operators yield, names, places, the draw, and verdicts in a small tree."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import random_mutants  # noqa: E402
from random_mutants import EQUIVALENT, PACKAGES, Bench, Fault, draw, faults_of, planted  # noqa: E402

FILE = "nmt/data/small.py"


def plant(fault: Fault, text: str) -> str:
    return planted(fault, text.encode()).decode()


@pytest.mark.parametrize(
    ("statement", "instead"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a >= b", {"x = a > b"}),
        ("x = a < b != c", {"x = a <= b != c", "x = a < b == c"}),
        ("x = a is b", {"x = a is not b"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a + b", {"x = a - b"}),
        ("x = (a - b) * c", {"x = (a + b) * c", "x = (a - b) / c"}),
        ("x = a // b", {"x = a * b"}),
        ("x = a % b", {"x = a * b"}),
        ("x = a & b", {"x = a | b"}),
        ("x = a << b", {"x = a >> b"}),
        ("x = a and b or c", {"x = (a or b) or c", "x = (a and b) and c"}),
        ("x = not a", {"x = a"}),
        ("x = -a", {"x = a"}),
        ("x[-1] = True", {"x[1] = True", "x[-2] = True", "x[-1] = False"}),
        ("x = 0.5", {"x = 1.0"}),
        ("x = 0.0", {"x = 1.0"}),
        ("x = max(a, b)", {"x = min(a, b)"}),
        ("x = a.argmin(b)", {"x = a.argmax(b)"}),
        ("x = a if b else c", {"x = a if not b else c"}),
        ("x = a if b == c else b", {"x = a if b != c else b"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if not a]"}),
        ("a.b(c)", {"pass"}),
        ("a += b", {"a -= b", "pass"}),
        ("while a: break", {"while not a: break", "while a: continue"}),
        ("if a < b: a()", {"if not a < b: a()", "if a <= b: a()", "if a < b: pass"}),
    ],
)
def test_each_operator_yields_its_changes(statement: str, instead: set[str]) -> None:
    text = f"def f(a, b, c):\n    {statement}\n"
    found = [ast.dump(ast.parse(plant(fault, text))) for fault in faults_of(FILE, text)]
    expected = {ast.dump(ast.parse(f"def f(a, b, c):\n    {each}\n")) for each in instead}
    assert len(found) == len(expected)
    assert set(found) == expected


@pytest.mark.parametrize(
    "text",
    [
        '"""1 + 2"""\nx = "a" + b\n',
        'def f(a: "int | None", b: Literal[1]) -> Literal[2]:\n    return f"{a + 1}"\n',
        "def f(a):\n    assert a > 1\n    raise ValueError(a + 1)\n",
        "def f(a, b):\n    return isinstance(a, int | str), zip(a, b, strict=True)\n",
        "if TYPE_CHECKING:\n    x = 1\n",
        "@cached(1)\ndef f(a):\n    logger.info(a)\n    return a\n",
        "__slots__ = (1,)\nNumber = int | float\nChoice: TypeAlias = Literal[1, 2]\n",
    ],
)
def test_what_is_no_behaviour_has_no_faults(text: str) -> None:
    assert faults_of(FILE, text) == []


def test_bounds_are_behaviour() -> None:
    text = "class A:\n    size: Annotated[int, Field(gt=0)] | None = 3\n"
    assert [fault.name for fault in faults_of(FILE, text)] == [
        f"{FILE} A.size: `Annotated[int, Field(gt=0)]` -> `Annotated[int, Field(gt=1)]`",
        f"{FILE} A.size: `{text.splitlines()[1].strip()}` -> `{text.splitlines()[1].strip()[:-1]}4`",
    ]


REPEATS = """\
class A:
    def f(self, a):
        x = a < 1
        y = a < 1
        return x

def f(a):
    return a < 1
"""


def test_names_are_unique_and_without_lines() -> None:
    faults = faults_of(FILE, REPEATS)
    names = [fault.name for fault in faults]
    assert names[0] == f"{FILE} A.f: `x = a < 1` -> `x = a <= 1`"
    assert f"{FILE} f: `return a < 1` -> `return a < 2`" in names
    assert len(set(names)) == len(names) == 6
    moved = faults_of(FILE, f"import math\n\n\n{REPEATS}")
    assert [fault.name for fault in moved] == names
    assert [fault.line for fault in moved] == [fault.line + 3 for fault in faults]
    again = faults_of(FILE, "def f(a):\n    g(a, 1)\n    g(a, 1)\n")
    assert [fault.name.partition(": ")[2] for fault in again] == [
        "`g(a, 1)` -> `pass`",
        "`g(a, 1)` -> `g(a, 2)`",
        "`g(a, 1)` -> `pass` #2",
        "`g(a, 1)` -> `g(a, 2)` #2",
    ]


def test_a_fault_changes_its_place_alone() -> None:
    text = 'def f(größe):\n    return g("äöü – …", größe < 1), 2  # ß\n'
    for fault in faults_of(FILE, text):
        changed = planted(fault, text.encode())
        compile(changed, FILE, "exec")
        assert changed.startswith(text.encode()[: fault.start])
        assert changed.endswith(text.encode()[fault.end :])
    found = {plant(fault, text) for fault in faults_of(FILE, text)}
    assert found == {text.replace("größe < 1", "(größe <= 1)"), text.replace("1", "2"), text.replace(", 2", ", 3")}


def test_the_draw_is_a_function_of_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = faults_of(FILE, REPEATS)
    drawn = draw(faults, 1, 4)
    assert draw(faults, 1, 4) == drawn
    assert draw(faults, 1, 6)[:4] == drawn
    assert any(draw(faults, seed, 4) != drawn for seed in range(2, 5))
    assert draw([fault for fault in faults if fault is not drawn[1]], 1, 3) == [drawn[0], *drawn[2:]]
    monkeypatch.setattr(random_mutants, "EQUIVALENT", {drawn[0].name: "a reason"})
    assert draw(faults, 1, 3) == drawn[1:]


def test_equivalent_faults_and_tests_are_there() -> None:
    files = {name.partition(" ")[0] for name in EQUIVALENT}
    names = {fault.name for file in files for fault in faults_of(file, (ROOT / file).read_text("utf-8"))}
    assert EQUIVALENT.keys() <= names
    assert [path for paths in PACKAGES.values() for path in paths if not (ROOT / path).exists()] == []


TESTS = """\
from pathlib import Path
from nmt.data.small import count

def test_never(): assert False
def test_once():
    seen = Path(__file__).with_suffix(".seen")
    is_first = not seen.exists()
    seen.touch()
    assert count(0) == 0 or not is_first
def test_count(): assert count(3) == 3
"""
SMALL = """\
def count(n):
    found = 0
    while found < n:
        found += 1
    return max(found, 0)
"""


@pytest.mark.slow
def test_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault is not caught by a test that fails without it too or only once, nor by a file that cannot be imported."""
    for path, text in {
        FILE: SMALL,
        "tests/data/test_small.py": TESTS,
        "tests/data/test_broken.py": "import nowhere\n",
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow: long']\naddopts = '--import-mode=importlib'\n",
    }.items():
        (tmp_path / "given" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "given" / path).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "scripts", tmp_path / "given" / "scripts")
    monkeypatch.setattr(random_mutants, "ROOT", tmp_path / "given")
    monkeypatch.setattr(random_mutants, "PARTS", ("nmt", "tests", "scripts", "pyproject.toml"))
    monkeypatch.setattr(random_mutants, "PACKAGES", {"data": ()})
    monkeypatch.setattr(random_mutants, "PATIENCE", 15.0)
    bench = Bench(tmp_path / "bench", 120.0, None)
    faults = {fault.name.partition(": ")[2]: fault for fault in faults_of(FILE, SMALL)}
    by = "tests/data/test_small.py::test_count"
    assert bench.judge(faults["`return max(found, 0)` -> `return max(found, 1)`"]) == ("survived", "no test fails")
    assert bench.judge(faults["`found < n` -> `found <= n`"]) == ("caught", by)
    assert bench.judge(faults["`found += 1` -> `pass`"]) == ("caught", f"{by} hangs")
    assert (tmp_path / "bench" / "tree" / FILE).read_text("utf-8") == SMALL
