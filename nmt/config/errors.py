"""Messages for faults of a configuration: pydantic's errors as one line each, with place and advice."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from nmt.config.schema import choices_of, follow, kinds_of, locate, pick, structures_of, walk
from nmt.config.yaml_source import INTEGER, NUMBER, Document, Place, Tree, describe, dotted

_REMOVED = {("search", "shortlist")}
"""Keys of earlier releases that change results, so that they are not just ignored."""


def describe_faults(cls: type[BaseModel], document: Document, errors: Sequence[ErrorDetails]) -> list[str]:
    """Messages for a list of pydantic's errors, one per place: unknown keys, then wrong values, then missing keys."""
    by_place: dict[Place, list[ErrorDetails]] = {}
    annotations: dict[Place, Any] = {}
    for error in errors:
        place, annotation = locate(cls, error["loc"], document.tree)
        by_place.setdefault(place, []).append(error)
        annotations[place] = annotation
    unknown, wrong, missing, intended = list[str](), list[str](), list[str](), set[Place]()
    for place, here in by_place.items():
        if here[0]["type"] == "extra_forbidden":
            advice, instead = _unknown_key(cls, place, document.tree)
            unknown.append(f"{document.mark(place)}: {dotted(place)}: {advice}")
            intended.add(instead)
    for place, here in by_place.items():
        if here[0]["type"] == "missing":
            if place not in intended:
                noun = "key" if isinstance(place[-1], str) else "entry"
                missing.append(f"{document.mark(place[:-1])}: {dotted(place)}: missing; add this {noun}")
        elif here[0]["type"] != "extra_forbidden":
            text = _wrong_value(here, annotations[place])
            key, colon, rest = text.partition(": ")  # of a validator of a section that names one of its keys
            if colon and (*place, key) in document.named:
                place = (*place, key)
                # the advice in the words of the option or argument
                option = r"add --\1 \2" if document.mark(place).startswith("--") else r"add \1=\2"
                text = re.sub(r"\bset (\w+) to (\w+)", option, rest)
            name = f"{dotted(place)}: " if place and place not in document.named else ""
            wrong.append(f"{document.mark(place)}: {name}{text}")
    return unknown + wrong + missing


def _unknown_key(cls: type[BaseModel], place: Place, tree: Tree) -> tuple[str, Place]:
    """Advice for an unknown key, and the place of the key that was probably intended (else the root)."""
    if place in _REMOVED:
        return "no longer exists; remove it", ()
    parent, key = place[:-1], str(place[-1])
    node, annotation = follow(cls, parent, tree)
    owner = pick(annotation, node)
    assert owner is not None, f"no structure at {parent}"
    local = list(owner.model_fields)
    near = difflib.get_close_matches(key, local, n=1, cutoff=0.6)
    if near and difflib.SequenceMatcher(None, key, near[0]).ratio() >= 0.75:
        return f"unknown key; did you mean {near[0]!r}?", (*parent, near[0])
    kinds = [kind for other in structures_of(annotation) if key in other.model_fields for kind in kinds_of(other)]
    if kinds:
        return f"unknown key for kind {kinds_of(owner)[0]!r}; it belongs to kind {_either(sorted(kinds))}", ()
    elsewhere = sorted({dotted((*where, key)) for where, other in walk(cls) if key in other.model_fields})
    if elsewhere:
        return f"unknown key; it belongs at {_either(elsewhere[:3])}", ()
    if near:
        return f"unknown key; did you mean {near[0]!r}?", (*parent, near[0])
    return f"unknown key; the keys here are {', '.join(local) or 'none'}", ()


_EXPECTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
    "path_type": "a path",
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "keys with values"),
    "finite_number": "a finite number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "multiple_of": "a multiple of {multiple_of:g}",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text like {pattern}",
}
"""Expected values by pydantic's type of error, with fields of its context."""


def _wrong_value(errors: Sequence[ErrorDetails], annotation: Any) -> str:
    """Message for a wrong value; several errors come from the members of a union."""
    value = errors[0]["input"]
    if errors[0]["type"] in ("value_error", "assertion_error"):
        return errors[0]["msg"].split(", ", 1)[1]
    if errors[0]["type"] in ("union_tag_not_found", "union_tag_invalid"):
        kinds = [kind for structure in structures_of(annotation) for kind in kinds_of(structure)]
        return _choose(value["kind"], kinds) if "kind" in value else f"missing; add one of {', '.join(kinds)}"
    if len(errors) == 1 and errors[0]["type"] == "literal_error":
        return _choose(value, [choice for choice in choices_of(annotation) if isinstance(choice, str)])
    wanted = " or ".join(dict.fromkeys(expected(error) for error in errors))
    hint = ""
    if isinstance(value, str) and "number" in wanted and (INTEGER.fullmatch(value) or NUMBER.fullmatch(value)):
        hint = "; remove the quotes"
    elif wanted == "text" and isinstance(value, (bool, int, float)):
        hint = "; put it in quotes"
    return f"expected {wanted}, found {describe(value)}{hint}"


def expected(error: ErrorDetails) -> str:
    """The value that one of pydantic's errors expects."""
    if error["type"] == "literal_error":
        return str(error["ctx"]["expected"])
    words = _EXPECTED.get(error["type"])
    return words.format_map(error.get("ctx", {})) if words else error["msg"]


def _choose(value: Tree, choices: Sequence[str]) -> str:
    """Message for an unknown choice, with the nearest one and all others."""
    near = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.6)
    advice = f"did you mean {near[0]!r}? " if near else ""
    return f"{describe(value)} is not a choice; {advice}the choices are {', '.join(choices)}"


def _either(words: Sequence[str]) -> str:
    return " or ".join(repr(word) for word in words)
