"""Paths in a configuration."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand(path: Path) -> Path:
    """Replace `${NAME}` and `${NAME:-default}` by environment variables, then a leading `~` by the home folder.

    As in a shell, the default also replaces a variable that is set but empty. Raises ValueError for a variable that is
    neither set nor has a default.
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
