"""Explanations of configuration keys: meaning, type, bounds and default, from the classes and their docstrings.

A key is written as in `--set`. The name of a kind may follow a choice: `model.attention.score.gaussian`.
"""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from nmt.config.json_schema import class_docstring, json_schema, summary
from nmt.config.schema import kinds_of, structures_within
from nmt.config.yaml_source import Tree, clip
from nmt.core.errors import InputError

WIDTH = 100
"""Maximum length of a line, in characters."""


@dataclass(frozen=True)
class Row:
    """A key of a class, in plain text."""

    name: str
    meaning: str
    type: str
    default: str
    brief: str
    """Type and default of the key, for a table."""


@dataclass(frozen=True)
class Section:
    """The keys of one class at one place of the tree."""

    place: str
    """Dotted place of the class; empty at the top."""
    kinds: tuple[str, ...]
    """Values of `kind` for this class; empty if the place is not a choice."""
    summary: str
    """The class' docstring, with a blank line between paragraphs; for a mechanism its formula and source."""
    rows: tuple[Row, ...]
    """All keys except `kind`."""


def explain(cls: type[BaseModel], key: str, tree: Tree = None) -> str:
    """Explain a key, and the keys below it, in lines of text; ``tree`` is a configuration whose value is shown.

    Raises InputError for an unknown key, with similar ones.
    """
    steps = [step for step in key.strip().split(".") if not step.isdecimal()]
    if steps in ([], [""]):
        return "\n".join([summary(cls), "", *_table(_briefs(cls))])
    owners, groups = _follow(cls, steps)
    if not owners and not groups:
        raise InputError(f"--explain {key}: no such key; {_advice(cls, key)}")
    lines = [".".join(steps)]
    leaves = [_leaf(owner, steps[-1]) for owner in owners]
    if all(leaf == leaves[0] for leaf in leaves):
        owners, leaves = owners[:1], leaves[:1]
    for owner, leaf in zip(owners, leaves, strict=True):
        if kinds_of(owner) and len(owners) > 1:
            lines += [""] * (len(lines) > 1) + [f"of kind {', '.join(kinds_of(owner))}:"]
        lines += leaf
    if not owners:
        lines += [line for part in class_docstring(groups[0]).split("\n\n") for line in _wrap("  ", part)]
    elif tree is not None:
        lines += _entry("here", _written(_value(tree, key)))
    return "\n".join([*lines, *_group(groups)])


def sections(*classes: type[BaseModel], place: str = "") -> Iterator[Section]:
    """Lists all keys, group by group: the kinds of a choice one after another, then the groups below them."""
    below: dict[str, dict[type[BaseModel], None]] = {}
    for cls in classes:
        rows = tuple(row for row in _rows(cls) if not (row.name == "kind" and kinds_of(cls)))
        yield Section(place, tuple(kinds_of(cls)), json_schema(cls)["description"], rows)
        for row in rows:
            below.setdefault(row.name, {}).update(dict.fromkeys(_below(cls, row.name)))
    for name, inner in below.items():
        if inner:
            yield from sections(*inner, place=f"{place}.{name}" if place else name)


def keys(cls: type[BaseModel], prefix: str = "") -> list[str]:
    """Lists every key of the tree, dotted; a key of several kinds only once."""
    names: dict[str, None] = {}
    for name in cls.model_fields:
        names[prefix + name] = None
        for group in _below(cls, name):
            names |= dict.fromkeys(keys(group, f"{prefix}{name}."))
    return list(names)


# ----------------------------------------------------------------------------------------------------- finding a key


def _follow(cls: type[BaseModel], steps: Sequence[str]) -> tuple[list[type[BaseModel]], list[type[BaseModel]]]:
    """Finds the classes that have the last step as a key, one for each kind, and the classes below it."""
    owners: list[type[BaseModel]] = []
    groups = [cls]
    for step in steps:
        if owners := [group for group in groups if step in group.model_fields]:
            groups = list(dict.fromkeys(below for owner in owners for below in _below(owner, step)))
        else:
            groups = [group for group in groups if step in kinds_of(group)]
    return owners, groups


def _below(cls: type[BaseModel], name: str) -> list[type[BaseModel]]:
    """Returns the configuration classes in the type of a key."""
    return list(dict.fromkeys(structure for _, structure in structures_within(cls.model_fields[name].annotation)))


def _advice(cls: type[BaseModel], key: str) -> str:
    """Suggests the keys with the same last name, else with a similar name, else with a name that contains it, else the
    keys at the place."""
    names = {other: other.rpartition(".")[2] for other in keys(cls) if not key.startswith(f"{other}.")}
    parent, _, last = key.rpartition(".")
    similar = difflib.get_close_matches(last, sorted(set(names.values())), n=2, cutoff=0.7)
    if meant := (
        [other for other, name in names.items() if name == last]
        or [other for match in similar for other, name in names.items() if name == match]
        or [other for other, name in names.items() if len(last) > 2 and last in name]
    ):
        meant.sort(key=lambda other: difflib.SequenceMatcher(None, key, other).ratio(), reverse=True)
        return f"did you mean {' or '.join(meant[:3])}?"
    groups = _follow(cls, parent.split("."))[1] if parent else []
    if not groups:
        return f"the keys at the top are {', '.join(cls.model_fields)}"
    below = [name for group in groups for name in (*kinds_of(group), *group.model_fields) if name != "kind"]
    return f"{parent} has {', '.join(dict.fromkeys(below))}"


def _value(tree: Tree, key: str) -> Tree:
    """Returns the value at a key, or for a list of corpora the value of each; PydanticUndefined for a missing key."""
    for step in key.split("."):
        if isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        elif isinstance(tree, list):
            tree = [entry.get(step) for entry in tree if isinstance(entry, dict)]
        elif isinstance(tree, dict) and step in tree:
            tree = tree[step]
        elif not (isinstance(tree, dict) and tree.get("kind") == step):
            return PydanticUndefined
    return tree


# ---------------------------------------------------------------------------------------------------- describing it


def _rows(cls: type[BaseModel]) -> list[Row]:
    schema, rows = json_schema(cls), []
    for name, field in schema["properties"].items():
        kind, value = _type(cls, name, field), field.get("default", PydanticUndefined)
        if name in schema.get("required", ()):
            default, brief = "none: it must be given", "must be given"
        elif isinstance(value, dict):
            default, brief = _written(value), f"default {value['kind']}" if "kind" in value else ""
        else:
            default = _written(value)
            brief = f"default {default}"
        rows.append(Row(name, field["description"], kind, default, f"{kind}; {brief}" if brief else kind))
    return rows


def _type(cls: type[BaseModel], name: str, field: Mapping[str, Any]) -> str:
    if not (groups := _below(cls, name)):
        return _type_words(field)
    kinds = dict.fromkeys(kind for group in groups for kind in kinds_of(group))
    words = f"one of {', '.join(kinds)}" if len(kinds) > 1 else "a group of keys"
    return f"{words}, or null" if type(None) in get_args(cls.model_fields[name].annotation) else words


_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "text",
    "null": "null",
    "array": "a list",
    "object": "keys with values",
}

_BOUNDS = {
    "exclusiveMinimum": "above {}",
    "minimum": "at least {}",
    "exclusiveMaximum": "below {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
}


def _type_words(schema: Mapping[str, Any]) -> str:
    """Describes a type and its bounds in words, from its JSON schema."""
    if "anyOf" in schema:
        return " or ".join(map(_type_words, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    word = "a path" if schema.get("format") == "path" else _TYPES[schema["type"]]
    bounds = [words.format(_number(schema[name])) for name, words in _BOUNDS.items() if name in schema]
    return f"{word}, {' and '.join(bounds)}" if bounds else word


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) and value < 1 << 33 else f"{value:g}"


def _briefs(cls: type[BaseModel]) -> list[tuple[str, str]]:
    return [(row.name, row.brief) for row in _rows(cls)]


def _leaf(owner: type[BaseModel], name: str) -> list[str]:
    """Formats meaning, type and default of a key, and the class that it belongs to."""
    (row,) = (row for row in _rows(owner) if row.name == name)
    kinds = kinds_of(owner)
    whole = ("of", f"{', '.join(kinds)}: {summary(owner)}") if kinds else ("part of", summary(owner))
    return [*_wrap("  ", row.meaning), *_entry("type", row.type), *_entry("default", row.default), *_entry(*whole)]


def _group(groups: Sequence[type[BaseModel]]) -> list[str]:
    """Formats the keys of a group or, for a choice, the kinds and the keys of each."""
    if not groups:
        return []
    if len(groups) == 1 and not kinds_of(groups[0]):
        return ["", "keys:", *_table(_briefs(groups[0]))]
    lines = ["", "kinds:", *_table([(", ".join(kinds_of(group)), summary(group)) for group in groups])]
    for group in groups:
        if rows := [row for row in _briefs(group) if row[0] != "kind"]:
            lines += ["", f"keys of {', '.join(kinds_of(group)) or group.__name__}:", *_table(rows)]
    return lines


def _written(value: Tree) -> str:
    """Formats a value as in a file, on one line."""
    if value is PydanticUndefined:
        return "not there"
    if isinstance(value, dict):
        return clip("{" + ", ".join(f"{key}: {_written(entry)}" for key, entry in value.items()) + "}", 400)
    if isinstance(value, list):
        return clip("[" + ", ".join(map(_written, value)) + "]", 400)
    return value if isinstance(value, str) else json.dumps(value)


def _wrap(label: str, text: str) -> list[str]:
    """Wraps text to lines, the first after a label and the others below its beginning."""
    return textwrap.wrap(text, WIDTH, initial_indent=label, subsequent_indent=" " * len(label))


def _entry(label: str, text: str) -> list[str]:
    return _wrap(f"  {label:<10}", text)


def _table(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(label) for label, _ in rows), default=0) + 2
    return [line for label, text in rows for line in _wrap(f"  {label:<{width}}", text or "-")]
