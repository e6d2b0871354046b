"""Regular expressions of the package take time in proportion to the text, whatever the text is.

Each pattern is found in the source and fed with texts of its own characters: something before, a pair repeated, and
something behind. The slowest short texts are then measured at n, at 4n and, where that took long, at 16n characters.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import pytest

import nmt
from nmt.data.segments import SourceLengths, split_long
from nmt.data.sentences import _LONGEST_LOOK, _WORD_BEFORE, UNPRINTABLE
from nmt.data.words import text_words
from nmt.extras.documents.files.markdown import _PATTERNS
from nmt.extras.documents.markup import Item
from nmt.extras.documents.transfer import _repetition

SHORT, LONGEST = 400, 32_000
"""Characters of the texts among which the slowest are found, and the most that their growth is measured on."""

MOST = 6000
"""Texts for one pattern."""

LONG_ENOUGH = 0.001
"""Seconds that can be measured on a busy machine."""

GROWTH = 8.0
"""Four times the length takes four times the time, and sixteen times where time is quadratic."""

METHODS = {
    **dict.fromkeys(("finditer", "sub", "subn", "split", "findall"), "finditer"),
    **{method: method for method in ("search", "match", "fullmatch")},
}


class Use(NamedTuple):
    """A pattern and the methods that are called on it."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


BUILT: dict[str, Callable[[], re.Pattern[Any]]] = {
    "nmt.data.sampling: '.+' if across else f'{_MARK}?[^{_MARK}]+|{_MARK}'": lambda: re.compile("▁?[^▁]+|▁", re.DOTALL),
    "nmt.data.sampling: f\"({'|'.join(map(re.escape, longest_first))})\"": lambda: re.compile("(aaab|aab|b)"),
    "nmt.extras.documents.files.markdown: _pattern(token)": lambda: re.compile(_PATTERNS["link_close"], re.DOTALL),
    "nmt.extras.documents.files.subtitles: '|'.join(borders)": lambda: re.compile("<x1/>|<x3/>"),
    "nmt.extras.documents.transfer: before + '\\\\s*'.join(map(re.escape, seen.split())) + after": lambda: _repetition(
        "2", Item("7", "word", 0, 1)
    ),
    "nmt.extras.pages.draw: f'(?<=: ){colour}(?=[;\\\\\"])'": lambda: re.compile('(?<=: )#ffffff(?=[;"])'),
    "nmt.training.run_directory: pattern": lambda: re.compile(r"(\d{8,})\.jsonl"),
    "nmt.translator.segmentation: f'(?!\\r\\n)[{UNPRINTABLE}]'": lambda: re.compile(f"(?!\r\n)[{UNPRINTABLE}]"),
}
"""Examples of the patterns that functions build of what only they know."""


def patterns() -> list[Use]:
    """Every pattern of the package with the methods that are called on its name; all where none are found."""
    names = [module.name for module in pkgutil.walk_packages(nmt.__path__, "nmt.")]
    # kernels are not Python, and those of Triton are there with PyTorch for CUDA alone
    left_out = ("__main__", ".kernels", ".short_attention")
    modules = [importlib.import_module(name) for name in names if not any(part in name for part in left_out)]
    trees = {module: ast.parse(Path(str(module.__file__)).read_bytes()) for module in modules}
    called: dict[str, set[str]] = defaultdict(set)
    for node in itertools.chain.from_iterable(map(ast.walk, trees.values())):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            called[ast.unparse(node.value).rpartition(".")[2]].add(METHODS[node.attr])
    found: dict[tuple[Any, int], tuple[str, set[str]]] = {}
    built: set[str] = set()
    for module, tree in trees.items():
        assigned: dict[int, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                assigned[id(node.value)] = ast.unparse(target)
        for node in ast.walk(tree):
            function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if not (isinstance(node, ast.Call) and function.startswith("re.")) or not (
                function == "re.compile" or function[3:] in METHODS
            ):
                continue
            if function == "re.compile":
                # PyYAML matches what it is given; what has no name else may be used in any way.
                unnamed = {"match"} if module.__name__.endswith("yaml_source") else set(METHODS.values())
                methods = called.get(assigned.get(id(node), ""), unnamed)
                arguments = node.args
            else:
                methods = {METHODS[function[3:]]}
                arguments = node.args[:1]
            flags = [keyword for keyword in node.keywords if keyword.arg == "flags"]
            made = ast.Call(ast.parse("re.compile", mode="eval").body, arguments, flags)
            try:
                pattern = eval(ast.unparse(made), {**vars(module), "re": re})
            except NameError:
                place = f"{module.__name__}: {ast.unparse(node.args[0])}"
                built.add(place)
                pattern = BUILT[place]()
            place = f"{module.__name__}: {pattern.pattern!r:.60}"
            found.setdefault((pattern.pattern, pattern.flags), (place, set()))[1].update(methods)
    assert built == set(BUILT)
    return [Use(place, re.compile(*key), frozenset(methods)) for key, (place, methods) in found.items()]


def nodes(tree: Any) -> Iterator[Any]:
    """All parts of a parsed pattern that match one character, and texts of more than one."""
    if isinstance(tree, _parser.SubPattern):
        for is_literal, group in itertools.groupby(tree, lambda node: node[0] is _parser.LITERAL):
            parts = list(group)
            if is_literal and len(parts) > 1:
                yield "".join(chr(code) for _, code in parts)
            for node in parts:
                if node[0] in (_parser.LITERAL, _parser.NOT_LITERAL, _parser.IN):
                    yield node
                else:
                    yield from nodes(node)
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from nodes(part)


def tokens(pattern: re.Pattern[Any]) -> list[str]:
    """One character of each sort that a pattern tells apart, and the texts that it has as they are."""
    # A pattern of bytes is treated as one of the same characters.
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    parsed = _parser.parse(text, pattern.flags)
    parts = list(nodes(parsed))
    candidates = dict.fromkeys('\x00a1 \nA_!"-.é中')
    sorts = []
    for node in parts:
        if isinstance(node, str):
            continue
        for operation, argument in node[1] if node[0] is _parser.IN else [node]:
            if operation in (_parser.LITERAL, _parser.NOT_LITERAL):
                candidates[chr(argument)] = None
            elif operation is _parser.RANGE:
                candidates |= dict.fromkeys(map(chr, argument))
        single = _parser.SubPattern(parsed.state, [node])
        sorts.append(_compiler.compile(single, pattern.flags))
    chosen: dict[tuple[bool, ...], str] = {}
    for candidate in candidates:
        chosen.setdefault(tuple(bool(sort.match(candidate)) for sort in sorts), candidate)
    return [*chosen.values(), *dict.fromkeys(part for part in parts if isinstance(part, str))]


def texts(pattern: re.Pattern[Any]) -> list[Callable[[int], str]]:
    """Texts of any length: repeated pairs with something behind, or with something before and a NUL behind; at random
    where there are too many."""
    parts = tokens(pattern)
    ends = [("", part) for part in parts] + [(part, "\x00") for part in parts]
    kinds = [(pair, *end) for pair in itertools.combinations_with_replacement(parts, 2) for end in ends]
    if len(kinds) > MOST:
        kinds = random.Random(1).sample(kinds, MOST)
    return [partial(repeated, *kind) for kind in kinds]


def repeated(pair: tuple[str, str], before: str, behind: str, size: int) -> str:
    """A text of about ``size`` characters."""
    unit = pair[0] if pair[0] == pair[1] else "".join(pair)
    return before + (unit * (size // len(unit) + 1))[:size] + behind


def seconds(pattern: re.Pattern[Any], method: str, text: str) -> float:
    """Processor time of one call."""
    subject = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    call = getattr(pattern, method)
    begin = time.process_time()
    found = call(subject)
    if method == "finditer":
        for _ in found:
            pass
    return time.process_time() - begin


def slow_texts(use: Use, most: int = 6) -> Iterator[str]:
    """Yields those of the slowest short texts on which the time grows too fast, in every measurement."""
    for method in sorted(use.methods):
        timed = [
            (seconds(use.pattern, method, text(SHORT)), order, text) for order, text in enumerate(texts(use.pattern))
        ]
        for _, _, text in sorted(timed, key=lambda each: each[:2], reverse=True)[:most]:
            size = SHORT
            while seconds(use.pattern, method, text(size)) < LONG_ENOUGH and size < LONGEST:
                size *= 2
            for _ in range(3):
                # noise makes times longer only: a long one is measured again, a short one must be the least
                once = min(seconds(use.pattern, method, text(size)) for _ in range(2))
                longer = seconds(use.pattern, method, text(4 * size))
                if longer < max(GROWTH * once, LONG_ENOUGH):
                    break
                # above some size every match fetches its memory from the system anew: a step, which comes only once
                if seconds(use.pattern, method, text(16 * size)) < GROWTH * longer:
                    break
            else:
                yield f"{use.place} {method}: {size} like {text(12)!r} take {once:.3f} s, 4 times as many {longer:.3f}"


def test_every_pattern_takes_time_in_proportion_to_the_text() -> None:
    uses = patterns()
    assert len(uses) > 50
    assert [found for use in uses if use.pattern.pattern != _WORD_BEFORE.pattern for found in slow_texts(use)] == []


def test_the_pattern_that_sees_a_few_characters_is_quick_on_them() -> None:
    for text in texts(_WORD_BEFORE):
        assert min(seconds(_WORD_BEFORE, "search", text(_LONGEST_LOOK)) for _ in range(3)) < 0.005


@pytest.mark.parametrize("text", [r"\s*\n", "[.!]+ ", "%[0#]*0*d"])
def test_a_pattern_of_quadratic_time_is_found(text: str) -> None:
    assert next(slow_texts(Use("here", re.compile(text), frozenset(("finditer",)))))


@pytest.mark.parametrize(
    "text", [".", ". ", " ", "1", "1-", "a", "a.", '"', "(", "-", "…", "。", "「。」", "「", "\r", "! ", "12. mai "]
)
def test_a_long_line_is_split_in_time_in_proportion_to_its_length(text: str) -> None:
    def timed(size: int) -> float:
        line = (text * size)[:size] + "a"
        begin = time.process_time()
        pieces = split_long(line, len, SourceLengths(40, 60))
        assert pieces
        text_words(line)
        return time.process_time() - begin

    assert any(timed(32_000) < max(GROWTH * timed(8_000), 0.05) for _ in range(4))
