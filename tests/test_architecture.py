"""Rules for the files of nmt: each has tests under its name, a class name means one thing, no imports go in circles."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import grimp
import networkx
import pytest

ROOT = Path(__file__).resolve().parents[1]
trees = cache(lambda: {path: ast.parse(path.read_bytes()) for path in sorted((ROOT / "nmt").rglob("*.py"))})


def files_without_tests() -> Sequence[str]:
    """Returns sources with code that have no file of tests: a/b/c.py is tested by tests/a/b/test_c.py, or, with the
    rest of its folder, by tests/a/test_b.py."""
    missing = []
    for path, tree in trees().items():
        file = path.relative_to(ROOT / "nmt")
        folder, stem = file.parent, file.stem.strip("_")
        tests = [folder / f"test_{folder.name or 'nmt' if file.stem == '__init__' else stem}.py"]
        if len(file.parts) > 2:
            tests.append(folder.parent / f"test_{folder.name}.py")
        has_code = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)
        if has_code and not any((ROOT / "tests" / test).exists() for test in tests):
            missing.append(f"nmt/{file}: no tests/{tests[0]}")
    return missing


def class_names_for_two_things() -> Sequence[str]:
    """Returns the names that several classes have."""
    files = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(str(path.relative_to(ROOT)))
    return [f"{name}: {', '.join(paths)}" for name, paths in files.items() if len(paths) > 1]


def circles() -> Sequence[str]:
    """Returns the groups of modules that import each other, anywhere but for types."""
    graph = grimp.build_graph("nmt", exclude_type_checking_imports=True, cache_dir=None)
    modules = graph.modules - {"nmt"}  # which imports nmt.api on the first use of nmt.load
    edges = [(one, other) for one in modules for other in graph.find_modules_directly_imported_by(one)]
    components = networkx.strongly_connected_components(networkx.DiGraph(edges))
    return [" ".join(sorted(circle)) for circle in components if len(circle) > 1]


@pytest.mark.parametrize("violations", [files_without_tests, class_names_for_two_things, circles])
def test_no_file_breaks_a_rule(violations: Callable[[], Sequence[str]]) -> None:
    assert violations() == []
