"""Parser of YAML and `--set` overrides to a plain tree with the line of each key.

Plain words follow YAML 1.2, not 1.1: `1e-3` is a number, `no`, `on` and `12:30` are text, `010` is ten. Only plain data
can be built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from nmt.core.errors import InputError
from nmt.core.files import read_whole, reading

Place: TypeAlias = tuple[str | int, ...]
"""A path into the tree: keys and list indices, outermost first."""

Tree: TypeAlias = Any
"""Plain YAML data: dict with str keys, list, str, int, float, bool or None."""

Marker: TypeAlias = Callable[[yaml.Node], str]
"""Function from a node to the mark of its line."""

MAX_BYTES = 1 << 20
MAX_ENTRIES = 100_000
MAX_CHARACTERS = 4 << 20
MAX_DEPTH = 50
"""Limits of a configuration, against aliases of aliases that would fill the memory."""

MAX_DIGITS = 100
"""Maximum number of digits of a whole number; Python takes long for thousands of digits."""


class Override(str):
    """A `dotted.key=value` that comes from an option or argument; errors name it by `mark`, such as "--beam 3".

    With `is_text` the value is text, even if YAML would read it otherwise: `no`, `null`, `1`, `>>fra<<`."""

    mark: str
    is_text: bool

    def __new__(cls, override: str, mark: str, *, is_text: bool = False) -> Override:
        made = super().__new__(cls, override)
        made.mark, made.is_text = mark, is_text
        return made

    @classmethod
    def text(cls, key: str, option: str, value: str) -> Override:
        """Creates the override of an option whose value is text."""
        return cls(f"{key}={value}", f"{option} {value}", is_text=True)

    def __reduce__(self) -> tuple[Callable[..., Override], tuple[str, str]]:
        return partial(Override, is_text=self.is_text), (str(self), self.mark)


@dataclass(frozen=True)
class Document:
    """A configuration before validation: a plain tree and the mark of each place in it.

    `marks` holds a mark ("config.yaml:12" or "--set seed=3") for the root and for every key and list entry. The inner
    places of an override's value have the mark of the override. `named` are the places of `Override`s, whose marks
    already name the key.
    """

    tree: dict[str, Tree]
    marks: Mapping[Place, str]
    named: frozenset[Place] = frozenset()

    def mark(self, place: Place) -> str:
        """Returns the mark of `place`, or of the innermost place with a mark that encloses it."""
        while place not in self.marks:
            place = place[:-1]
        return self.marks[place]


def load_document(path: Path, overrides: Sequence[str] = ()) -> Document:
    """Read a YAML file and apply `dotted.key=value` overrides in order.

    Raises InputError for an unreadable file, invalid YAML, a duplicate key and a malformed override.
    """
    with reading(path):
        try:
            data = read_whole(path, most=MAX_BYTES)
        except IsADirectoryError:
            raise InputError(f"{path}: is a folder, but a YAML file is needed") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text (byte 0x{data[error.start]:02x})") from None
    return parse_document(text, str(path), overrides)


def parse_document(text: str, name: str, overrides: Sequence[str] = ()) -> Document:
    """Parse YAML text; `name` is the file name in marks and errors. See `load_document`."""
    node = _compose(text, lambda line: f"{name}:{line}")
    if node is None:
        raise InputError(f"{name}: is empty; a configuration needs at least one 'key: value' line")
    marks: dict[Place, str] = {(): f"{name}:{node.start_mark.line + 1}"}
    tree = _construct(node, (), lambda part: f"{name}:{part.start_mark.line + 1}", marks, frozenset())
    if not isinstance(tree, dict):
        raise InputError(f"{marks[()]}: expected 'key: value' lines, found {describe(tree)}")
    named = {_override(tree, marks, override) for override in overrides}
    if _characters(tree) > MAX_CHARACTERS:
        raise InputError(f"{name}: more than {MAX_CHARACTERS:,} characters of text; do aliases multiply them?")
    return Document(tree, marks, frozenset(filter(None, named)))


def write(tree: Tree) -> str:
    """Writes plain data as YAML text that parses to the same data; keys keep their order."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000))


def dotted(place: Place) -> str:
    """Formats a place in the notation of `--set`: model.encoder.layers."""
    return ".".join(str(step) for step in place)


def leaves(tree: Tree, place: Place = ()) -> Iterator[tuple[Place, Tree]]:
    """Yields the values of a tree that are not dictionaries with entries (a list is one value), with their places."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from leaves(value, (*place, key))
    else:
        yield place, tree


def describe(value: Tree) -> str:
    """Describes a value for an error message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"text {clip(repr(value))}"
    if isinstance(value, dict):
        return "keys with values"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return clip(str(value))


def clip(text: str, limit: int = 80) -> str:
    """Shortens text to one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class _Loader(yaml.SafeLoader):
    """Parser from text to nodes, with the plain words of YAML 1.2."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - replaces PyYAML's own

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        # checked here, because the scanner takes seconds to reach Python's recursion limit
        self.depth = getattr(self, "depth", 0) + 1
        if self.depth > MAX_DEPTH:
            raise RecursionError
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """Writer with the same plain words, so that round trips are exact."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - replaces PyYAML's own

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # PyYAML reads an unquoted U+0085 as a line break; with double quotes it writes an escape
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_str)

INTEGER = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
NUMBER = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(_[0-9]+)*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
for _tag, _pattern, _first in (
    # PyYAML selects patterns by the first character of a word; "" is for the empty word
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), [*"tTfF"]),
    ("null", re.compile(r"~|null|Null|NULL|"), [*"~nN", ""]),
    ("int", INTEGER, [*"-+0123456789"]),
    ("float", NUMBER, [*"-+.0123456789"]),
):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern.pattern})\Z"), _first)


def _compose(text: str, mark: Callable[[int], str]) -> yaml.Node | None:
    """Returns the root node; None for empty text. `mark` names a line in errors."""
    try:
        return _Loader(text).get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{mark(line)}: the character U+{error.character:04X} is not allowed in YAML") from None
    except yaml.MarkedYAMLError as error:
        position = error.problem_mark or error.context_mark
        problem = " ".join((error.problem or error.context or "bad syntax").split())
        if problem == "but found another document":
            problem = "a second document starts here; a configuration is one"
        if "'\\t'" in problem:
            problem = "indented with a tab; use spaces"
        raise InputError(f"{mark(position.line + 1 if position else 1)}: not valid YAML: {problem}") from None
    except RecursionError:
        raise InputError(f"{mark(1)}: nested too deeply") from None
    except (ValueError, OverflowError):  # chr() of an escape beyond the last character
        raise InputError(f"{mark(1)}: not valid YAML: an escape that is not a character") from None


def _construct(node: yaml.Node, place: Place, mark: Marker, marks: dict[Place, str], open_: frozenset[int]) -> Tree:
    """Builds plain data from a node; adds the mark of each place to `marks`. `open_` holds the enclosing nodes."""
    here = mark(node)
    if id(node) in open_:
        raise InputError(f"{here}: an alias may not stand for something that contains it")
    if len(place) > MAX_DEPTH:
        raise InputError(f"{here}: nested too deeply")
    if len(marks) > MAX_ENTRIES:
        raise InputError(f"{here}: more than {MAX_ENTRIES:,} entries; do aliases multiply them?")
    inner = open_ | {id(node)}
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, here)
    if not node.tag.startswith(("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")):
        raise InputError(f"{here}: the tag {node.tag} is not supported; write plain values")
    if isinstance(node, yaml.SequenceNode):
        entries: list[Tree] = []
        for index, child in enumerate(node.value):
            below = (*place, index)
            marks[below] = mark(child)
            entries.append(_construct(child, below, mark, marks, inner))
        return entries
    tree: dict[str, Tree] = {}
    lines: dict[str, int] = {}
    for key_node, child in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise InputError(f"{mark(key_node)}: a key must be a plain word")
        key = _text(key_node.value, mark(key_node))
        below = (*place, key)
        if key in lines:
            first = f"first on line {lines[key]}"
            raise InputError(f"{mark(key_node)}: {dotted(below)}: written twice, {first}; keep one of them")
        lines[key] = key_node.start_mark.line + 1
        marks[below] = mark(key_node)
        tree[key] = _construct(child, below, mark, marks, inner)
    return tree


def _scalar(node: yaml.ScalarNode, here: str) -> Tree:
    kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        if kind == "int":
            if len(text) > MAX_DIGITS:
                raise ValueError(text)
            return int(text)
        if kind == "float":
            return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
        if kind == "str":
            return _text(text, here)
    except (ValueError, KeyError):
        raise InputError(f"{here}: {clip(text)} is not a valid {kind}") from None
    raise InputError(f"{here}: the tag {node.tag} is not supported; write plain values")


def _text(text: str, here: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{here}: an escape in this text is half of a character (a lone surrogate)") from None
    return text


def _characters(tree: Tree) -> int:
    """Counts the characters in all texts of a tree, including each occurrence of an alias."""
    if isinstance(tree, dict):
        return sum(len(key) + _characters(value) for key, value in tree.items())
    if isinstance(tree, list):
        return sum(map(_characters, tree))
    return len(tree) if isinstance(tree, str) else 0


def _override(tree: dict[str, Tree], marks: dict[Place, str], override: str) -> Place | None:
    """Set one place of `tree`; return it for an `Override`. Missing sections on the way are created; a list entry must
    exist."""
    mark = clip(override.mark) if isinstance(override, Override) else f"--set {clip(override)}"
    name, equals, text = override.partition("=")
    keys = [key.strip() for key in name.split(".")]
    if not equals or not all(keys) or len(keys) > MAX_DEPTH:
        raise InputError(f"{mark}: expected dotted.key=value, for example model.encoder.layers=2")
    if isinstance(override, Override) and override.is_text:
        value: Tree = _text(text, mark)
    else:
        node = _compose(text, lambda line: mark)
        value = None if node is None else _construct(node, (), lambda part: mark, {}, frozenset())

    parent: Tree = tree
    place: Place = ()
    for depth, key in enumerate(keys, 1):
        index: str | int = key
        if isinstance(parent, list):
            if not key.isdecimal() or len(key) > 9 or int(key) >= len(parent):
                entries = f"{len(parent)} {'entry' if len(parent) == 1 else 'entries'}"
                counts = f"count from 0 to {len(parent) - 1}" if parent else "set the whole list instead"
                raise InputError(f"{mark}: {dotted(place)} is a list of {entries}, and has no {key!r}; {counts}")
            index = int(key)
        elif not isinstance(parent, dict):
            raise InputError(f"{mark}: {dotted(place)} is {describe(parent)}, so it has no key {key!r}")
        place = (*place, index)
        if depth < len(keys):
            if isinstance(parent, dict) and parent.get(key) is None:
                parent[key], marks[place] = {}, mark
            parent = parent[index]
    for inner in [known for known in marks if known[: len(place)] == place]:
        del marks[inner]
    parent[index], marks[place] = value, mark
    return place if isinstance(override, Override) else None
