"""Sentence pairs on the command line: two options, one option for a file of pairs, or files as arguments."""

from __future__ import annotations

import shlex
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import typer

from nmt.core.errors import InputError


def add_options(params: list[Any]) -> tuple[list[tuple[Any, Any, Any]], bool]:
    """Adds --tsv and so on to the parameters of a command, after --source and --target. Returns the options that belong
    together, and True if the command needs pairs."""
    names = {parameter.name: parameter for parameter in params}
    pairs = [
        (source, target, _one_file(source.name.replace("source", "tsv"), target))
        for source in params
        for end in ("target", "reference")
        if source.name.endswith("source") and (target := names.get(source.name.replace("source", end)))
    ]
    needs_pairs = any(source.required for source, *_ in pairs)
    for source, target, one_file in pairs:
        source.required = target.required = False  # one_file may replace both
        params.insert(max(map(params.index, (source, target))) + 1, one_file)
    return pairs, needs_pairs


def find_pairs(command: Any, ctx: typer.Context) -> None:
    """Sets the parameters of both sides from two options, one option for a file of pairs, or arguments."""
    for source, target, one_file in command.pairs:
        both = ctx.params.pop(one_file.name)
        given = [side.opts[0] for side in (source, target) if ctx.params[side.name] is not None]
        if both is not None and given:
            raise InputError(f"{one_file.opts[0]} holds both sides; leave out {' and '.join(given)}, or it")
        files = [both] if both else []
        if one_file.name == "tsv" and not (given or files):
            files = [one_file.process_value(ctx, file) for file in _files(command, ctx)]
        if files:
            ctx.params |= {source.name: files[0], target.name: files[-1]}
        missing = [side.opts[0] for side in (source, target) if ctx.params[side.name] is None]
        if command.needs_pairs and missing:
            raise InputError(f"{' and '.join(missing)}: missing; or name the files: {ctx.command_path} FILE FILE")
    if ctx.args:
        ctx.fail(f"Got unexpected extra argument(s) ({shlex.join(ctx.args)})")


def _files(command: Any, ctx: typer.Context) -> list[str]:
    """Takes one or two files of text from the arguments. A command's own argument, MODEL or NAME, comes first; a
    folder, a configuration and an archive with one are a model, and any other file is text."""
    own = next((each.name for each in command.params if each.param_type_name == "argument"), "")
    first, files = ctx.params.get(own), ctx.args[:2]
    if first is not None and len(files) < 2 and own != "links" and not _is_model(Path(first)):
        if files and own == "model" and not Path(first).exists():
            raise InputError(f"{first}: no such run, configuration or text file")
        if Path(first).is_file():
            files.insert(0, first)
            if own == "name":
                raise InputError(f"NAME is missing: {ctx.command_path} NAME {shlex.join(files)}")
            ctx.params[own] = None
    del ctx.args[:2]
    return files


def _is_model(path: Path) -> bool:
    with suppress(OSError, BadZipFile), ZipFile(path) as archive:
        return any(name.endswith("config.yaml") for name in archive.namelist())
    return path.suffix in (".yaml", ".yml")


def _one_file(name: str, side: Any) -> Any:
    """Creates the option for one file that holds both sides, like the option for one of them."""
    option = copy(side)
    option.name, option.opts = name, [f"--{name.replace('_', '-')}"]
    option.required = False
    option.help = "One file instead of these two: lines of source, TAB, target."
    return option
