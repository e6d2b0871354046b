"""A configuration of another toolkit on its way to becoming one of ours.

The keys that were read are noted, so that those without a counterpart can be listed. A key of ours keeps the line that
it comes from, so that an error names that line, and a comment names the original key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nmt.config.yaml_source import Document, Place, Tree, clip, describe, dotted, leaves, write
from nmt.core.errors import InputError

SECTIONS = ("run", "seed", "data", "model", "training", "search")
"""Keys of ours in the order in which they are written."""


@dataclass(frozen=True)
class _Entry:
    value: Tree
    note: str
    mark: str


class ImportedConfig:
    """A configuration of a toolkit, and the keys of ours made from it."""

    def __init__(self, name: str, document: Document) -> None:
        self.name = name
        self._document = document
        self._read: set[Place] = set()
        self._entries: dict[Place, _Entry] = {}
        self._lacking: list[tuple[str, str, str]] = []

    # ---------------------------------------------------------------------------------------------------- reading

    def peek(self, *place: str) -> Tree:
        """Looks a value up, without a note that it was read; None where there is none."""
        tree: Tree = self._document.tree
        for step in place:
            tree = tree.get(step) if isinstance(tree, dict) else None
        return tree

    def read(self, *place: str, default: Tree = None) -> Tree:
        """Reads a value, or the default."""
        found = self.peek(*place)
        self._read.add(place)
        return default if found is None else found

    def number(self, *place: str, default: float) -> float:
        """Reads a number above 0."""
        found = self.read(*place, default=default)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1e12:
            raise self.fault(f"expected a number above 0, found {describe(found)}", *place)
        return found

    def text(self, *place: str) -> str:
        """Reads a text that is required."""
        found = self.read(*place)
        if not isinstance(found, str) or not found:
            what = "is missing" if found is None else f"expected text, found {describe(found)}"
            raise self.fault(f"{what}; a configuration of {self.name} needs it", *place)
        return found

    def fault(self, what: str, *place: str) -> InputError:
        """Makes an error that names a key and its line."""
        return InputError(f"{self._document.mark(place)}: {dotted(place)}: {what}")

    def left(self) -> list[tuple[str, str, str]]:
        """Lists mark, key and value of all keys that were not read, in the order of the file, and of lacking
        defaults."""
        return [
            (self._document.mark(place), _shown(dotted(place)), _shown(json.dumps(value, ensure_ascii=False)))
            for place, value in leaves(self._document.tree)
            if not any(place[:length] in self._read for length in range(1, len(place) + 1))
        ] + self._lacking

    def lack(self, value: str, *place: str) -> None:
        """Notes a default of the toolkit, of a key that is not there, which ours does not have."""
        self._lacking.append((self._document.mark(place), dotted(place), f"{value}, the default of {self.name}"))

    # ---------------------------------------------------------------------------------------------------- writing

    def put(self, key: str, value: Tree, *place: str, note: str = "") -> None:
        """Sets a key of ours to a value made from their key."""
        where = dotted(place) if self.peek(*place) is not None else f"default of {self.name}"
        self._entries[tuple(key.split("."))] = _Entry(
            value, _shown(": ".join(filter(None, (where, note)))), self._document.mark(place)
        )

    def copy(self, key: str, *place: str, default: Tree = None, note: str = "") -> None:
        """Sets a key of ours to the value of theirs, or to the default; without both, not at all."""
        found = self.read(*place, default=default)
        if found is not None:
            self.put(key, found, *place, note=note)

    def above_zero(self, key: str, *place: str) -> None:
        """Copies a number above 0; others mean "none" or "all", and stay unread."""
        found = self.peek(*place)
        if not isinstance(found, int | float) or found > 0:
            self.copy(key, *place)

    def choose(self, key: str, choices: Mapping[Tree, Tree], *place: str, default: Tree = None) -> None:
        """Sets a key of ours to our name for the value of theirs; a value that ours does not have stays unread."""
        found = self.peek(*place)
        found = default if found is None else found
        name = found.lower() if isinstance(found, str) else found
        if isinstance(name, str | bool | int) and name in choices:
            self.read(*place)
            self.put(key, choices[name], *place)

    def document(self) -> Document:
        """Makes our configuration, with the lines of the other file."""
        tree: dict[str, Tree] = {}
        marks: dict[Place, str] = {(): self._document.mark(())}
        for place, entry in self._ordered():
            inner = tree
            for length, step in enumerate(place[:-1], 1):
                inner = inner.setdefault(str(step), {})
                marks.setdefault(place[:length], entry.mark)
            inner[str(place[-1])] = entry.value
            marks[place] = entry.mark
        return Document(tree, marks)

    def yaml(self) -> str:
        """Writes our configuration: each key with the original one, then the keys without a counterpart."""
        lines: list[str] = []
        above: Place = ()
        for place, entry in self._ordered():
            same = 0
            while same < min(len(place), len(above)) - 1 and place[same] == above[same]:
                same += 1
            lines += [f"{'  ' * depth}{place[depth]}:" for depth in range(same, len(place) - 1)]
            indent = "  " * (len(place) - 1)
            first, *more = write({str(place[-1]): entry.value}).splitlines()
            lines += [f"{indent}{first}   # {entry.note}", *(f"{indent}{line}" for line in more)]
            above = place
        left = self.left()
        if left:
            lines += ["", "# Without a counterpart here:"]
            lines += [f"#   {key}: {value}" for _, key, value in left]
        return "".join(f"{line}\n" for line in lines)

    def _ordered(self) -> list[tuple[Place, _Entry]]:
        """Orders the keys by sections and groups, each at the place of its first key."""
        first: dict[Place, int] = {}
        for number, place in enumerate(self._entries):
            for length in range(1, len(place) + 1):
                first.setdefault(place[:length], number)

        def rank(place: Place) -> tuple[int, ...]:
            groups = (first[place[:length]] for length in range(2, len(place) + 1))
            return (SECTIONS.index(str(place[0])), *groups)

        return sorted(self._entries.items(), key=lambda each: rank(each[0]))


def run_named(path: str) -> str:
    """Names a run directory of ours after a folder or file of theirs."""
    return f"runs/{Path(path).name or 'imported'}"


def _shown(text: str) -> str:
    """Makes text fit for a comment."""
    return clip(text if text.isprintable() else ascii(text), 120)
