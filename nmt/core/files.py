"""Care with the user's files."""

from __future__ import annotations

from pathlib import Path

from nmt.core.errors import InputError


def refuse_overwriting(output: Path | None, *inputs: Path | None) -> None:
    """Raises InputError where the output would replace an input before it is read."""
    for path in inputs:
        if output is not None and path is not None and output.exists() and path.exists() and output.samefile(path):
            raise InputError(f"--output {output}: is an input file of this command; write to another file")
