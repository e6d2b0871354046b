"""Mistakes on the command line: Typer's errors in the words of nmt, and what to type instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nmt.core.errors import InputError

OTHER_NAMES = {
    "lr": "learning_rate",
    "batch_size": "batch_tokens",
    "max_epochs": "epochs",
    "max_steps": "updates",
    "max_updates": "updates",
    "warmup_steps": "warmup",
}
"""Names that other toolkits have for keys of the configuration."""

_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", flags=re.DOTALL)


def describe(error: Any, arguments: Sequence[str], commands: Collection[str]) -> str:
    """The message for a TyperException, with what to type instead or the help page to see."""
    context: Any = getattr(error, "ctx", None)
    where = context.command_path if context else "nmt"
    if where == "nmt" and arguments and arguments[0] in commands:
        where = f"nmt {arguments[0]}"
    extra = _EXTRA.fullmatch(error.format_message())
    fault = error.__cause__.errors()[0] if isinstance(error.__cause__, ValidationError) else None
    if fault and fault["type"] != "value_error":
        from nmt.config.errors import expected

        name = error.param.opts[0]
        return f"{name}: expected {expected(fault)}, found {fault['input']} (see {where} --help)"
    if extra and where == "nmt translate":
        return _text_on_stdin(extra[1], f" {shlex.quote(context.params['model'])}")
    if context and hasattr(error, "possibilities") and any("--set" in param.opts for param in context.command.params):
        option = str(error.option_name)
        if keys := _keys(option):
            value = "".join(arguments[arguments.index(option) + 1 :][:1]) if option in arguments else "…"
            settings = " or ".join(f"--set {key}={shlex.quote(value)}" for key in keys[:3])
            return f"{option}: no such option; a key of the configuration is set with {settings}"
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    return f"{message[:1].lower()}{message[1:]} (see {where} --help)"


def refuse_text(model: str) -> None:
    """Raise InputError where the MODEL of `nmt translate` is a text or a text file."""
    path = Path(model).expanduser()
    if path.suffix not in (".yaml", ".yml") and (path.is_file() or not path.exists()):
        raise InputError(f"{model}: no such run directory, checkpoint or config; {_text_on_stdin(model, '')}")


def _text_on_stdin(text: str, model: str) -> str:
    """The command for a text, or the name of a file, that `nmt translate` has been given as an argument."""
    if Path(text).expanduser().is_file():
        return f"to translate a file: nmt translate{model} --input {shlex.quote(text)}"
    return f"to translate a text: echo {shlex.quote(text)} | nmt translate{model}"


def _keys(option: str) -> list[str]:
    """The keys of a configuration that an unknown option may stand for."""
    from nmt.config.help import keys
    from nmt.experiment import Experiment

    name = option.lstrip("-").replace("-", "_")
    return [key for key in keys(Experiment) if key.rpartition(".")[2] == OTHER_NAMES.get(name, name)]
