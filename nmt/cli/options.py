"""Arguments and options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_type_hints

import typer

from nmt.cli.conflicts import Rule
from nmt.config.yaml_source import Override
from nmt.core.memory import gc_paused

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

Precision: TypeAlias = Annotated[
    Literal["auto", "float32", "tf32", "bfloat16", "float16"],
    machine_option(
        "--precision",
        help="Number format of matrix products; auto: the faster of float32 and bfloat16, on a GPU half precision.",
    ),
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

LengthPenalty: TypeAlias = Annotated[
    float | None,
    search_option(
        "--length-penalty",
        metavar="X",
        help="Exponent of the length penalty, by which scores are divided; 0 favours short translations. Default: the "
        "configuration's.",
    ),
]

MaxLengthRatio: TypeAlias = Annotated[
    float | None,
    search_option(
        "--max-length-ratio",
        metavar="X",
        help="Longest translation, as a multiple of the source's length in tokens. Default: the configuration's.",
    ),
]

To: TypeAlias = Annotated[
    str | None,
    search_option(
        "--to",
        metavar="LANGUAGE",
        help="Target language, for a model of several languages, as its configuration names it.",
    ),
]

BatchTokens: TypeAlias = Annotated[
    int | None,
    machine_option(
        "--batch-tokens",
        metavar="N",
        min=1,
        help="Number of source tokens in a batch, including padding, times the number of beams. More is faster and "
        "needs more memory. Default: the configuration's.",
    ),
]

Ray: TypeAlias = Annotated[
    str | None,
    machine_option(
        "--ray",
        metavar="ADDRESS",
        help="Distribute the work over a Ray cluster: HOST:PORT, ray://HOST:PORT, or auto (a running cluster, "
        "otherwise a new one of this machine's cores).",
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """The options of a command that searches with a model. The command's own options come before them in its help."""

    model: Model = None
    to: To = None
    beam: Beam = None
    length_penalty: LengthPenalty = None
    max_length_ratio: MaxLengthRatio = None
    batch_tokens: BatchTokens = None
    device: Device = "auto"
    precision: UsePrecision = "auto"
    overrides: Overrides = None

    @property
    def changes(self) -> list[str]:
        """Returns the changes of the configuration."""
        keys = ("beam", "length_penalty", "max_length_ratio", "batch_tokens", "to")
        return with_search(self.overrides, {key: getattr(self, key) for key in keys})


Options = TypeVar("Options", bound=ModelOptions)


def with_options(
    options: type[Options], conflicts: Sequence[Rule]
) -> Callable[[Callable[[Options], None]], Callable[..., Callable[[], None]]]:
    """Turns a function of one dataclass into a command; the fields of the dataclass are the parameters that Typer sees.
    The command returns the function with its options, ready for a call, and raises InputError for options that break a
    rule of ``conflicts``."""

    def command(function: Callable[[Options], None]) -> Callable[..., Callable[[], None]]:
        @wraps(function)
        def parse(**values: Any) -> Callable[[], None]:
            parsed = options(**values)
            for rule in conflicts:
                rule.check(parsed)
            return partial(function, parsed)

        annotations = get_type_hints(options, include_extras=True)
        own = [field for field in fields(options) if field.name in options.__annotations__]
        cast(Any, parse).__signature__ = Signature(
            [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotations[field.name])
                for field in dict.fromkeys([*own, *fields(options)])
            ]
        )
        return parse

    return command


def first_word(option: Callable[..., Any], name: str, files: str) -> Any:
    """Creates the option for links whose words are numbered from 0 or from 1; ``option`` creates it, like
    ``typer.Option``."""
    text = f"Number of the first word of a sentence in {files}. Default: 0."
    return option(name, metavar="0|1", min=0, max=1, help=text)


def with_search(overrides: Sequence[str] | None, options: Mapping[str, object]) -> list[str]:
    """Joins the user's overrides with the search options as overrides: ``--beam 3`` is ``--set search.beam=3``."""
    return [*(overrides or []), *(_change(key, value) for key, value in options.items() if value is not None)]


def _change(key: str, value: object) -> Override:
    """Returns the change of the search by an option: text stays text, and other values are YAML."""
    option = f"--{key.rpartition('.')[2].replace('_', '-')}"
    if isinstance(value, str):
        return Override.text(f"search.{key}", option, value)
    typed = str(value).removesuffix(".0").lower()
    return Override(f"search.{key}={typed}", option if isinstance(value, bool | dict) else f"{option} {typed}")


def check_model(model: str | None, overrides: Sequence[str], *, needs_language: bool = False) -> None:
    """Raises InputError for a missing model, or a fault in its configuration, before PyTorch is imported, which takes a
    second or two. The workflow then loads the model. With ``needs_language``, one language must be chosen for a model
    of several target languages."""
    with gc_paused():
        from nmt.translator.find_run import check

    check(model, overrides, needs_language=needs_language)
