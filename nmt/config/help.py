"""What the keys of a configuration mean, from the classes themselves: types, bounds, defaults, docstrings.

A key is written as `--set` has it, and the name of a kind may stand after a choice: `model.attention.score.gaussian`.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from nmt.config.schema import kinds_of, members_of
from nmt.config.yaml_source import Place, Tree, clip
from nmt.core.errors import InputError

WIDTH = 100
"""Of the text, in characters."""


@dataclass(frozen=True)
class Found:
    """A key of one class."""

    owner: type[BaseModel]
    name: str

    @property
    def field(self) -> FieldInfo:
        """What pydantic knows of it."""
        return self.owner.model_fields[self.name]

    @property
    def kinds(self) -> list[str]:
        """The kinds that its class stands for; none where its class is no choice."""
        return kinds_of(self.owner)


def explain(cls: type[BaseModel], key: str, tree: Tree = None) -> str:
    """What a key means, of a group also its keys, as lines of text; ``tree`` is a configuration whose value is shown.

    Raises InputError for what is no key, with those that may be meant.
    """
    steps = tuple(step for step in key.strip().split(".") if not step.isdecimal())
    if steps in ((), ("",)):
        return "\n".join([_summary(cls), "", *_table(_rows([cls]))])
    found, groups = _follow(cls, steps)
    if not found and not groups:
        raise InputError(f"--explain {key}: no such key; {_advice(cls, key, list(keys(cls)))}")
    lines: list[str] = []
    for each in found:
        if each.kinds and len(found) > 1:
            lines += ["", f"of kind {', '.join(each.kinds)}:"] if lines else [f"of kind {', '.join(each.kinds)}:"]
        lines += _leaf(each)
    if not found:
        lines += [line for part in _doc(groups[0]).split("\n\n") for line in _paragraph(part)]
    if tree is not None and found:
        lines += _row("here", _written(_value(tree, key)))
    head = [".".join(steps), *lines]
    return "\n".join([*head, *_group(groups)])


@dataclass(frozen=True)
class Row:
    """A key of a section, in plain text."""

    name: str
    meaning: str
    type: str
    default: str


@dataclass(frozen=True)
class Section:
    """The keys of one class at one place of the tree."""

    place: str
    """Dotted; empty at the top."""
    kinds: tuple[str, ...]
    """What `kind` says for this class; none where the place is no choice."""
    summary: str
    """The class' docstring, paragraphs with a blank line between; of a mechanism, instead, formula and source."""
    rows: tuple[Row, ...]
    """Without `kind` itself."""


def sections(cls: type[BaseModel], place: str = "") -> Iterator[Section]:
    """All that there is to set, group by group: the kinds of a choice one after another, then what is below them."""
    yield from _sections((cls,), place)


def _sections(groups: Sequence[type[BaseModel]], place: str) -> Iterator[Section]:
    below: dict[str, list[type[BaseModel]]] = {}
    for group in groups:
        names = [name for name in group.model_fields if not (name == "kind" and kinds_of(group))]
        rows = (Row(name, meaning(group, name), _type(group, name), _default_of(group, name)) for name in names)
        summary = _kind(group) if hasattr(group, "formula") else _doc(group)
        yield Section(place, tuple(kinds_of(group)), summary, tuple(rows))
        for name in names:
            below.setdefault(name, []).extend(_below(group.model_fields[name].annotation))
    for name, inner in below.items():
        yield from _sections(_distinct(inner), f"{place}.{name}" if place else name)


def meaning(owner: type[BaseModel], name: str) -> str:
    """What a key is for, as its class says: plain text, without the marks of code."""
    description = owner.model_fields[name].description
    if description:
        ended = description if description.endswith(".") else f"{description}."
        return _plain(ended[0].upper() + ended[1:])
    if name == "kind":
        return "Which of the kinds it is."
    return _plain(_docstrings(owner).get(name, ""))


# ------------------------------------------------------------------------------------------------------- finding a key


def _follow(cls: type[BaseModel], steps: Sequence[str]) -> tuple[list[Found], list[type[BaseModel]]]:
    """The keys that a place stands for, one for each kind that has it, and the classes below it."""
    groups: list[type[BaseModel]] = [cls]
    found: list[Found] = []
    for step in steps:
        having = [group for group in groups if step in group.model_fields]
        if having:
            found = [Found(group, step) for group in having]
            groups = _distinct(below for each in found for below in _below(each.field.annotation))
        else:
            found, groups = [], [group for group in groups if step in kinds_of(group)]
    return _without_repeats(found), groups


def _without_repeats(found: Sequence[Found]) -> list[Found]:
    """Kinds that say the same of a key say it once."""
    if len({tuple(_leaf(each)) for each in found}) == 1:
        return list(found[:1])
    return list(found)


def _below(annotation: Any) -> list[type[BaseModel]]:
    """The configuration classes in a type, also as entries of a list."""
    below: list[type[BaseModel]] = []
    for member in members_of(annotation):
        if isinstance(member, type) and issubclass(member, BaseModel):
            below.append(member)
        elif get_origin(member) in (list, tuple):
            below += _below(get_args(member)[0])
    return _distinct(below)


def _distinct(classes: Iterator[type[BaseModel]] | Sequence[type[BaseModel]]) -> list[type[BaseModel]]:
    return list(dict.fromkeys(classes))


def keys(cls: type[BaseModel], place: Place = ()) -> Iterator[str]:
    """Every key of the tree, dotted; those of several kinds once."""
    seen: dict[str, None] = {}
    for name, field in cls.model_fields.items():
        here = (*place, name)
        seen[".".join(map(str, here))] = None
        for group in _below(field.annotation):
            seen |= dict.fromkeys(keys(group, here))
    yield from seen


def _advice(cls: type[BaseModel], key: str, known: Sequence[str]) -> str:
    """Which keys may be meant: those of the same last name, else of the nearest ones, else those that it is part of,
    else what there is where it is looked for."""
    names = {each: each.rpartition(".")[2] for each in known if not key.startswith(f"{each}.")}
    last = key.rpartition(".")[2]
    like = difflib.get_close_matches(last, sorted(set(names.values())), n=2, cutoff=0.7)
    near = [each for name in like for each in names if names[each] == name]
    same = [each for each in names if names[each] == last]
    within = [each for each in names if len(last) > 2 and last in names[each]]
    if meant := list(dict.fromkeys(same or near or within)):
        meant.sort(key=lambda each: difflib.SequenceMatcher(None, key, each).ratio(), reverse=True)
        return f"did you mean {' or '.join(meant[:3])}?"
    parent = key.rpartition(".")[0]
    groups = _follow(cls, parent.split("."))[1] if parent else []
    if not groups:
        return f"the keys at the top are {', '.join(cls.model_fields)}"
    below = [name for group in groups for name in (*kinds_of(group), *group.model_fields) if name != "kind"]
    return f"{parent} has {', '.join(dict.fromkeys(below))}"


# ---------------------------------------------------------------------------------------------------------- what it is


def _leaf(found: Found) -> list[str]:
    """A key's meaning, type, default, and where it comes from."""
    owner = found.owner
    lines = _paragraph(meaning(owner, found.name))
    lines += _row("type", _type(owner, found.name))
    lines += _row("default", _default_of(owner, found.name))
    if found.kinds:
        return lines + _row("of", f"{', '.join(found.kinds)}: {_kind(owner)}")
    return lines + _row("part of", _summary(owner))


def _group(groups: Sequence[type[BaseModel]]) -> list[str]:
    """The keys of a group; where it is a choice, the kinds and the keys of each."""
    if not groups:
        return []
    if len(groups) == 1 and not kinds_of(groups[0]):
        return ["", "keys:", *_table(_rows(groups))]
    lines = ["", "kinds:"]
    lines += _table([(", ".join(kinds_of(group)), _kind(group)) for group in groups])
    for group in groups:
        if rows := [row for row in _rows([group]) if row[0] != "kind"]:
            lines += ["", f"keys of {', '.join(kinds_of(group)) or group.__name__}:", *_table(rows)]
    return lines


def _kind(group: type[BaseModel]) -> str:
    """A kind in a line: the formula and its source, where it has one, else its first sentence."""
    formula, source = getattr(group, "formula", None), getattr(group, "source", None)
    if formula is None or source is None:
        return _summary(group)
    return f"{formula}   ({source})"


def _rows(groups: Sequence[type[BaseModel]]) -> list[tuple[str, str]]:
    return [
        (name, "; ".join(filter(None, (_type(group, name), _short_default(field)))))
        for group in groups
        for name, field in group.model_fields.items()
    ]


def _type(owner: type[BaseModel], name: str) -> str:
    if groups := _below(owner.model_fields[name].annotation):
        kinds = [kind for group in groups for kind in kinds_of(group)]
        what = f"one of {', '.join(dict.fromkeys(kinds))}" if len(kinds) > 1 else "a group of keys"
        return f"{what}, or null" if type(None) in get_args(owner.model_fields[name].annotation) else what
    return _schema_words(_schema(owner)["properties"][name])


@cache
def _schema(owner: type[BaseModel]) -> dict[str, Any]:
    return owner.model_json_schema()


_KINDS = {
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


def _schema_words(schema: Mapping[str, Any]) -> str:
    """A type and its bounds in words, from its JSON schema."""
    if "anyOf" in schema:
        return " or ".join(_schema_words(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    word = "a path" if schema.get("format") == "path" else _KINDS[schema["type"]]
    bounds = [words.format(_number(schema[name])) for name, words in _BOUNDS.items() if name in schema]
    return f"{word}, {' and '.join(bounds)}" if bounds else word


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) and value < 1 << 33 else f"{value:g}"


def _default_of(owner: type[BaseModel], name: str) -> str:
    field = owner.model_fields[name]
    if field.is_required():
        return "none: it must be given"
    return _written(_plain_value(field.get_default(call_default_factory=True)))


def _short_default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = _plain_value(field.get_default(call_default_factory=True))
    if isinstance(value, dict):
        return f"default {value['kind']}" if "kind" in value else ""
    return f"default {_written(value)}"


def _plain_value(value: Any) -> Tree:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return list(value) if isinstance(value, tuple) else value


def _written(value: Tree) -> str:
    """A value as in a file, on one line."""
    if value is PydanticUndefined:
        return "not there"
    if isinstance(value, dict):
        return clip("{" + ", ".join(f"{key}: {_written(each)}" for key, each in value.items()) + "}", 400)
    if isinstance(value, list):
        return clip("[" + ", ".join(map(_written, value)) + "]", 400)
    return value if isinstance(value, str) else json.dumps(value)


def _value(tree: Tree, key: str) -> Tree:
    """What stands at a key, PydanticUndefined where nothing does: of several corpora the keys of each one."""
    for step in key.split("."):
        if isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        elif isinstance(tree, list):
            tree = [each.get(step) for each in tree if isinstance(each, dict)]
        elif isinstance(tree, dict) and step in tree:
            tree = tree[step]
        elif not (isinstance(tree, dict) and tree.get("kind") == step):
            return PydanticUndefined
    return tree


# ---------------------------------------------------------------------------------------------------------- docstrings


def _doc(owner: type[BaseModel]) -> str:
    return _plain(inspect.cleandoc(owner.__doc__ or ""))


def _summary(owner: type[BaseModel]) -> str:
    """The first paragraph of a class' docstring."""
    return " ".join(_doc(owner).partition("\n\n")[0].split())


@cache
def _docstrings(owner: type[BaseModel]) -> dict[str, str]:
    """The text under each field, as it stands in the source: of the class itself before that of its bases."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        if not issubclass(each, BaseModel) or each is BaseModel:
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                found[field.target.id] = inspect.cleandoc(text.value.value)
    return found


def _plain(text: str) -> str:
    return text.replace("`", "")


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _row(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12)


def _table(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(label) for label, _ in rows), default=0) + 2
    return [
        line
        for label, text in rows
        for line in textwrap.wrap(
            text or "-", WIDTH, initial_indent=f"  {label:<{width}}", subsequent_indent=" " * (width + 2)
        )
    ]
