"""Places of a configuration tree and the classes at these places."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from nmt.config.kinds import DefaultKind
from nmt.config.yaml_source import Place, Tree


def members_of(annotation: Any) -> list[Any]:
    """Returns the members of a union, without None; for any other type, the type itself."""
    if get_origin(annotation) is Annotated:
        return members_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [member for argument in get_args(annotation) for member in members_of(argument)]
    return [] if annotation in (None, type(None)) else [annotation]


def structures_of(annotation: Any) -> list[type[BaseModel]]:
    """Returns the configuration classes in a type; there are several if the key `kind` chooses between them."""
    members = members_of(annotation)
    return [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]


def choices_of(annotation: Any) -> list[Any]:
    """Returns the values of all literals in a type."""
    return [value for member in members_of(annotation) if get_origin(member) is Literal for value in get_args(member)]


def kinds_of(structure: type[BaseModel]) -> list[str]:
    """Returns the values of the key `kind` for a class; empty for a class without it."""
    field = structure.model_fields.get("kind")
    return [] if field is None else choices_of(field.annotation)


def pick(annotation: Any, node: Tree) -> type[BaseModel] | None:
    """Returns the class of a node: the only class in its type, or the one of its kind."""
    structures = structures_of(annotation)
    if len(structures) > 1:
        defaults = [default.kind for default in get_args(annotation) if isinstance(default, DefaultKind)]
        kind = node.get("kind", *defaults) if isinstance(node, dict) else None
        structures = [structure for structure in structures if kind in kinds_of(structure)]
    return structures[0] if structures else None


def _child(annotation: Any, node: Tree, step: str | int) -> Any:
    """Returns the type of the entry `step` of a node; None for an unknown entry."""
    structure = pick(annotation, node)
    if structure is not None and isinstance(step, str):
        field = structure.model_fields.get(step)
        if field is None:
            return None
        defaults = [default for default in field.metadata if isinstance(default, DefaultKind)]
        return Annotated[field.annotation, defaults[0]] if defaults else field.annotation
    for member in members_of(annotation):
        arguments = get_args(member)
        if get_origin(member) is dict:
            return arguments[1]
        if get_origin(member) in (list, tuple) and isinstance(step, int):
            return arguments[0] if Ellipsis in arguments or len(arguments) == 1 else arguments[step]
    return None


def _entry(node: Tree, step: str | int) -> Tree:
    """Returns the entry `step` of a node; None if it is missing."""
    if isinstance(node, dict):
        return node.get(step)
    return node[step] if isinstance(node, list) and isinstance(step, int) and step < len(node) else None


def follow(cls: type[BaseModel], place: Place, tree: Tree) -> tuple[Tree, Any]:
    """Returns the node at a place, and its type."""
    annotation: Any = cls
    for step in place:
        annotation = _child(annotation, tree, step)
        tree = _entry(tree, step)
    return tree, annotation


def locate(cls: type[BaseModel], location: Sequence[str | int], tree: Tree) -> tuple[Place, Any]:
    """Finds the place and type of a pydantic error location, which also contains the names of union members.

    The place of a missing or unknown kind is the key `kind`, but its type is that of the section.
    """
    place: Place = ()
    annotation: Any = cls
    named = False  # True after the name of a union member
    for step in location:
        if len(members_of(annotation)) > 1 and not named:
            named = True
            continue
        child = _child(annotation, tree, step)
        if child is None and not structures_of(annotation):
            break  # pydantic's label of a type or of a key
        place, annotation, named = (*place, step), child, False
        tree = _entry(tree, step)
    if isinstance(tree, dict) and len(structures_of(annotation)) > 1 and not named:
        place = (*place, "kind")
    return place, annotation


def structures_within(annotation: Any) -> list[tuple[Place, type[BaseModel]]]:
    """Yields the configuration classes in a type, each with its place in it; a list is represented by its first
    entry."""
    structures: list[tuple[Place, type[BaseModel]]] = [((), structure) for structure in structures_of(annotation)]
    for member in members_of(annotation):
        if get_origin(member) in (list, tuple):
            structures += [((0, *place), structure) for place, structure in structures_within(get_args(member)[0])]
    return structures


def walk(cls: type[BaseModel], place: Place = ()) -> Iterator[tuple[Place, type[BaseModel]]]:
    """Yields every class in the tree with a place where it can occur; a list is represented by its first entry."""
    yield place, cls
    for name, field in cls.model_fields.items():
        for below, structure in structures_within(field.annotation):
            yield from walk(structure, (*place, name, *below))
