"""Plants faults in a copy of nmt, one at a time, and runs the tests that should catch each.

    python scripts/mutants.py --seed 26 --count 100      faults drawn at random over all of nmt
    python scripts/mutants.py --known                    those of scripts/mutants.yaml
    python scripts/mutants.py --seed 26 --list           what would be planted

The operators are those of cosmic-ray, one replacement for each place, and ``Extra`` (DeMillo, Lipton & Sayward 1978,
"Hints on Test Data Selection"; Offutt et al. 1996, "An Experimental Determination of Sufficient Mutant Operators").
What no test can see is left out: annotations, assertions, messages, decorators. A fault's place in the draw is a
function of the seed, its file and the text of its line: a change elsewhere moves none.

The tests of a fault in nmt/a/b.py are, in this order, tests/a/test_b.py, those that import nmt.a.b, those of tests/a,
and those that import nmt.a. A file of tests catches a fault if it fails with it, or hangs, and passes without it. Exit
code 0: at least 95 in a hundred drawn faults are caught, or all known ones. A survivor may be an equivalent program.
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.testing import TestOutcome, run_tests
from parso.python.tree import Keyword

ROOT = Path(__file__).resolve().parent.parent
KNOWN = ROOT / "scripts" / "mutants.yaml"
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "runs", "build", "dist")
NO_OPERATOR = ("endmarker", "fstring_string", "name", "newline", "string")
"""Kinds of nodes that no operator changes."""
CHOSEN = re.compile(
    r"core/(AddNot|ExceptionReplacer|NumberReplacer|ZeroIterationForLoop|Replace[A-Z][a-z]+With[A-Z][a-z]+"
    r"|ReplaceUnaryOperator_Delete_.*|Replace(Binary|Comparison)Operator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|Pow_Mul"
    r"|FloorDiv_Mul|Mod_Mul|BitAnd_BitOr|BitOr_BitAnd|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is))"
)
PYTEST = (
    "env -C {root} PYTHONPATH={root} OMP_NUM_THREADS=1 prlimit --as=16000000000 {python} -m pytest -x -q"
    " -p no:cacheprovider -m 'not slow' -o faulthandler_timeout=60 -o faulthandler_exit_on_timeout=true {test}"
)
"""Runs a file of tests; a fault may let a loop take all memory, or all time."""


class Extra(Operator):  # type: ignore[misc]
    """Removes a call that is a statement or an augmented assignment, and swaps ``in`` and ``not in``."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        """Yields the place of a node that changes."""
        above = node.parent.type if node.parent else ""
        is_call = node.type == "atom_expr" and above == "simple_stmt" and node.children[-1].type == "trailer"
        is_in = above == "comparison" and node.get_code().split() in (["in"], ["not", "in"])
        is_augmented = node.type == "expr_stmt" and re.fullmatch(r"[-+*/|]+=", node.children[1].get_code().strip())
        if is_call or is_in or is_augmented:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Returns the replacement."""
        text = {"in": "not in", "not in": "in"}.get(" ".join(node.get_code().split()), "pass")
        return Keyword(text, node.start_pos, node.get_first_leaf().prefix)

    examples = classmethod(lambda cls: ())


OPERATORS = {name: get_operator(name)() for name in operator_names() if CHOSEN.fullmatch(name)} | {"extra": Extra()}


@dataclass(frozen=True)
class Fault:
    """A file of nmt, and its text with the fault."""

    name: str
    file: str
    text: str


def drawn(seed: int, only: str = "") -> Iterator[Fault]:
    """Yields faults of all modules of nmt whose path contains a text, in a random order."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / "nmt").rglob("*.py")}
    places = [place for file, text in texts.items() if only in file for place in _places(file, text)]
    for _, file, name, number, line in sorted(places, key=lambda place: random.Random(f"{seed} {place[0]}").random()):
        text = mutate_code(texts[file], OPERATORS[name], number)
        if _behaviour(text) != _behaviour(texts[file]):
            yield Fault(f"{file}:{line} {name}: {text.splitlines()[line - 1].strip()}", file, text)


def _places(file: str, text: str) -> Iterator[tuple[str, str, str, int, int]]:
    """Yields key, file, operator, number and line of each place where an operator applies."""
    lines, counts = text.splitlines(), Counter[str]()
    for node in ast_nodes(get_ast(text)):
        for name, operator in {} if node.type in NO_OPERATOR else OPERATORS.items():
            for first, ((line, _), _) in enumerate(operator.mutation_positions(node)):
                key = f"{file} {name} {lines[line - 1].strip()}"
                if not first:
                    yield f"{key} {counts[key]}", file, name, counts[name], line
                    counts[key] += 1
                counts[name] += 1


def _behaviour(text: str) -> str:
    """Returns the syntax tree of a module without the parts whose changes no test can see."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        vars(node).update(annotation=None, returns=None, decorator_list=[])
        match node:
            case ast.Assert() | ast.Raise() | ast.JoinedStr() | ast.keyword(arg="strict"):
                vars(node).clear()
    return ast.dump(tree)


def known() -> list[Fault]:
    """Reads the faults of mutants.yaml. Raises LookupError if the text of one is not there, or more than once."""
    faults = []
    for folder, entries in yaml.safe_load(KNOWN.read_text("utf-8")).items():
        texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py")}
        for name, (before, after) in entries.items():
            files = [file for file, text in texts.items() for _ in range(text.count(before))]
            if len(files) != 1:
                raise LookupError(f"{KNOWN.name}: {name}: {folder} has {before!r} {len(files)} times, not once")
            faults.append(Fault(f"{files[0]} {name}", files[0], texts[files[0]].replace(before, after)))
    return faults


@functools.cache
def suspects(file: str) -> list[str]:
    """Returns the files of tests that may catch a fault of a file, the likeliest first."""
    *folders, stem = (part.strip("_") for part in Path(file).with_suffix("").parts[1:])
    room = "/".join(folders[: 2 if folders[:1] == ["extras"] else 1]) or "workflows"
    package = ".".join(["nmt", *folders])
    imports = re.compile(rf"\b{package}\.{stem}\b|\b{package} import .*\b{stem}\b")
    ranks = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        test, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        is_near = test.startswith(f"tests/{room}/")
        is_named = is_near and path.stem in [f"test_{name}" for name in (stem, *folders[-1:])]
        reasons = is_named, bool(imports.search(text)), is_near, f"nmt.{room.replace('/', '.')}" in text
        if any(reasons):
            ranks[test] = [
                *(not reason for reason in reasons),
                text.count("nmt."),
                test,
            ]  # one that imports little first
    return sorted(ranks, key=lambda test: ranks[test])


@functools.cache
def passes(test: str, seconds: float, fault: Fault | None = None) -> bool:
    """Runs a file of tests in a copy of the repository."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(ROOT, Path(folder) / "copy", ignore=IGNORED, symlinks=True)
        if fault:
            (copy / fault.file).write_text(fault.text, "utf-8")
        return run_tests(PYTEST.format(root=copy, python=sys.executable, test=test), seconds)[0] is TestOutcome.SURVIVED


def judge(fault: Fault, seconds: float) -> bool:
    """Runs tests until one catches the fault, or the time is over; reports the verdict."""
    begun = time.monotonic()
    # after the limit no further file of tests is begun
    tests = itertools.takewhile(lambda test: time.monotonic() < begun + seconds, suspects(fault.file))
    by = next((test for test in tests if not passes(test, seconds, fault) and passes(test, seconds)), "")
    took = round(time.monotonic() - begun)
    verdict = "caught" if by else "survived"
    print(json.dumps({"name": fault.name, "value": verdict, "by": by, "seconds": took}, ensure_ascii=False), flush=True)
    print(f"{verdict:<8} {took:>5} s  {fault.name}", file=sys.stderr, flush=True)
    return bool(by)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=100, help="faults to draw")
    parser.add_argument("--known", action="store_true", help=f"the faults of {KNOWN.name} instead")
    parser.add_argument("--only", metavar="TEXT", default="", help="those of files whose path contains this")
    parser.add_argument("--list", action="store_true", help="print the faults, and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time")
    parser.add_argument("--seconds", type=float, default=300.0, help="after which no more tests are tried for a fault")
    options = parser.parse_args(arguments)
    if options.known:
        faults = [fault for fault in known() if options.only in fault.file]
    else:
        faults = list(itertools.islice(drawn(options.seed, options.only), options.count))
    if options.list:
        print(*(fault.name for fault in faults), sep="\n")
        return 0
    with ThreadPoolExecutor(options.jobs) as executor:
        caught = sum(executor.map(lambda fault: judge(fault, options.seconds), faults))
    print(f"{caught} of {len(faults)} faults are caught", file=sys.stderr)
    return int(caught < len(faults) * (1 if options.known else 0.95))


if __name__ == "__main__":
    sys.exit(main())
