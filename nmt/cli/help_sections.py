"""Contents of the sections of help pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import cleandoc
from typing import Any

import typer

from nmt.core.errors import InputError
from nmt.plugins import Command

_FILES = "Source and target sentences, as --source and --target, or one file of pairs, as --tsv."

_INPUT_AND_OUTPUT = ("source", "target", "reference", "hypothesis", "tsv", "input", "output", "format")
"""Options under this title, in any command, unless their ``rich_help_panel`` is another one."""


def command_sections(
    commands: Mapping[str, Command], function: Callable[[str], Any]
) -> dict[str, list[tuple[str, str]]]:
    """Lists the titles, each with its commands and the first paragraph of their help, which Typer would cut.
    ``function`` gives that of a command, which has the help; a command that cannot be imported shows why."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, command in commands.items():
        try:
            command_function = function(name)
            text = cleandoc(getattr(command_function, "function", command_function).__doc__ or "")
        except InputError as error:
            text = str(error)
        found.setdefault(command.group, []).append((name, " ".join(text.split("\n\n")[0].split())))
    return found


def describe(command: Any) -> None:
    """Gives the options of a command the texts below their fields as help, with what plug-ins add to it. They are read
    only now: the other uses of a command do without."""
    from nmt.config.field_docstrings import field_docstrings

    options, command.callback.options = getattr(command.callback, "options", None), None
    texts: dict[str, str] = {}
    for each in reversed(options.__mro__ if options else ()):
        with suppress(OSError, TypeError, KeyError):  # a class without its source has no texts
            texts |= {name: " ".join(text.split()) for name, text in field_docstrings(each).items()}
        for name, more in vars(each).get("more_help", {}).items():
            texts[name] = texts.get(name, "") + more
    for parameter in command.params:
        if parameter.name in texts:
            parameter.help = (parameter.help or "") + texts[parameter.name]


def sections(command: Any, ctx: typer.Context) -> dict[str, list[tuple[str, str]]]:
    """Lists the titles, each with its parameters in the form of the command line, and their help."""
    found: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        title = getattr(parameter, "rich_help_panel", None)
        if parameter.param_type_name == "argument":
            title = "Arguments"
        elif title is None:
            title = "Input and output" if parameter.name.rstrip("_") in _INPUT_AND_OUTPUT else ""
        found.setdefault(title, []).append(record)
    if command.pairs:
        found["Arguments"].append(("FILE FILE", _FILES))
    if "Machine" in found:
        found["Machine"] = found.pop("Machine")  # after the command's own options
    others = found.pop("", [])
    found["Other options" if len(found) > 1 else "Options"] = others
    return {title: records for title, records in found.items() if records}
