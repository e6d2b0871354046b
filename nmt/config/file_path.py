"""Paths in a configuration."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from nmt.config.yaml_source import Tree

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand(path: Path) -> Path:
    """Replace `${NAME}` and `${NAME:-default}` by environment variables, then a leading `~` by the home folder.

    As in a shell, the default also stands in for a variable that is set but empty.
    Raises ValueError for a variable that is neither set nor has a default.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = os.environ.get(name)
        if found or (default is None and found is not None):
            return found
        if default is None:
            raise ValueError(f"the environment variable {name} is not set; set it or write ${{{name}:-default}}")
        return str(default)

    if "\0" in str(path):
        raise ValueError("a path cannot hold the character U+0000")
    try:
        return Path(_VARIABLE.sub(value, str(path))).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: no home folder is known for '~'; write the path in full") from None


FilePath = Annotated[Path, AfterValidator(expand)]


@dataclass(frozen=True)
class BarePath:
    """In the annotation of a group of keys: a bare path stands for the group with this path at each of ``keys``."""

    keys: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._fill_in, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "format": "path"}, handler(schema)]}

    def _fill_in(self, value: Tree) -> Tree:
        return dict.fromkeys(self.keys, value) if isinstance(value, str) else value
