"""The options of `nmt align`, in the groups of its help page, and the rules that they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from nmt import plugins
from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import ModelOptions, choices_help, first_word
from nmt.plugins import AlignmentFormat, AlignmentMethod

_METHODS = ("attention", "shifted-attention", "gradient", "input-x-gradient")
_FORMATS = ("pharaoh", "gold", "tsv", "jsonl", "npz")

METHODS: Mapping[str, AlignmentMethod] = plugins.entries("methods", _METHODS)
"""Methods of plug-ins."""

FORMATS: Mapping[str, AlignmentFormat] = plugins.entries("formats", _FORMATS)
"""Formats of plug-ins."""

VIEWED = "/".join(name for name, format_ in FORMATS.items() if format_.has_views)
"""The format that shows several alignments of a pair."""

ON_TERMINAL = next((name for name, format_ in FORMATS.items() if format_.on_terminal), None)
"""The default format on a terminal."""

_FILES = ["npz", *(name for name, format_ in FORMATS.items() if format_.output == "file")]
_FOLDERS = [name for name, format_ in FORMATS.items() if format_.output == "folder"]
_SOFT = ["tsv", "jsonl", "npz", *(name for name, format_ in FORMATS.items() if format_.is_soft)]

if TYPE_CHECKING:
    from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, ReportOptions

    _Method: TypeAlias = str
    _Format: TypeAlias = str
else:
    _Method, _Format = Literal[(*_METHODS, *METHODS)], Literal[(*_FORMATS, *FORMATS)]


def _join(names: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


_aligned = partial(typer.Option, rich_help_panel="Input")
_models = partial(typer.Option, rich_help_panel="Models")
_files = partial(typer.Option, rich_help_panel="Links from files, without a model")
_joined = partial(typer.Option, rich_help_panel="Two directions")
_written = partial(typer.Option, rich_help_panel="Output")
_judged = partial(typer.Option, rich_help_panel="Evaluation")


@dataclass(frozen=True)
class AlignOptions(ModelOptions):
    """The options of `nmt align`."""

    source: Annotated[Path | None, _aligned("--source", "-s", metavar="FILE")] = None
    """Source sentences."""
    target: Annotated[Path | None, _aligned("--target", "-t", metavar="FILE")] = None
    """Their translations, to be aligned."""
    free_running: Annotated[bool, _aligned("--free-running")] = False
    """Align the model's own translations instead of --target."""
    text: Annotated[bool, _aligned("--text")] = False
    """The lines are ordinary text: find its words and punctuation marks, and align these."""
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
    reverse: Annotated[str | None, _models(metavar="MODEL")] = None
    """A model that translates the target into the source; the alignments of both models are joined."""
    reverse_to: Annotated[str | None, _models(metavar="LANGUAGE")] = None
    """Target language of --reverse, for a model of several languages."""
    links: Annotated[Path | None, _files(metavar="FILE")] = None
    """Read links from this file, of any format and aligner, instead of using a model."""
    reverse_links: Annotated[Path | None, _files(metavar="FILE")] = None
    """Links of the other direction, to be joined with --links; source first, as fast_align and eflomal write them."""
    links_base: Annotated[int | None, first_word(_files, "--links-base", "--links and --reverse-links")] = None
    target_first: Annotated[bool, _files("--target-first")] = False
    """--reverse-links (or --links, if it is the only file) puts the target first, as nmt align with a model of the
    other direction does."""
    symmetrize: Annotated[
        Literal[
            "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "soft-mean", "soft-product"
        ]
        | None,
        _joined(metavar="METHOD"),
    ] = None
    """How both directions are joined: by their links (intersection, union, grow-diag, grow-diag-final,
    grow-diag-final-and), or by a threshold on the mean or product of their matrices (soft-mean, soft-product). Default:
    grow-diag-final-and."""
    threshold: Annotated[float | None, _joined(metavar="X")] = None
    """Smallest mean or product of a link. Default: 0.25 for soft-mean, 0.05 for soft-product."""
    format_: Annotated[
        _Format | None,
        _written(
            "--format",
            metavar="FORMAT",
            help="pharaoh: hard links 0-0 1-2; gold: sure 3-4, possible 3p4; tsv: a table of links; jsonl, npz: also "
            f"the soft matrix; {choices_help(FORMATS)}. "
            f"Default: pharaoh{f', on a terminal {ON_TERMINAL}' if ON_TERMINAL else ''}.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        _written(
            "--output",
            "-o",
            metavar="PATH",
            help=f"File to write{f', for {_join(_FOLDERS)} a folder' if _FOLDERS else ''}; default: stdout.",
        ),
    ] = None
    base: Annotated[int | None, first_word(_written, "--base", "pharaoh, gold and tsv")] = None
    level: Annotated[Literal["word", "subword"] | None, _written()] = None
    """The tokens of the soft matrix: words or subwords. Default: word."""
    views: Annotated[
        list[str] | None,
        _written(
            "--view",
            metavar="VIEW",
            help=f"A view of --format {VIEWED}: METHOD or METHOD:HEADS, for example attention:layer3.* or gradient; "
            "each:HEADS for each head; links for --links; with the prefix forward: or backward: for one of two "
            "directions. Repeatable. Default: the alignment by the other options, and each head of attention.",
            hidden=not VIEWED,
        ),
    ] = None
    gold: Annotated[Path | None, _judged(metavar="FILE")] = None
    """Gold links, 3-4 sure and 3p4 possible: print AER to stderr."""
    gold_base: Annotated[int | None, first_word(_judged, "--gold-base", "--gold")] = None
    compare: Annotated[bool, _judged("--compare")] = False
    """Print how far the methods of a model agree, and with --gold their AER, instead of alignments."""
    json: Annotated[bool, _judged("--json")] = False
    """Print the results of --compare as one JSON object."""

    def reports(self) -> list[ReportOptions]:
        """Lists the tables to make of all pairs, those of plug-ins."""
        return []

    def run(self, inputs: AlignmentInputs, outputs: AlignmentOutputs) -> None:
        """Aligns by a model or by links from files; a plug-in may do it in another way."""
        from nmt.cli.align import align_by_models, align_links

        (align_by_models if self.links is None else align_links)(self, inputs, outputs)


OF_MODELS = (
    "model free_running reverse method raw signed heads choose_heads compare json level changes device precision"
)
OF_LINKS = "links reverse_links links_base target_first symmetrize threshold views"

CONFLICTS = (
    Needs("", "source", "--source is missing; name the file with the source sentences"),
    Needs("gold_base", "gold", "--gold-base is of the links of --gold; give --gold as well"),
    Excludes("base", "format_!=pharaoh/gold/tsv",
        "--base: {format_} always counts from 0; leave it out, or use pharaoh, gold or tsv"),
    Needs(f"format_={'/'.join(_FILES)}", "output", "--format {format_} needs --output, a file"),
    Needs(f"format_={'/'.join(_FOLDERS)}", "output", "--format {format_} needs --output, a folder for the pictures"),
    # by links from files
    Excludes("links", OF_MODELS, "--links takes links from a file, without a model; leave out {others}"),
    Needs("links", "target", "--links are of given pairs; give --target as well"),
    Needs("symmetrize threshold", "reverse_links",
        "--symmetrize and --threshold join two files of links; give --reverse-links as well", where="links"),
    Needs("reverse_links links_base target_first", "links",
        "--reverse-links, --links-base and --target-first go with links from a file; give --links"),
    # by models
    Needs("signed", "method=input-x-gradient", "--signed: only products have a sign; add --method input-x-gradient"),
    Needs("raw", "method=gradient/input-x-gradient", "--raw: is of gradients; add --method gradient"),
    Excludes("signed", "raw", "--signed leaves the matrix as it is, too; leave out --raw"),
    Needs("raw signed", f"format_={'/'.join(_SOFT)}",
        f"{{option}} is of the soft matrix, for --format {_join(_SOFT, 'or')}; add one of these"),
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
    Needs("symmetrize threshold", "reverse links",
        "--symmetrize and --threshold join two models; give --reverse as well"),
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
    # what a page shows
    Needs("views", f"format_={VIEWED}", f"--view chooses what --format {VIEWED} shows; add that, or leave out --view"),
    Excludes("views", "method", "--view names methods and heads itself; leave out --method, or --view"),
    Excludes("views", "heads", "--view names methods and heads itself; leave out --heads, or --view"),
)  # fmt: skip
