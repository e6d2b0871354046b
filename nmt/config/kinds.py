"""Annotations of choices by the key ``kind``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from nmt.config.yaml_source import Tree


@dataclass(frozen=True)
class DefaultKind:
    """Annotation of a choice with the kind that is used if `kind` is left out."""

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._fill_in, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        choice = handler(schema)
        default = choice["discriminator"]["mapping"][self.kind]
        return {"anyOf": [{"$ref": default}, *_explicit(each for each in choice["oneOf"] if each["$ref"] != default)]}

    def _fill_in(self, value: Tree) -> Tree:
        return {"kind": self.kind, **value} if isinstance(value, dict) else value


@dataclass(frozen=True)
class BareName:
    """Annotation of a group of keys, with which a bare name means the group with that name at ``key``."""

    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._from_name, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        choice = handler(schema)
        options = choice.get("anyOf") or (list(_explicit(choice["oneOf"])) if "oneOf" in choice else [choice])
        fields = [handler.resolve_ref_schema(option).get("properties", {}).get(self.key, {}) for option in options]
        names = [name for field in fields for name in field.get("enum", [field["const"]] if "const" in field else [])]
        return {"anyOf": [{"type": "string", "enum": names}, *options]}

    def _from_name(self, value: Tree) -> Tree:
        return {self.key: value} if isinstance(value, str) else value


def _explicit(options: Iterable[JsonSchemaValue]) -> Iterator[JsonSchemaValue]:
    """Returns the options of a choice, each with a `kind` that must be written."""
    return ({**option, "required": ["kind"]} for option in options)


BareKind = BareName("kind")
"""Annotation of a choice, with which a bare name, `score: additive`, means that kind with all its defaults."""
