"""Draws faults at random from all that the standard operators yield, plants each, and sees whether the tests catch it.

    python scripts/random_mutants.py --seed 26 --count 100 --results drawn.jsonl
    python scripts/random_mutants.py --seed 26 --count 100 --list

The operators are those of mutation testing (DeMillo, Lipton & Sayward 1978; Offutt et al. 1996, "An Experimental
Determination of Sufficient Mutant Operators"): relations, arithmetic, logic, constants, negated conditions, removed
statements. A fault has a name without line numbers, and its place in the draw is a function of seed and name: a change
elsewhere moves none. Equivalent faults, which change no result, are left out by name. Exit code 0: at least 95 % are
caught.

A fault is caught by a test that fails, alone too, with it and passes without it, or that hangs with it. With
``--coverage``, a file of ``pytest --cov=nmt --cov-context=test`` (`pip install pytest-cov`), whose tree must still be
where it was, the tests that run the place come first.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import json
import math
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mutants import PARTS, ROOT, scopes

if TYPE_CHECKING:
    import pytest


def _workflows(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/workflows/test_{name}.py" for name in names)


PACKAGES: Mapping[str, tuple[str, ...]] = {
    "attention": ("tests/models", *_workflows("every_mechanism"), "tests/docs"),
    "search": (
        "tests/models",
        *_workflows("translate_options", "commands"),
        *("tests/translator", "tests/extras/service"),
    ),
    "alignment": (
        *_workflows("align_links", "align_text", "align_methods", "align_both_directions"),
        *_workflows("align_html", "align_together", "evaluate_alignment", "choose_heads", "commands"),
        *("tests/extras/aligner", "tests/extras/pages", "tests/translator", "tests/fuzz"),
    ),
    "models": (
        *("tests/search", "tests/training", "tests/attention", "tests/extras/exchange/export", "tests/extras/aligner"),
        *_workflows("golden", "commands", "score", "info"),
    ),
    "training": (
        *("tests/fuzz/test_mended.py", "tests/models", "tests/learning", "tests/extras/pages"),
        *_workflows("resume", "determinism", "killed", "stopped", "average", "snapshots", "terminal", "golden"),
        *_workflows("commands"),
    ),
    "data": (
        *_workflows("commands", "golden", "score", "any_files"),
        *("tests/training", "tests/fuzz", "tests/docs", "tests/extras/exchange/convert", "tests/extras/cluster"),
    ),
    "cli": ("tests/workflows", "tests/docs"),
    "config": ("tests/attention", "tests/models", "tests/docs", *_workflows("commands", "init_config", "resume")),
    "core": ("tests/fuzz", "tests/data", "tests/training", "tests/docs", *_workflows("commands", "stopped", "killed")),
    "evaluation": (
        "tests/training",
        "tests/extras/pages",
        *_workflows("commands", "score", "average", "translate_options"),
    ),
    "nn": ("tests/models", "tests/attention", "tests/extras/speed", *_workflows("golden", "determinism")),
    "ops": ("tests/models", "tests/search", "tests/extras/speed"),
    "translator": (
        *_workflows("commands", "translate_options", "library", "align_text", "align_together", "context", "score"),
        *_workflows("languages", "stranger", "line_breaks", "output_files"),
        *("tests/extras/service", "tests/extras/cluster", "tests/extras/documents", "tests/fuzz"),
    ),
    "workflows": ("tests/training", "tests/data", "tests/docs", "tests/scripts", "tests/extras"),
    "extras": ("tests/docs", *_workflows("commands", "info")),
    "extras/speed": (
        "tests/cuda/test_without_cuda.py",
        "tests/search",
        "tests/models",
        "tests/translator",
        *_workflows("commands"),
    ),
    "extras/corpus/augment": _workflows("commands"),
    "extras/decoding": ("tests/search", "tests/extras/service", *_workflows("translate_options")),
    "extras/exchange/convert": ("tests/extras/exchange/export", "tests/fuzz", *_workflows("commands")),
    "extras/exchange/export": ("tests/extras/exchange/convert", "tests/extras/service", *_workflows("commands")),
    "extras/documents": (
        *("tests/translator", "tests/extras/service", "tests/docs"),
        *_workflows("translate_options", "commands"),
    ),
    "extras/pages": (
        *_workflows("align_html", "align_links", "choose_heads", "info", "snapshots"),
        *_workflows("commands"),
        *("tests/docs", "tests/examples"),
    ),
    "extras/corpus/languages": ("tests/data", "tests/translator", *_workflows("commands", "languages")),
    "extras/corpus/pair_filter": ("tests/scripts", "tests/extras/pages", *_workflows("commands")),
    "extras/cluster": _workflows("commands"),
    "extras/service": ("tests/fuzz", *_workflows("commands")),
    "extras/aligner": (
        *_workflows("align_links", "align_text", "align_methods", "choose_heads", "commands"),
        *("tests/scripts", "tests/data", "tests/extras/speed"),
    ),
    "": (
        *_workflows("library", "translate_options", "commands"),
        "tests/config",
        "tests/docs",
        "tests/extras",
        "tests/packaging",
    ),
}
"""Tests of each package of nmt, besides those of its own folder; the modules beside the packages come last."""

EQUIVALENT: Mapping[str, str] = {
    "nmt/data/batching.py prefixed: `any((corpus.prefix for corpus in store.corpora))` -> "
    "`all((corpus.prefix for corpus in store.corpora))`": "all corpora have languages or none has: another is an error",
    "nmt/extras/service/listening.py connections_at_most: `2048 if resource is None else resource.getrlimit("
    "resource.RLIMIT_NOFILE)…` -> `2049 if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)…`": (
        "read on Windows alone"
    ),
    "nmt/extras/aligner/hmm.py _equal: `(np.zeros(0, np.float32), FARTHEST_JUMP)` -> "
    "`(np.zeros(1, np.float32), FARTHEST_JUMP)`": "stands where nothing is ever read",
    "nmt/data/splitting.py survey: `len(words) < MOST_WORDS` -> `len(words) <= MOST_WORDS`": (
        "one more line may add words, and no more than MOST_WORDS of them are told"
    ),
    "nmt/data/batching.py _cuts: `max(config.batch_tokens // int(lengths[begin]), 1)` -> "
    "`max(config.batch_tokens // int(lengths[begin]), 2)`": (
        "a window of 2 in place of 1, where two pairs have more tokens than a batch may have: the cut is the same"
    ),
    "nmt/search/beam.py BeamSearch.__call__: `batch * MIN_FINISHED_SHARE` -> `batch / MIN_FINISHED_SHARE`": (
        "sentences that are done stay in the batch, where they change nothing: only time"
    ),
    "nmt/data/sampling.py BpeSampler._merge: `list(range(1, len(text) + 1))` -> `list(range(1, len(text) + 2))`": (
        "one entry more at the end of a list that is read by places of characters alone"
    ),
}
"""Faults that change no result, with the reason."""

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.And: ast.Or, ast.Or: ast.And, ast.Continue: ast.Break, ast.Break: ast.Continue,
}  # fmt: skip
OPPOSITES = (
    ("min", "max"), ("any", "all"), ("amin", "amax"), ("argmin", "argmax"), ("minimum", "maximum"), ("floor", "ceil"),
    ("zeros", "ones"), ("zeros_like", "ones_like"), ("new_zeros", "new_ones"), ("sum", "mean"),
)  # fmt: skip
OPPOSITE = dict(OPPOSITES) | {second: first for first, second in OPPOSITES if first != "sum"}
EXACT_OPPOSITES = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
"""Relations whose negation is their neighbour: a condition of one is not negated once more."""

CAP = 400
"""Covering tests that are run for a fault; after them come those of its package."""
PATIENCE = 120.0
"""Seconds without an end of a test, after which it is stopped."""
HANGS = 4.0
"""Ratio of its time to that without the fault, from which on a test that was stopped counts as one that hangs."""
MEMORY = 14 << 30
"""Address space of the tests: a fault may let a loop take all that there is."""
TASK = "NMT_RANDOM_MUTANTS"

Verdict = Literal["caught", "survived"]


@dataclass(frozen=True)
class Fault:
    """A place in a file, and its replacement."""

    name: str
    file: str
    scope: str
    """Qualified name of the innermost function or class; empty: the module."""
    lines: tuple[int, int]
    """Lines of the statement, or of its head: the first and the last."""
    line: int
    start: int
    end: int
    """Byte after the place; ``start`` counts bytes too."""
    instead: bytes


def faults_of(file: str, text: str) -> list[Fault]:
    """Faults of a module's text, by place."""
    finder = _Finder(file, text)
    finder.visit(ast.parse(text))
    found = sorted(finder.found, key=lambda fault: (fault.start, fault.end, fault.instead))
    seen: Counter[str] = Counter()
    numbered = []
    for fault in found:
        seen[fault.name] += 1
        number = f" #{seen[fault.name]}" if seen[fault.name] > 1 else ""
        numbered.append(replace(fault, name=fault.name + number))
    return numbered


def all_faults(root: Path) -> list[Fault]:
    """Faults of every module of nmt."""
    found = []
    for path in sorted((root / "nmt").rglob("*.py")):
        found += faults_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    return found


def package_of(file: str) -> str:
    """Name in ``PACKAGES`` of the innermost package that holds a file."""
    folders = file.split("/")[1:-1]
    names = ("/".join(folders[:depth]) for depth in range(len(folders), 0, -1))
    return next((name for name in names if name in PACKAGES), "")


def draw(faults: Iterable[Fault], seed: int, count: int) -> list[Fault]:
    """Faults at the head of a random order, without equivalent ones."""
    shuffled = sorted(faults, key=lambda fault: random.Random(f"{seed} {fault.name}").random())
    return [fault for fault in shuffled if fault.name not in EQUIVALENT][:count]


def planted(fault: Fault, text: bytes) -> bytes:
    """Text of the file with the fault."""
    return text[: fault.start] + fault.instead + text[fault.end :]


class _Finder:
    """Walks over a tree with the nodes above at hand: they give a fault its name."""

    def __init__(self, file: str, text: str) -> None:
        self.found: list[Fault] = []
        self._file = file
        self._starts = [0]
        for line in text.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def visit(self, node: ast.AST, field: str = "", above: tuple[ast.AST, ...] = (), is_type: bool = False) -> None:
        """Visits a node and its descendants. ``field`` is the field of its parent, the last of ``above``. Of types,
        only the bounds are behaviour."""
        if _is_no_behaviour(node):
            return
        is_type = (is_type or field in ("annotation", "returns") or _holds_types(node)) and not _is_bound(node)
        for new in () if is_type else _variants(node, field, above):
            self._add(node, new, above)
        for name, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            if name == "decorator_list" or (name in ("test", "body") and _is_for_types(node)):
                continue
            if name == "args" and isinstance(node, ast.Call) and _called(node) in ("isinstance", "issubclass"):
                children = children[:1]
            for child in children:
                if isinstance(child, ast.AST):
                    self.visit(child, name, (*above, node), is_type)

    def _add(self, node: ast.AST, new: ast.AST, above: tuple[ast.AST, ...]) -> None:
        scopes = [n for n in above if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        scope = ".".join(n.name for n in scopes)
        statement = [n for n in (*above, node) if isinstance(n, ast.stmt)][-1]
        body = getattr(statement, "body", None)
        last = max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno or statement.lineno
        place: Any = node
        text = ast.unparse(new)
        if isinstance(new, ast.expr) and not isinstance(new, ast.Constant | ast.Name):
            text = f"({text})"  # its operator may bind less than that which it replaces
        where = ".".join(filter(None, (scope, _constant(statement, above))))
        before, after = _shown(node, new, above)
        self.found.append(
            Fault(
                f"{self._file} {where or 'module'}: `{before}` -> `{after}`",
                self._file,
                scope,
                (statement.lineno, last),
                place.lineno,
                self._starts[place.lineno - 1] + place.col_offset,
                self._starts[place.end_lineno - 1] + place.end_col_offset,
                text.encode(),
            )
        )


def _variants(node: ast.AST, field: str, above: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    """Yields nodes that may replace a node."""
    match node:
        case ast.Compare():
            for index, relation in enumerate(node.ops):
                yield _with(node, ops=[*node.ops[:index], SWAPPED[type(relation)](), *node.ops[index + 1 :]])
        case ast.BinOp() if type(node.op) in SWAPPED and not (_is_text(node.left) or _is_text(node.right)):
            if not isinstance(node.op, ast.BitOr) or any(isinstance(n, ast.FunctionDef) for n in above):
                yield _with(node, op=SWAPPED[type(node.op)]())  # | of a module joins types
        case ast.BoolOp():
            yield _with(node, op=SWAPPED[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool() as flag):
            yield ast.Constant(not flag)
        case ast.Constant(value=int() as number):
            yield ast.Constant(number + 1)
        case ast.Constant(value=float() as real):
            yield ast.Constant(2 * real or 1.0)
        case ast.Name() if field == "func" and node.id in OPPOSITE and node.id != "sum":
            yield _with(node, id=OPPOSITE[node.id])
        case ast.Attribute() if field == "func" and node.attr in OPPOSITE:
            yield _with(node, attr=OPPOSITE[node.attr])
        case ast.Expr(value=ast.Call() as call) if not _logs(call):
            yield ast.Pass()
        case ast.AugAssign():
            yield ast.Pass()
            if type(node.op) in SWAPPED and not _is_text(node.value):
                yield _with(node, op=SWAPPED[type(node.op)]())
        case ast.Continue() | ast.Break():
            yield SWAPPED[type(node)]()
    condition = field == "test" and isinstance(above[-1], ast.If | ast.While | ast.IfExp)
    if isinstance(node, ast.expr) and (condition or field == "ifs") and not _negates_otherwise(node):
        yield ast.UnaryOp(ast.Not(), node)


def _negates_otherwise(node: ast.expr) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], EXACT_OPPOSITES)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _shown(node: ast.AST, new: ast.AST, above: tuple[ast.AST, ...]) -> tuple[str, str]:
    """Source before and after, on one line: the smallest enclosing expression or simple statement that says enough."""
    before, after, inner = ast.unparse(node), ast.unparse(new), node
    for outer in reversed(above):
        simple = isinstance(outer, ast.expr | ast.keyword | ast.Assign | ast.AnnAssign | ast.Return | ast.Expr)
        if not simple or len(before) >= 24:
            break
        for name, value in ast.iter_fields(outer):
            index = next((i for i, n in enumerate(value) if n is inner), None) if isinstance(value, list) else None
            if value is inner or index is not None:
                put = new if index is None else [*value[:index], new, *value[index + 1 :]]
                new = _with(outer, **{name: put})
        before, after, inner = ast.unparse(outer), ast.unparse(new), outer
    before, after = " ".join(before.split()), " ".join(after.split())
    differs = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    return _window(before, differs), _window(after, differs)


def _window(text: str, place: int, width: int = 72) -> str:
    begin = max(0, min(place - width // 2, len(text) - width))
    return "…" * (begin > 0) + text[begin : begin + width] + "…" * (begin + width < len(text))


def _constant(statement: ast.stmt, above: tuple[ast.AST, ...]) -> str:
    """Name that a statement of a class or module gives a value."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return "" if any(isinstance(node, ast.FunctionDef) for node in above) else name
    return ""


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _logs(node: ast.Call) -> bool:
    return ast.unparse(node.func).split(".")[0] in ("logger", "logging", "warnings")


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING"


def _is_no_behaviour(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Raise():
            return True
        case ast.keyword(arg="strict"):
            return True  # of zip: checks as assert does
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
    return False


def _holds_types(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Annotated", "Literal")


def _is_bound(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) == "Field"


@dataclass(frozen=True)
class Stage:
    """Tests that one process of pytest runs."""

    files: tuple[str, ...]
    only: tuple[str, ...] = ()
    """Test ids; none: all of the files."""


@dataclass(frozen=True)
class Run:
    """Outcome of a stage."""

    code: int | None
    """Exit code of pytest; None: it was stopped."""
    started: frozenset[str]
    failed: str
    """Id of the first test that failed, or in which it was stopped; empty: none."""
    broken: frozenset[str]
    """Files that could not be collected."""
    seconds: float
    """Time of that test, or the last, or of pytest where none began."""


class Covering:
    """Tests by the lines that they run."""

    def __init__(self, path: str) -> None:
        data = importlib.import_module("coverage").CoverageData(path)  # no dependency: it is for this option alone
        data.read()
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._paths: dict[str, Path] = {}
        self._cost: Counter[str] = Counter()
        for file in data.measured_files():
            tail = "nmt/" + file.rpartition("/nmt/")[2]
            self._lines[tail], self._paths[tail] = data.contexts_by_lineno(file), Path(file)
            for contexts in self._lines[tail].values():
                self._cost.update(contexts)  # the more lines a test runs, the longer it takes, by and large
        self._of_file: dict[str, set[str]] = defaultdict(set)
        for context in self._cost:
            self._of_file[context.partition("::")[0]].add(context.rpartition("|")[0])

    def tests(self, fault: Fault, text: str) -> tuple[str, ...]:
        """Test ids, at most CAP, evenly of their files, the fastest files first; ``text``: the file's as it is now."""
        if fault.file not in self._lines:
            return ()
        then = self._paths[fault.file].read_text(encoding="utf-8")
        old, new = scopes(then).get(fault.scope), scopes(text).get(fault.scope)
        if old is None or new is None:
            return ()
        first, last = getattr(old, "lineno", 1), getattr(old, "end_lineno", sys.maxsize)
        contexts: set[str] = set()
        if ast.dump(old) == ast.dump(new):
            moved = first - getattr(new, "lineno", 1)
            contexts = self._between(fault.file, fault.lines[0] + moved, fault.lines[1] + moved)
        contexts = contexts or self._between(fault.file, first, last)
        by_file: dict[str, list[str]] = defaultdict(list)
        for context in sorted(contexts or self._between(fault.file, 0, sys.maxsize)):
            by_file[context.partition("::")[0]].append(context)
        left, chosen = CAP, {}
        for rank, file in enumerate(sorted(by_file, key=lambda file: len(by_file[file]))):
            ids = sorted({context.rpartition("|")[0] for context in by_file[file]})
            if any(context.endswith("|setup") for context in by_file[file]):
                ids = sorted(self._of_file[file])  # a fixture may serve more tests than that which made it
            count = min(len(ids), left // (len(by_file) - rank))
            chosen[file] = [ids[i * len(ids) // count] for i in range(count)]
            left -= count
        cost = {file: sum(self._cost[c] for c in some) / len(some) for file, some in by_file.items()}
        return tuple(test for file in sorted(chosen, key=lambda file: cost[file]) for test in chosen[file])

    def _between(self, file: str, first: int, last: int) -> set[str]:
        of_lines = (tests for line, tests in self._lines[file].items() if first <= line <= last)
        return {test for tests in of_lines for test in tests} - {""}


class Bench:
    """A copy of the toolkit, in which one fault at a time is planted."""

    def __init__(self, folder: Path, limit: float, covering: Covering | None) -> None:
        self._root, self._limit, self._covering = folder / "tree", limit, covering
        self._notes = folder / "notes"
        self._faultless: dict[str, float] = {}
        """See ``_seconds``."""
        self._broken: frozenset[str] = frozenset()
        """Test files that cannot be collected here, without the rest of the repository."""
        for part in PARTS:
            (shutil.copytree if (ROOT / part).is_dir() else _copied)(ROOT / part, self._root / part)

    def judge(self, fault: Fault) -> tuple[Verdict, str]:
        """Verdict, and by which test or why."""
        path = self._root / fault.file
        sound = path.read_bytes()
        bad = planted(fault, sound)
        stages = self._stages(fault, sound.decode())
        end = time.monotonic() + self._limit
        done = {test for test, seconds in self._faultless.items() if seconds == math.inf}
        try:
            while stages and time.monotonic() < end:
                path.write_bytes(bad)
                run = self._run(stages[0], done, end - time.monotonic())
                done |= run.started
                if run.code in (0, 5):
                    stages.pop(0)
                    continue
                path.write_bytes(sound)
                seconds = self._seconds(run.failed) if run.failed else self._collected(stages[0])
                path.write_bytes(bad)
                if run.code is None and run.seconds > HANGS * seconds:
                    return "caught", f"{run.failed or 'collection'} hangs"
                if run.code is not None and seconds < math.inf and (not run.failed or self._fails(run.failed)):
                    return "caught", run.failed or "collection"
            return "survived", "the limit ended it" if stages else "no test fails"
        finally:
            path.write_bytes(sound)

    def _seconds(self, test: str) -> float:
        """Time of a test without a fault; inf: it does not pass."""
        if test not in self._faultless:
            run = self._run(Stage((test.partition("::")[0],), (test,)), (), self._limit)
            self._faultless[test] = run.seconds if run.code == 0 else math.inf
        return self._faultless[test]

    def _collected(self, stage: Stage) -> float:
        """Time of a stage's collection without a fault, or inf; files that have none are left out from now on."""
        run = self._run(stage, (), self._limit, collect=True)
        self._broken |= run.broken
        return run.seconds if run.code in (0, 5) else math.inf

    def _fails(self, test: str) -> bool:
        """Repeats a test alone: it may have failed by chance, or by what other tests left behind."""
        return self._run(Stage((test.partition("::")[0],), (test,)), (), self._limit).code not in (0, 5)

    def _stages(self, fault: Fault, text: str) -> list[Stage]:
        package = package_of(fault.file)
        inside = fault.file.removeprefix("nmt/").removeprefix(package).removesuffix(".py").strip("/").split("/")
        folder = f"tests/{package}".rstrip("/") if package else "tests/workflows"
        stages = []
        if self._covering is not None:
            ids = self._covering.tests(fault, text)
            for own in (True, False):
                part = tuple(i for i in ids if i.startswith(f"{folder}/") == own)
                files = tuple(dict.fromkeys(i.partition("::")[0] for i in part))
                files = tuple(file for file in files if (self._root / file).exists())
                stages += [Stage(files, part)] if files else []
        by_import = not isinstance(scopes(text)[fault.scope], ast.FunctionDef | ast.AsyncFunctionDef)
        names = [*inside, "config"] if by_import else inside
        named = sorted({path for name in names for path in (self._root / folder).rglob(f"test_{name}*.py")})
        if named:
            # what an import runs is tied to no test by coverage
            first = 0 if by_import else len(stages)
            stages.insert(first, Stage(tuple(path.relative_to(self._root).as_posix() for path in named)))
        return [*stages, Stage((folder, *PACKAGES[package]))]

    def _run(self, stage: Stage, without: Iterable[str], limit: float, collect: bool = False) -> Run:
        if self._broken.issuperset(stage.files):
            return Run(5, frozenset(), "", frozenset(), 0.0)
        log = self._notes.with_suffix(".log")
        log.write_text("", encoding="utf-8")
        self._notes.write_text(json.dumps({"only": stage.only, "without": sorted(without)}), encoding="utf-8")
        paths = f"{self._root}{os.pathsep}{self._root / 'scripts'}"
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "random_mutants"]
        command += ["--collect-only" if collect else "-x", "-m", "not slow"]
        files = [file for file in stage.files if file not in self._broken]
        command += [*(f"--ignore={file}" for file in self._broken), *files]
        begun = time.time()
        process = subprocess.Popen(
            command, cwd=self._root, env={**environment, TASK: str(self._notes)}, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if sys.platform == "linux":
            import resource

            resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
        while process.poll() is None:
            time.sleep(0.05)
            if time.time() - begun > limit or time.time() - max(begun, log.stat().st_mtime) > PATIENCE:
                break
        code = process.poll()
        if sys.platform != "win32":
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what the tests started may outlive them
        process.kill()
        process.wait()
        events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.endswith("]")]
        broken = frozenset(test for event, test, _ in events if event == "broken")
        running = {test: when for event, test, when in events if event == "start"}
        failed = next((test for event, test, _ in events if event == "failed"), "")
        if not failed and code != 0 and events and events[-1][0] == "start":
            failed = events[-1][1]  # stopped, or ended by a crash
        since = running.get(failed, max(running.values(), default=begun))
        until = events[-1][2] if events and code is not None else time.time()
        return Run(code, frozenset(running), failed, broken, until - since)


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    shutil.copy(source, target)


def _note(event: str, test: str) -> None:
    with Path(os.environ[TASK]).with_suffix(".log").open("a", encoding="utf-8") as log:
        log.write(json.dumps([event, test, time.time()]) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves the tests that the stage names: this file is pytest's plugin too."""
    task = json.loads(Path(os.environ[TASK]).read_text(encoding="utf-8"))
    only, without = set(task["only"]), set(task["without"])
    items[:] = [item for item in items if item.nodeid not in without and (not only or item.nodeid in only)]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Notes a file that cannot be collected."""
    if report.failed:
        _note("broken", report.nodeid)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Notes that a test begins."""
    _note("start", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes that a test failed."""
    if report.failed:
        _note("failed", report.nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Notes that a test has ended."""
    _note("end", nodeid)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="faults to draw")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time; default: one a CPU")
    parser.add_argument("--list", action="store_true", help="show them and do nothing")
    parser.add_argument("--only", metavar="TEXT", default="", help="those drawn whose name holds this")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="for the tests of one fault")
    parser.add_argument(
        "--coverage", metavar="FILE", help="of pytest --cov=nmt --cov-context=test: which test runs what"
    )
    parser.add_argument("--results", metavar="FILE", type=Path, help="verdicts, and those that are there already")
    options = parser.parse_args(arguments)
    drawn = [f for f in draw(all_faults(ROOT), options.seed, options.count) if options.only in f.name]
    if not drawn:
        print(f"error: --only {options.only}: no fault that is drawn has that in its name", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{fault.name} ({fault.file}:{fault.line})" for fault in drawn))
        return 0
    verdicts: dict[str, Verdict] = {}
    if options.results is not None and options.results.exists():
        lines = map(json.loads, options.results.read_text(encoding="utf-8").splitlines())
        verdicts = {line["name"]: line["verdict"] for line in lines}
    covering = None if options.coverage is None else Covering(options.coverage)
    benches: queue.Queue[Bench] = queue.Queue()
    lock = threading.Lock()

    def judge(fault: Fault) -> None:
        bench = benches.get()
        begun = time.monotonic()
        verdict, why = bench.judge(fault)
        benches.put(bench)
        with lock:
            verdicts[fault.name] = verdict
            place = f" ({fault.file}:{fault.line}): {why}" if verdict == "survived" else ""
            print(f"{verdict:<8} {fault.name}{place}", flush=True)
            if options.results is not None:
                seconds = round(time.monotonic() - begun)
                line = {"name": fault.name, "verdict": verdict, "by": why, "seconds": seconds}
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as executor:
        for job in range(options.jobs):
            benches.put(Bench(Path(folder) / str(job), options.limit, covering))
        for done in [executor.submit(judge, fault) for fault in drawn if fault.name not in verdicts]:
            done.result()
    caught = sum(verdicts[fault.name] == "caught" for fault in drawn)
    print(f"{caught} of {len(drawn)} faults are caught")
    return 0 if 100 * caught >= 95 * len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
