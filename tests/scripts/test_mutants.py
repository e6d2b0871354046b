"""Faults that scripts/mutants.py plants: what the operators yield, the draw, the known ones, and verdicts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="faults are drawn with cosmic-ray")

import mutants


def plant(folder: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    monkeypatch.setattr(mutants, "ROOT", folder)
    mutants.suspects.cache_clear()
    mutants.passes.cache_clear()


@pytest.mark.parametrize(
    ("statement", "instead"),
    [
        ("x = a < b != c", {"x = a <= b != c", "x = a < b == c"}),
        ("x = a is b", {"x = a is not b"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = (a - b) * c", {"x = (a + b) * c", "x = (a - b) / c"}),
        ("x = a and b or c", {"x = a or b or c", "x = a and b and c"}),
        ("x[-1] = True", {"x[1] = True", "x[-2] = True", "x[-1] = False"}),
        ("x = a if b else c", {"x = a if not b else c"}),
        ("for a in b: break", {"for a in []: break", "for a in b: continue"}),
        ("a.b(c)", {"pass"}),
        ("a += b", {"pass"}),
        ("assert a < b", set()),
        ("raise ValueError(a + 1)", set()),
        ("x: int | None = f'{a + 1}'", set()),
        ("'é – ß'; x = not a", {"'é – ß'; x = a"}),
    ],
)
def test_each_operator_yields_its_changes(
    statement: str, instead: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "@cached(1)\ndef f(a, b: Literal[1]) -> int | None:\n    {}\n"
    plant(tmp_path, monkeypatch, {"nmt/data/small.py": text.format(statement)})
    faults = [ast.dump(ast.parse(fault.text)) for fault in mutants.drawn(1)]
    assert sorted(faults) == sorted(ast.dump(ast.parse(text.format(each))) for each in instead)


REPEATS = "def f(a):\n    x = a < 1\n    y = a < 1\n    return x\n\ndef g(a):\n    return not a\n"


def test_the_draw_depends_on_the_seed_and_not_on_other_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, monkeypatch, {"nmt/data/small.py": REPEATS})
    changes = [[fault.name.partition(" ")[2] for fault in mutants.drawn(seed)] for seed in range(8)]
    assert len(set(map(tuple, changes))) > 1
    assert {len(of_seed) for of_seed in changes} == {5}
    plant(tmp_path, monkeypatch, {"nmt/data/small.py": f"import math\n\n\n{REPEATS}", "nmt/data/other.py": "x = 'a'\n"})
    assert [[fault.name.partition(" ")[2] for fault in mutants.drawn(seed)] for seed in range(8)] == changes


def test_known_faults_are_where_they_are_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = mutants.known()
    assert len({fault.name for fault in faults}) == len(faults) > 40
    for fault in faults:
        ast.parse(fault.text)
        assert mutants.suspects(fault.file), fault.name
    (tmp_path / "known.yaml").write_text("nmt/data:\n  moved:\n    - a + b\n    - a - b\n", encoding="utf-8")
    plant(tmp_path, monkeypatch, {"nmt/data/one.py": "x = a + b\n", "nmt/data/two.py": "y = a + b\n"})
    monkeypatch.setattr(mutants, "KNOWN", tmp_path / "known.yaml")
    with pytest.raises(LookupError, match=r"moved: nmt/data has 'a \+ b' 2 times, not once"):
        mutants.known()


def test_the_likeliest_tests_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = {
        "data/test_small.py": "",
        "cli/test_a.py": "from nmt.data import big, small\n",
        "data/test_b.py": "from nmt.data.big import c\n",
        "cli/test_c.py": "import nmt.data\n",
        "cli/test_small.py": "import nmt.cli\n",
    }
    plant(tmp_path, monkeypatch, {f"tests/{name}": text for name, text in tests.items()})
    assert mutants.suspects("nmt/data/small.py") == [f"tests/{name}" for name in list(tests)[:4]]


TESTS = """\
from nmt.data.small import count

def test_count(): assert count(3) == 3
"""
SMALL = "def count(n):\n    found = 0\n    while found < n:\n        found += 1\n    return max(found, 0)\n"


@pytest.mark.slow
def test_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A fault is not caught by a test that fails without it too."""
    options = "[tool.pytest.ini_options]\nmarkers = ['slow: long']\naddopts = '--import-mode=importlib'\n"
    files = {"nmt/data/small.py": SMALL, "tests/data/test_small.py": "import nowhere\n", "pyproject.toml": options}
    plant(tmp_path, monkeypatch, {**files, "tests/data/test_more.py": TESTS})
    monkeypatch.setattr(mutants, "PYTEST", mutants.PYTEST.replace("timeout=60", "timeout=2"))
    assert mutants.main(["--jobs", "2"]) == 1
    verdicts = {
        line.partition(" s  ")[2].partition(": ")[2]: line.split()[0] for line in capsys.readouterr().err.splitlines()
    }
    assert verdicts["while found <= n:"] == verdicts["while not found < n:"] == "caught"
    assert verdicts["return max(found, 1)"] == "survived"
    assert (tmp_path / "nmt/data/small.py").read_text("utf-8") == SMALL
