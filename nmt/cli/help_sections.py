"""Contents of the sections of help pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

GROUPS = {"Your own data": "init", "Train": "train", "Use": "translate", "Look": "evaluate", "More": "config"}
"""Titles of the page of all commands, and the first command under each."""

_FILES = "Source and target sentences, as --source and --target, or one file of pairs, as --tsv."

_INPUT_AND_OUTPUT = ("source", "target", "reference", "hypothesis", "tsv", "input", "output", "format")
"""Options under this title, in any command, unless their ``rich_help_panel`` is another one."""


def command_sections(commands: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Lists the titles, each with its commands and the first paragraph of their help, which Typer would cut."""
    titles = {first: title for title, first in GROUPS.items()}
    found: dict[str, list[tuple[str, str]]] = {}
    for name, command in commands.items():
        title = titles.get(name) or [*found][-1]
        found.setdefault(title, []).append((name, " ".join((command.help or "").split("\n\n")[0].split())))
    return found


def sections(command: Any, ctx: typer.Context) -> dict[str, list[tuple[str, str]]]:
    """Lists the titles, each with its parameters in the form of the command line, and their help."""
    found: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    others: list[tuple[str, str]] = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        title = getattr(parameter, "rich_help_panel", None)
        if title is None and parameter.name.rstrip("_") in _INPUT_AND_OUTPUT:
            title = "Input and output"
        if parameter.param_type_name == "argument":
            found["Arguments"].append(record)
        elif title is None:
            others.append(record)
        else:
            found.setdefault(title, []).append(record)
    if command.pairs:
        found["Arguments"].append(("FILE FILE", _FILES))
    if "Machine" in found:
        found["Machine"] = found.pop("Machine")  # after the command's own options
    found["Other options" if len(found) > 1 else "Options"] = others
    return {title: records for title, records in found.items() if records}
