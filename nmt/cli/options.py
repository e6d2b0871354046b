"""Arguments and options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeAlias, TypeVar, cast, get_type_hints

import typer

import nmt
from nmt.cli.conflicts import Rule
from nmt.config.yaml_source import Override
from nmt.core.memory import gc_paused
from nmt.plugins import Choice, entries, leave_out

if TYPE_CHECKING:
    from nmt.translator.translator import Loader, Translator

    _Engine = str
else:
    _Engine = Literal[("nmt", *entries("engines", ["nmt"]))]

search_option = partial(typer.Option, rich_help_panel="Search")
machine_option = partial(typer.Option, rich_help_panel="Machine")

Config: TypeAlias = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a YAML file.")]

Model: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="A run directory, a checkpoint folder inside one, the configuration that trained it, or an archive "
        "(.zip) of a model; default: the run under runs/ that trained last.",
    ),
]

Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the configuration, for example model.encoder.layers=2; repeatable.",
    ),
]

Device: TypeAlias = Annotated[
    str, machine_option("--device", metavar="DEVICE", help="auto (CUDA if available), cpu, cuda, or cuda:1.")
]

UsePrecision: TypeAlias = Annotated[
    Literal["auto", "float32", "tf32", "bfloat16", "float16", "int8"],
    machine_option(
        "--precision",
        help="Number format of the matrix products; auto chooses bfloat16 or float16 if the hardware supports it; "
        "int8, on a CPU, rounds more.",
    ),
]

Beam: TypeAlias = Annotated[
    int | None,
    search_option("--beam", metavar="N", min=1, help="Beam size; 1 is greedy search. Default: the configuration's."),
]

To: TypeAlias = Annotated[
    str | None,
    search_option(
        "--to",
        metavar="LANGUAGE",
        help="Target language, for a model of several languages, as its configuration names it.",
    ),
]


def choices_help(choices: Mapping[str, Choice]) -> str:
    """The help of the values of an option, those with the same one together: ``png, svg: a picture; html: a page``."""
    names: dict[str, list[str]] = {}
    for name, choice in choices.items():
        names.setdefault(choice.help, []).append(name)
    return "; ".join(f"{', '.join(same)}: {text}" for text, same in names.items())


Engine: TypeAlias = Annotated[_Engine, machine_option("--engine", help=f"{choices_help(entries('engines', ['nmt']))}.")]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of a command that trains models."""

    device: Device = "auto"
    precision: Annotated[Literal["auto", "float32", "tf32", "bfloat16", "float16"], machine_option()] = "auto"
    """Number format of matrix products; auto: the faster of float32 and bfloat16, on a GPU half precision."""
    overrides: Overrides = None


@dataclass(frozen=True)
class LoadingOptions:
    """The options of a command that loads models. The command's own options come before them in its help."""

    batch_tokens: Annotated[int | None, machine_option(metavar="N", min=1)] = None
    """Number of source tokens in a batch, including padding, times the number of beams. More is faster and needs more
    memory. Default: the configuration's."""
    device: Device = "auto"
    precision: UsePrecision = "auto"
    overrides: Overrides = None


@dataclass(frozen=True)
class ScoringOptions(LoadingOptions):
    """The options of a command that scores with a model, likewise."""

    model: Model = None
    to: To = None
    length_penalty: Annotated[float | None, search_option(metavar="X")] = None
    """Exponent of the length penalty, by which scores are divided; 0 favours short translations. It is at most 1 where
    a line has a prefix, constraints or terms. Default: the configuration's."""

    @property
    def changes(self) -> list[str]:
        """Returns the changes of the configuration."""
        keys = ("beam", "length_penalty", "max_length_ratio", "batch_tokens", "to")
        return with_search(self.overrides, {key: getattr(self, key, None) for key in keys})

    def load(self) -> Loader:
        """Returns the function that loads the translator; a plug-in may add arguments to it."""
        return loader(self.model, self.changes, device=self.device, precision=self.precision)


@dataclass(frozen=True)
class ModelOptions(ScoringOptions):
    """The options of a command that searches with a model, likewise."""

    beam: Beam = None
    max_length_ratio: Annotated[float | None, search_option(metavar="X")] = None
    """Longest translation, as a multiple of the source's length in tokens. Default: the configuration's."""


def loader(model: str | None, changes: Sequence[str], *, device: str, precision: str) -> Loader:
    """Returns the function that loads the translator of a command."""
    return partial(load_translator, model=model, overrides=changes, device=device, precision=precision)


def load_translator(**arguments: Any) -> Translator:
    """Loads a translator like ``nmt.load_translator``, for which most commands import PyTorch."""
    with gc_paused():
        return nmt.load_translator(**arguments)


Options = TypeVar("Options")


@dataclass(frozen=True)
class OptionsCommand(Generic[Options]):
    """A command that is a function of one dataclass, whose fields are the parameters that Typer sees. The text below a
    field is the help of an option that has none; `nmt.cli.help_sections.describe` reads it. The function may return
    another one, which is called next."""

    function: Callable[[Options], Callable[[], object] | None]
    options: type[Options]
    conflicts: Sequence[Rule]

    def parser(self, additions: Iterable[tuple[str, type[Any]]]) -> Callable[..., Callable[[], object]]:
        """The function for Typer. It returns the command with its options, ready for a call; options that break a rule
        are an InputError. ``additions`` are the classes of plug-ins (`nmt.plugins.Plugin`) and their distributions."""
        options: type[Any] = self.options
        own = [field.name for field in fields(options) if field.name in vars(options)["__annotations__"]]
        names = [field.name for field in fields(options) if field.name not in own]
        first = names.index(vars(options)["after"]) + 1 if "after" in vars(options) else 0
        names[first:first] = own
        bases, rules, last = list[type[Any]](), list[Rule](), own[-1]
        for owner, addition in additions:
            is_frozen = getattr(getattr(addition, "__dataclass_params__", None), "frozen", False)
            added = [field.name for field in fields(addition)] if is_frozen else []
            taken = [name for name in added if name in names]
            if taken or not is_frozen:
                reason = f"the name {taken[0]} is taken" if taken else "is not a frozen dataclass"
                leave_out(owner, f"{addition.__module__}:{addition.__name__}", reason)
                continue
            after = getattr(addition, "after", last)
            place = names.index(after if after in names else last) + 1
            names[place:place] = added
            bases.append(addition)
            rules += vars(addition).get("conflicts", ())
        if bases:
            options = dataclass(frozen=True, repr=False, eq=False)(type(options.__name__, (*bases, options), {}))
        # that an option is missing is the first thing to say
        rules = sorted([*rules, *self.conflicts], key=lambda rule: bool(rule.options))

        @wraps(self.function)
        def parse(**values: Any) -> Callable[[], object]:
            parsed = options(**values)
            for rule in rules:
                rule.check(parsed)
            return partial(self.function, parsed)

        parse.__doc__ = (parse.__doc__ or "") + "".join(vars(each).get("more_help", {}).get("", "") for each in bases)
        annotations = get_type_hints(options, include_extras=True)
        cast(Any, parse).options = options
        parameter = partial(Parameter, kind=Parameter.KEYWORD_ONLY)
        defaults = {name: getattr(options, name, Parameter.empty) for name in names}
        parameters = [parameter(name, default=defaults[name], annotation=annotations[name]) for name in names]
        cast(Any, parse).__signature__ = Signature(parameters)
        return parse


def with_options(
    options: type[Options], conflicts: Sequence[Rule] = ()
) -> Callable[[Callable[[Options], Callable[[], object] | None]], OptionsCommand[Options]]:
    """Makes a command of a function of one dataclass of options."""
    return lambda function: OptionsCommand(function, options, conflicts)


def first_word(option: Callable[..., Any], name: str, files: str) -> Any:
    """Creates the option for links whose words are numbered from 0 or from 1; ``option`` creates it, like
    ``typer.Option``."""
    return option(name, metavar="0|1", min=0, max=1, help=f"Number of the first word in {files}. Default: 0.")


def with_search(overrides: Sequence[str] | None, options: Mapping[str, object]) -> list[str]:
    """Joins the user's overrides with the search options as overrides: ``--beam 3`` is ``--set search.beam=3``."""
    return [*(overrides or []), *(_change(key, value) for key, value in options.items() if value is not None)]


def _change(key: str, value: object) -> Override:
    """Returns the change of the search by an option: text stays text, and other values are YAML."""
    option = f"--{key.rpartition('.')[2].replace('_', '-')}"
    if isinstance(value, str):
        return Override.text(f"search.{key}", option, value)
    text = str(value).removesuffix(".0").lower()
    return Override(f"search.{key}={text}", option if isinstance(value, bool | dict) else f"{option} {text}")


def check_model(model: str | None, overrides: Sequence[str], *, needs_language: bool = False) -> None:
    """Raises InputError for a missing model, or a fault in its configuration, before PyTorch is imported, which takes a
    second or two. The workflow then loads the model. With ``needs_language``, one language must be chosen for a model
    of several target languages."""
    with gc_paused():
        from nmt.translator.find_run import validate_model

    validate_model(model, overrides, needs_language=needs_language)
