"""Plug-ins: parts of nmt, or of other people's packages, that are found and not named.

A folder in ``extras`` with a file ``plugin.py`` is a plug-in, and so is what a package names in its entry points:

    [project.entry-points."nmt.plugins"]
    anything = "package.plugin"          # a module with a Plugin named PLUGIN

A `Plugin` maps names to references, texts ``module:attribute``, so that a module is imported when its thing is used. A
plug-in of another package that is broken, or that has a name which is taken, is left out with a warning; only a command
that needs it fails, in one line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from glob import escape, glob
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nmt.core.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

GROUP = "nmt.plugins"


@dataclass(frozen=True)
class Command:
    """A command: the function that Typer makes it of, or one of `nmt.cli.options.with_options`.

    The page of all commands shows it under the title ``group``, sorted by ``place``.
    """

    reference: str
    group: str = "More"
    place: int = 100


@dataclass(frozen=True)
class Choice:
    """A value of an option, with its help."""

    reference: str
    help: str = ""


@dataclass(frozen=True)
class AlignmentFormat(Choice):
    """A format of `nmt align`; the reference is an `nmt.workflows.align.OpenWriter`."""

    output: Literal["stdout", "file", "folder"] = "stdout"
    """The least that --output must name."""
    is_soft: bool = True
    """It shows weights, not only links."""
    has_views: bool = False
    """It shows several alignments of a pair, one by each of --view."""
    on_terminal: bool = False
    """The default on a terminal."""


@dataclass(frozen=True)
class AlignmentMethod(Choice):
    """A method of `nmt align`; the reference is a function of a `TrainedModel` that returns a `LearntAligner`."""

    files: Sequence[str] = ()
    """The files of a run whose model has the method."""


@dataclass(frozen=True)
class Plugin:
    """What a plug-in adds, by kind and name. All that is called is called with positional arguments.

    Attributes:
        commands: Commands of ``nmt``.
        options: For the name of a command, classes of options that it gets as well: frozen dataclasses of annotated
            options of Typer. In the class that the command is built with, they come before the command's own class,
            whose methods they may override (``super()`` is the next one). The text below a field is the help of an
            option that has none. Class variables: ``after`` names the field that they follow on the help page,
            ``conflicts`` has rules of `nmt.cli.conflicts`, and ``more_help`` the text that is added to the help of
            other fields or, by the name "", of the command.
        engines: Values of ``nmt translate --engine``: (`TrainedModel`, device, precision) ->
            `nmt.translator.translator.Engine`.
        formats: Values of ``nmt align --format``.
        methods: Values of ``nmt align --method``.
        scores: Values of ``model.attention.score``: subclasses of `nmt.attention.mechanism.Score`.
        weights: Values of ``model.attention.weights``: subclasses of `nmt.attention.mechanism.Weighting`.
        metrics: Values of ``nmt evaluate --metric``: (hypotheses, references) ->
            `nmt.evaluation.translation.MetricScore`.
        parts: Functions that nmt calls where they are installed. Their names are these, with the module that has their
            type: ``accelerate``, ``training_threads``, ``glossary``, ``wait`` (`nmt`), ``markup``
            (`nmt.translator.segmentation.Markup`), ``constrained_search`` (`nmt.search.engine.ConstrainedSearch`),
            ``save_model`` (`nmt.translator.translator`), ``plot_alignment`` (`nmt.alignment.formats`), ``align_pairs``
            (`nmt.api`), ``write_links`` (`nmt.workflows.init_config`), ``minimum_risk``, ``wait_training``
            (`nmt.training.objective`), ``merged_adapters`` (`nmt.training.trainer`), ``adapters``,
            ``vocabulary_transfer``, ``word_vectors`` (`nmt.workflows.train`).
    """

    commands: Mapping[str, Command] = field(default_factory=dict)
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    engines: Mapping[str, Choice] = field(default_factory=dict)
    formats: Mapping[str, AlignmentFormat] = field(default_factory=dict)
    methods: Mapping[str, AlignmentMethod] = field(default_factory=dict)
    scores: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)


def entries(kind: str, own: Collection[str] = ()) -> Mapping[str, Any]:
    """The values of a kind by their names, without those whose name nmt has itself (``own``)."""
    return {name: value for name, (_, value) in _index(kind, tuple(own)).items()}


def find(kind: str, name: str, option: str, own: Collection[str] = ()) -> Any:
    """The object of a kind and name. Raises InputError, which begins with ``option``, where no plug-in has it, with the
    names that there are besides nmt's ``own``, or where it cannot be imported."""
    found = _index(kind, ())
    if name not in found:
        known = "needs a part of nmt that is not installed"
        raise InputError(f"{option}: {known if kind == 'parts' else 'use one of ' + ', '.join([*own, *found])}")
    owner, value = found[name]
    reference = value if isinstance(value, str) else value.reference
    try:
        return attribute(reference)
    except Exception as error:
        if not owner or isinstance(error, InputError):
            raise
        raise InputError(_fault(owner, reference, error)) from error


def has(kind: str, name: str) -> bool:
    """True if a plug-in has this name."""
    return name in _index(kind, ())


def loaded(kind: str, base: type[Any], own: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """The names and classes of a kind, which are subclasses of ``base``; others are left out with a warning."""
    for name, (owner, reference) in _index(kind, tuple(own)).items():
        if (value := _class(owner, reference, base)) is not None:
            yield name, value


def options(command: str) -> Iterator[tuple[str, type[Any]]]:
    """The classes of options that plug-ins add to a command, each with the name of its distribution."""
    for owner, plugin in _plugins():
        for reference in plugin.options.get(command, ()):
            if (value := _class(owner, reference, object)) is not None:
                yield owner, value


def leave_out(owner: str, name: str, reason: Exception | str) -> None:
    """Warns of a part of a plug-in that is not used."""
    from nmt.core import log

    log.warning(_fault(owner, name, reason))


@cache
def _plugins() -> tuple[tuple[str, Plugin], ...]:
    """The plug-ins, each with the name of its distribution; that of nmt itself is empty."""
    rooms = sorted(path.parent.name for path in Path(__file__).parent.glob("extras/*/plugin.py"))
    found = [("", import_module(f"{__package__}.extras.{room}.plugin").PLUGIN) for room in rooms]
    for distribution in _distributions():
        for point in distribution.entry_points.select(group=GROUP):
            try:
                plugin = point.load()
                plugin = getattr(plugin, "PLUGIN", plugin)
                if not isinstance(plugin, Plugin):
                    raise TypeError("is not a nmt.plugins.Plugin, and has none named PLUGIN")
            except Exception as error:  # whatever another package does when it is imported
                leave_out(distribution.name, point.value, error)
            else:
                found.append((distribution.name, plugin))
    return tuple(found)


def _distributions() -> Iterator[Distribution]:
    """The installed packages that have plug-ins. `importlib.metadata.entry_points` reads the same files, but those of
    every package, and twice as slowly."""
    from importlib.metadata import Distribution

    seen = set[str]()
    for folder in sys.path:
        for path in sorted(glob(os.path.join(escape(folder or "."), "*.*-info", "entry_points.txt"))):
            with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
                if f"[{GROUP}]" in file.read():
                    distribution = Distribution.at(os.path.dirname(path))
                    if distribution.name not in seen:
                        seen.add(distribution.name)
                        yield distribution


@cache
def _index(kind: str, own: tuple[str, ...]) -> Mapping[str, tuple[str, Any]]:
    """The values of a kind with the names of their distributions."""
    found: dict[str, tuple[str, Any]] = {}
    for owner, plugin in _plugins():
        for name, value in getattr(plugin, kind).items():
            if name in own or name in found:
                leave_out(owner, f"{kind}: {name}", "the name is taken")
            else:
                found[name] = owner, value
    return found


def attribute(reference: str) -> Any:
    """Imports the object that a reference ``module:attribute`` names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def _class(owner: str, reference: str, base: type[Any]) -> type[Any] | None:
    """The class; None, with a warning, where it cannot be imported or is of another kind."""
    try:
        value = attribute(reference)
        if not (isinstance(value, type) and issubclass(value, base)):
            raise TypeError(f"is not a {base.__name__}")
    except Exception as error:
        if not owner:
            raise
        leave_out(owner, reference, error)
        return None
    return value


def _fault(owner: str, name: str, reason: Exception | str) -> str:
    text = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
    return f"plug-in {owner}: {name}: {text}; update the package, or remove it: pip uninstall {owner}"
