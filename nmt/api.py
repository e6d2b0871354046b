"""The functions of `import nmt`, whose errors are in the words of Python: ``device='gpu'`` and not ``--device gpu``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nmt
from nmt.config.structure import validate
from nmt.config.yaml_source import Document, parse_document, write
from nmt.core.errors import InputError
from nmt.data.corpus_paths import refuse_missing
from nmt.experiment import Experiment
from nmt.experiment import load as load_experiment
from nmt.translator.translator import Translator

__all__ = ["Translator", "load", "train"]

_OPTION = re.compile(r"(?<![a-z-])--([a-z][a-z-]*+) ([^\s:;,]+)")


@contextmanager
def in_library_words() -> Iterator[None]:
    """Names arguments in errors as Python does, not as the command line."""
    try:
        yield
    except InputError as error:
        raise InputError(*(_OPTION.sub(_argument, message) for message in error.messages)) from None


load = in_library_words()(nmt.load_translator)
load.__module__, load.__name__, load.__qualname__ = __name__, "load", "load"  # so that it can be pickled


@in_library_words()
def train(
    config: str | Path | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    device: str = "auto",
    precision: str = "auto",
    extend: bool = False,
) -> Path:
    """Trains what a configuration describes, or goes on training it, and returns the run directory.

    ``config`` is a YAML file, or the same as a dictionary; ``overrides`` are ``dotted.key=value`` changes of it. The
    corpus is prepared first if needed. ``extend`` allows another number of updates than the run was begun with, where
    its schedule depends on it. Messages go to stderr, as with `nmt train`. Raises InputError for a fault of
    configuration, corpus or environment, and KeyboardInterrupt for Ctrl-C once the training is saved.
    """
    if isinstance(config, Mapping):
        parsed = parse_document(write(_plain(config)), "config", overrides)
        marks = {place: mark if mark.startswith("--set") else "config" for place, mark in parsed.marks.items()}
        document = Document(parsed.tree, marks)  # a dictionary has no lines
        settings = validate(Experiment, document)
        refuse_missing(document)
    else:
        settings = load_experiment(Path(config), overrides, with_corpora=True)
    nmt.accelerate()
    from nmt.workflows import train as workflow

    return workflow.train(settings, device=device, precision=precision, extend=extend, markup=nmt.marked_line)


def _argument(match: re.Match[str]) -> str:
    name = "overrides" if match[1] == "set" else match[1].replace("-", "_")
    return f"{name}={match[2]!r}"


def _plain(value: Any) -> Any:
    """Paths and tuples as YAML has them: text and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value
