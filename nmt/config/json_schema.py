"""JSON Schema of configuration classes, with the descriptions of keys from their docstrings."""

from __future__ import annotations

import json
from functools import cache
from inspect import cleandoc
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from nmt.config.field_docstrings import field_docstrings


@cache
def json_schema(cls: type[BaseModel]) -> dict[str, Any]:
    """Creates the JSON Schema of a configuration class: every key with its meaning, type, bounds and default."""
    return cls.model_json_schema(schema_generator=_Generator)


def document(cls: type[BaseModel]) -> str:
    """Creates the JSON Schema of a configuration as a file for editors."""
    return json.dumps({"$schema": _Generator.schema_dialect, **json_schema(cls)}, indent=2, ensure_ascii=False)


class _Generator(GenerateJsonSchema):
    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        result, cls = super().model_schema(schema), schema["cls"]
        result["description"] = summary(cls) if hasattr(cls, "formula") else class_docstring(cls)
        for name, field in result.get("properties", {}).items():
            field["description"] = _meaning(cls, name)
        return result

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value  # the order of the classes


def summary(cls: type[BaseModel]) -> str:
    """Describes a class on one line: formula and source of a mechanism, or the first sentence of any other class."""
    formula, source = getattr(cls, "formula", None), getattr(cls, "source", None)
    if formula is not None and source is not None:
        return f"{formula}   ({source})"
    return " ".join(class_docstring(cls).partition("\n\n")[0].split())


def class_docstring(cls: type[BaseModel]) -> str:
    """Returns the docstring of a class in plain text, with a blank line between paragraphs."""
    return _plain(cls.__doc__ or "")


def _meaning(cls: type[BaseModel], name: str) -> str:
    if description := cls.model_fields[name].description:
        return _plain(description[0].upper() + description[1:].removesuffix(".") + ".")
    return "Which of the kinds it is." if name == "kind" else _plain(_attribute_docstrings(cls).get(name, ""))


@cache
def _attribute_docstrings(cls: type[BaseModel]) -> dict[str, str]:
    """Reads the texts below fields; those of a class take precedence over those of its bases."""
    docstrings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            docstrings |= field_docstrings(base)
    return docstrings


def _plain(text: str) -> str:
    return cleandoc(text).replace("`", "")
