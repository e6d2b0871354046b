"""Typed configuration trees from YAML and `--set` overrides.

A configuration class derives from `Structure` and is in the package that it configures. A choice between classes is a
union discriminated by a `kind` literal. Reading has two steps, so that every error names its line:

    document = load_document(Path("config.yaml"), ["seed=3"])  # text -> plain tree, each key with its line
    experiment = validate(Experiment, document)                # plain tree -> typed tree
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from nmt.config.yaml_source import Document, Place, Tree, dotted, load_document, parse_document, write
from nmt.core.errors import InputError

__all__ = ["Document", "Structure", "differences", "dump", "load_document", "parse_document", "validate"]

AnyStructure = TypeVar("AnyStructure", bound="Structure")


class Structure(BaseModel):
    """Base of every configuration class: frozen and strict; unknown keys, infinity and NaN are errors.

    An int is accepted for a float; text for a number, a bool for an int, or 2.0 for an int is an error.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )


def validate(cls: type[AnyStructure], document: Document, *, strict: bool = True) -> AnyStructure:
    """Builds the typed tree of a document.

    Raises InputError with all faults (mark, dotted key, found and expected value). A misspelt key takes precedence over
    the missing key. Unless it is ``strict``, text may spell a number or a truth value, as in a form.
    """
    try:
        # from JSON, pydantic's strict mode accepts a list for a tuple and text for a path
        return cls.model_validate_json(json.dumps(document.tree), strict=strict)
    except ValidationError as error:
        from nmt.config.errors import describe_faults

        faults = describe_faults(cls, document, error.errors(include_url=False))
    raise InputError(*faults) from None


def dump(structure: Structure) -> str:
    """Writes the structure as YAML with every key, in the order of the classes; parsing it gives the same structure."""
    return write(structure.model_dump(mode="json"))


def differences(a: Structure, b: Structure) -> list[str]:
    """Returns the dotted keys at which two structures differ, in the order of the classes; for different kinds only
    `kind`."""
    return [dotted(place) for place in _different(a.model_dump(mode="json"), b.model_dump(mode="json"), ())]


def _different(a: Tree, b: Tree, place: Place) -> Iterator[Place]:
    if isinstance(a, dict) and isinstance(b, dict):
        if a.get("kind") != b.get("kind"):
            yield (*place, "kind")
            return
        for key in dict.fromkeys([*a, *b]):
            if (key in a) != (key in b):
                yield (*place, key)
            elif key in a:
                yield from _different(a[key], b[key], (*place, key))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _different(left, right, (*place, index))
    elif a != b or type(a) is not type(b):
        yield place
