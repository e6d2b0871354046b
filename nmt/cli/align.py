"""`nmt align`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

import typer

from nmt import plugins
from nmt.cli.align_options import CONFLICTS, SOFT, VIEWED, AlignmentOptions, listed
from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import ModelOptions, check_model, loader, with_options
from nmt.config.yaml_source import Override
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused
from nmt.plugins import AlignmentMethod

_METHODS = ("attention", "shifted-attention", "gradient", "input-x-gradient")

METHODS: Mapping[str, AlignmentMethod] = plugins.entries("methods", _METHODS)
"""Methods of plug-ins."""

if TYPE_CHECKING:
    from nmt.alignment import Magnitude

    _Method: TypeAlias = str
else:
    _Method = Literal[(*_METHODS, *METHODS)]

_models = partial(typer.Option, rich_help_panel="Models")


@dataclass(frozen=True)
class AlignOptions(ModelOptions, AlignmentOptions):
    """The options of `nmt align`."""

    free_running: Annotated[bool, typer.Option("--free-running", rich_help_panel="Input")] = False
    """Align the model's own translations instead of --target."""
    method: Annotated[
        _Method | None,
        _models(
            help="Source of the soft matrix: attention of the step that produces a word, or of the next step "
            "(shifted-attention); gradients, which are much slower and work without attention"
            f"{''.join(f'; or {method.help}' for method in METHODS.values())}. Default: attention."
        ),
    ] = None
    raw: Annotated[bool, _models("--raw")] = False
    """Do not scale the rows of --method gradient or input-x-gradient."""
    signed: Annotated[bool, _models("--signed")] = False
    """As --raw, and keep the sign of --method input-x-gradient."""
    heads: Annotated[str | None, _models(metavar="PATTERN")] = None
    """Pattern of the heads whose attention weights are averaged, for example layer3.* or layer2.head1. Default: all."""
    choose_heads: Annotated[Literal["entropy", "gold"] | None, _models()] = None
    """Choose all heads, the heads of one layer, or one head: those with the sharpest weights on the first 200 pairs
    (entropy), or with the lowest error rate (gold)."""
    level: Annotated[Literal["word", "subword"] | None, _models()] = None
    """The tokens of the soft matrix: words or subwords. Default: word."""
    compare: Annotated[bool, _models("--compare")] = False
    """Print how far the methods of a model agree, and with --gold their AER, instead of alignments."""
    json: Annotated[bool, _models("--json")] = False
    """Print the results of --compare as one JSON object."""
    reverse: Annotated[str | None, _models(metavar="MODEL")] = None
    """A model that translates the target into the source; the alignments of both models are joined."""
    reverse_to: Annotated[str | None, _models(metavar="LANGUAGE")] = None
    """Target language of --reverse, for a model of several languages."""
    after: ClassVar[str] = "text"

    def job(self) -> Callable[[], object]:
        """Returns the call that aligns by one model or two; a plug-in may return another one."""
        from nmt.alignment.request import BY_ATTENTION, AlignmentRequest, parse_request

        inputs, outputs = self.inputs, self.outputs
        magnitude: Magnitude = "signed" if self.signed else "raw" if self.raw else "relative"
        requests = self.requests(
            parse_request, one_way=self.reverse is None, remedy="models; give --reverse as well"
        ) or [AlignmentRequest(self.method or "attention", magnitude=magnitude)]
        chosen = self.views or self.heads or self.choose_heads or self.reverse
        if self.format_ == VIEWED and not chosen and requests[0].method in BY_ATTENTION:
            requests.append(replace(requests[0], heads="*", each=True))
        changes = self.changes
        if self.heads is not None:
            changes.append(Override.text("alignment.heads", "--heads", self.heads))
        check_model(self.model, changes, needs_language=True)
        with gc_paused():
            from nmt.workflows import align_models as workflow

        reverse = None
        if self.reverse is not None:
            of_reverse = [change for change in changes if not change.startswith("search.to=")]
            if self.reverse_to is not None:
                of_reverse.append(Override.text("search.to", "--to", self.reverse_to))
            load = loader(self.reverse, of_reverse, device=self.device, precision=self.precision)
            reverse = workflow.Reverse(load, self.join)
            try:
                check_model(self.reverse, of_reverse, needs_language=True)
            except InputError as error:
                raise InputError(*(message.replace("--to", "--reverse-to") for message in error.messages)) from None
        load = partial(self.load(), overrides=changes)
        if self.compare:
            return partial(workflow.compare, inputs, json=self.json, load=load)
        models = workflow.AlignmentModels(self.model, reverse, self.choose_heads, self.level or "word")
        return partial(workflow.align, models, requests, inputs, outputs, load)


OF_MODELS = (
    "model free_running reverse method raw signed heads choose_heads compare json level changes device precision"
)
OF_TWO_DIRECTIONS = "symmetrize threshold views"

ALIGN_CONFLICTS = (
    *CONFLICTS[:-1],
    Needs("signed", "method=input-x-gradient", "--signed: only products have a sign; add --method input-x-gradient"),
    Needs("raw", "method=gradient/input-x-gradient", "--raw: is of gradients; add --method gradient"),
    Excludes("signed", "raw", "--signed leaves the matrix as it is, too; leave out --raw"),
    Needs("raw signed", f"format_={'/'.join(SOFT)}",
        f"{{option}} is of the soft matrix, for --format {listed(SOFT, 'or')}; add one of these"),
    Excludes("raw signed", "reverse",
        "{option}: derivatives of two models' scores cannot be joined; leave out {others}"),
    Excludes("heads", "method!=attention/shifted-attention",
        "--heads are those of attention, which --method {method} does not look at; leave it out"),
    Excludes("choose_heads", "heads", "--heads names the heads, and --choose-heads looks for them; leave one out"),
    Excludes("choose_heads", "method!=attention",
        "--choose-heads is of attention, which --method {method} does not look at; leave it out"),
    Needs("choose_heads=gold", "gold", "--choose-heads gold goes by gold links; give --gold as well"),
    Needs("gold", "target", "--gold holds links of given translations; give --target as well"),
    Excludes("free_running", "target",
        "--free-running aligns the model's own translations; leave out --target, or --free-running"),
    Excludes("beam length_penalty max_length_ratio", "target",
        "--beam, --length-penalty and --max-length-ratio do nothing where --target is given"),
    Needs("symmetrize threshold", "reverse", "--symmetrize and --threshold join two models; give --reverse as well"),
    Excludes("reverse", "free_running",
        "--reverse aligns given pairs, and --free-running the model's own translations; leave one out"),
    Needs("reverse_to", "reverse", "--reverse-to is the target language of --reverse; give --reverse as well"),
    Needs("reverse", "target", "--reverse aligns given pairs; give --target as well"),
    Excludes("reverse", "compare", "--compare is of the methods of one model; leave out --reverse, or --compare"),
    Excludes("reverse", "level=subword",
        "--level subword: two models are joined between words, as their subwords differ; leave it out"),
    Needs("json", "compare", "--json is for the report of --compare; add --compare, or use --format jsonl"),
    Excludes("compare", "method raw signed format_ views level output base choose_heads",
        "--compare prints a report on all methods, between words; leave out {others}"),
    CONFLICTS[-1],
    Excludes("views", "method heads", "--view names methods and heads itself; leave out {others}, or --view"),
)  # fmt: skip


@with_options(AlignOptions, ALIGN_CONFLICTS)
def align(options: AlignOptions) -> Callable[[], object]:
    """Align the words of sentence pairs.

    Uses a model's attention or gradients, and prints one line for each pair. With --target it aligns given pairs
    (forced decoding), and without it the model's own translations. With --reverse two models align the pairs, one
    from each side, and their alignments are joined. With --compare it prints how far the methods of a model agree.
    nmt links joins, converts, draws or scores links from files."""
    return options.job()
