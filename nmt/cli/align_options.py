"""The options of `nmt align`, in the groups of its help page, and the rules that they keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import ModelOptions, first_word

_aligned = partial(typer.Option, rich_help_panel="Input")
_models = partial(typer.Option, rich_help_panel="Models")
_learnt = partial(typer.Option, rich_help_panel="Aligners, without a model")
_files = partial(typer.Option, rich_help_panel="Links from files, without a model")
_joined = partial(typer.Option, rich_help_panel="Two directions")
_written = partial(typer.Option, rich_help_panel="Output")
_judged = partial(typer.Option, rich_help_panel="Evaluation")
_reports = partial(typer.Option, rich_help_panel="Corpus reports")


@dataclass(frozen=True)
class AlignOptions(ModelOptions):
    """The options of `nmt align`."""

    source: Annotated[Path | None, _aligned("--source", "-s", metavar="FILE", help="Source sentences.")] = None
    target: Annotated[
        Path | None, _aligned("--target", "-t", metavar="FILE", help="Their translations, to be aligned.")
    ] = None
    free_running: Annotated[
        bool, _aligned("--free-running", help="Align the model's own translations instead of --target.")
    ] = False
    text: Annotated[
        bool,
        _aligned("--text", help="The lines are ordinary text: find its words and punctuation marks, and align these."),
    ] = False
    method: Annotated[
        Literal["attention", "shifted-attention", "gradient", "input-x-gradient", "trained"] | None,
        _models(
            "--method",
            help="Source of the soft matrix: attention of the step that produces a word, or of the next step "
            "(shifted-attention); gradients, which are much slower and work without attention; or the layer "
            "trained by nmt aligner, which is best. Default: attention.",
        ),
    ] = None
    raw: Annotated[bool, _models("--raw", help="Do not scale the rows of --method gradient or input-x-gradient.")] = (
        False
    )
    signed: Annotated[bool, _models("--signed", help="As --raw, and keep the sign of --method input-x-gradient.")] = (
        False
    )
    heads: Annotated[
        str | None,
        _models(
            "--heads",
            metavar="PATTERN",
            help="Pattern of the heads whose attention weights are averaged, for example layer3.* or layer2.head1. "
            "Default: all.",
        ),
    ] = None
    choose_heads: Annotated[
        Literal["entropy", "gold"] | None,
        _models(
            "--choose-heads",
            help="Choose all heads, the heads of one layer, or one head: those with the sharpest weights on the first "
            "200 pairs (entropy), or with the lowest error rate (gold).",
        ),
    ] = None
    reverse: Annotated[
        str | None,
        _models(
            "--reverse",
            metavar="MODEL",
            help="A model that translates the target into the source; the alignments of both models are joined.",
        ),
    ] = None
    reverse_to: Annotated[
        str | None,
        _models(
            "--reverse-to", metavar="LANGUAGE", help="Target language of --reverse, for a model of several languages."
        ),
    ] = None
    aligner: Annotated[
        Path | None,
        _learnt("--aligner", metavar="FILE", help="Align with this file of nmt aligner --output, without a model."),
    ] = None
    learn: Annotated[
        bool, _learnt("--learn", help="Learn an aligner from these pairs and align them, without a model.")
    ] = False
    min_probability: Annotated[
        float | None,
        _learnt(
            "--min-probability",
            metavar="X",
            min=0,
            max=1,
            help="The least probability of a link; a higher one gives fewer and surer links. Default: 0.25.",
        ),
    ] = None
    links: Annotated[
        Path | None,
        _files(
            "--links",
            metavar="FILE",
            help="Read links from this file, of any format and aligner, instead of using a model.",
        ),
    ] = None
    reverse_links: Annotated[
        Path | None,
        _files(
            "--reverse-links",
            metavar="FILE",
            help="Links of the other direction, to be joined with --links; source first, as fast_align and eflomal "
            "write them.",
        ),
    ] = None
    links_base: Annotated[int | None, first_word(_files, "--links-base", "--links and --reverse-links")] = None
    target_first: Annotated[
        bool,
        _files(
            "--target-first",
            help="--reverse-links (or --links, if it is the only file) puts the target first, as nmt align with a "
            "model of the other direction does.",
        ),
    ] = False
    symmetrize: Annotated[
        Literal[
            "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "soft-mean", "soft-product"
        ]
        | None,
        _joined(
            "--symmetrize",
            metavar="METHOD",
            help="How both directions are joined: by their links (intersection, union, grow-diag, grow-diag-final, "
            "grow-diag-final-and), or by a threshold on the mean or product of their matrices (soft-mean, "
            "soft-product). Default: grow-diag-final-and.",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        _joined(
            "--threshold",
            metavar="X",
            help="Smallest mean or product of a link. Default: 0.25 for soft-mean, 0.05 for soft-product.",
        ),
    ] = None
    format_: Annotated[
        Literal["pharaoh", "gold", "tsv", "jsonl", "heatmap", "npz", "png", "svg", "html"] | None,
        _written(
            "--format",
            metavar="FORMAT",
            help="pharaoh: hard links 0-0 1-2; gold: sure 3-4, possible 3p4; tsv: a table of links; jsonl, npz: also "
            "the soft matrix; heatmap: a picture in text; png, svg: a picture; html: a page to look through all pairs. "
            "Default: pharaoh, on a terminal heatmap.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        _written("--output", "-o", metavar="PATH", help="File to write, for png and svg a folder; default: stdout."),
    ] = None
    base: Annotated[int | None, first_word(_written, "--base", "pharaoh, gold and tsv")] = None
    level: Annotated[
        Literal["word", "subword"] | None,
        _written("--level", help="The tokens of the soft matrix: words or subwords. Default: word."),
    ] = None
    views: Annotated[
        list[str] | None,
        _written(
            "--view",
            metavar="VIEW",
            help="A view of --format html: METHOD or METHOD:HEADS, for example attention:layer3.* or gradient; "
            "each:HEADS for each head; links for --links; with the prefix forward: or backward: for one of two "
            "directions. Repeatable. Default: the alignment by the other options, and each head of attention.",
        ),
    ] = None
    gold: Annotated[
        Path | None,
        _judged("--gold", metavar="FILE", help="Gold links, 3-4 sure and 3p4 possible: print AER to stderr."),
    ] = None
    gold_base: Annotated[int | None, first_word(_judged, "--gold-base", "--gold")] = None
    compare: Annotated[
        bool,
        _judged(
            "--compare",
            help="Print how far the methods of a model agree, and with --gold their AER, instead of alignments.",
        ),
    ] = False
    json: Annotated[bool, _judged("--json", help="Print the results of --compare as one JSON object.")] = False
    lexicon: Annotated[
        Path | None,
        _reports(
            "--lexicon",
            metavar="FILE",
            help="Write which words and phrases were linked, and how often: TSV, or JSON lines as FILE.jsonl.",
        ),
    ] = None
    terms: Annotated[
        Path | None,
        _reports(
            "--terms",
            metavar="FILE",
            help="Write frequent terms and the variants of their translations, as nmt translate --glossary reads them.",
        ),
    ] = None
    min_count: Annotated[
        int | None,
        _reports(
            "--min-count", metavar="N", min=1, help="Lowest count in --lexicon and --terms. Default: 1, of --terms 5."
        ),
    ] = None
    lowercase: Annotated[bool, _reports("--lowercase", help="Ignore case in --lexicon and --terms.")] = False
    examples: Annotated[
        int | None,
        _reports("--examples", metavar="N", min=0, help="Line numbers for each entry of --lexicon. Default: 3."),
    ] = None
    suspects: Annotated[
        Path | None,
        _reports(
            "--suspects",
            metavar="FILE",
            help="Write which pairs of --target are probably mistranslations, worst first: TSV, or JSON lines as "
            "FILE.jsonl. Needs a model.",
        ),
    ] = None
    min_score: Annotated[
        float | None,
        _reports("--min-score", metavar="X", help="Score from which a pair is listed as unlikely. Default: 4."),
    ] = None


_OF_MODELS = (
    "model free_running reverse method raw signed heads choose_heads compare json level changes device precision"
)
_OF_LINKS = "links reverse_links links_base target_first symmetrize threshold views"
_LEARNT_ALIGNS = "{option} aligns both directions together, without a model; leave out {others}"

CONFLICTS = (
    Needs("", "source", "--source is missing; name the file with the source sentences"),
    Needs("gold_base", "gold", "--gold-base is of the links of --gold; give --gold as well"),
    Needs(
        "min_count lowercase",
        "lexicon terms",
        "--min-count and --lowercase say what is in a lexicon or glossary; give --lexicon or --terms as well",
    ),
    Needs("examples", "lexicon", "--examples says what is in a lexicon; give --lexicon as well"),
    Needs("min_score", "suspects", "--min-score says which pairs are suspicious; give --suspects as well"),
    Needs("suspects", "target", "--suspects looks for mistranslations in given pairs; give --target as well"),
    Excludes(
        "base",
        "format_=jsonl/heatmap/npz/png/svg/html",
        "--base: {format_} always counts from 0; leave it out, or use pharaoh, gold or tsv",
    ),
    Needs("format_=npz/html", "output", "--format {format_} needs --output, a file"),
    Needs("format_=png/svg", "output", "--format {format_} needs --output, a folder for the pictures"),
    Excludes(
        "level=subword", "format_=html", "--level subword: --format html shows words; leave it out, or use --format png"
    ),
    Needs(
        "base level",
        "output format_",
        "--base and --level are of links, which only reports do not show; add --output or --format",
        where="lexicon terms suspects",
    ),
    # rules for the aligner that learns from text
    Excludes("learn", "aligner", "--learn learns from the given pairs, and --aligner has been learnt; leave one out"),
    Excludes("learn aligner", f"{_OF_MODELS} {_OF_LINKS}", _LEARNT_ALIGNS),
    Needs("learn aligner", "target", "{option} aligns given pairs; give --target as well"),
    Needs(
        "min_probability",
        "learn aligner",
        "--min-probability is of what is learnt from text; give --learn or --aligner as well",
    ),
    Excludes(
        "learn aligner",
        "suspects",
        "--suspects asks a model how probable each pair is, and {option} has none; leave one out",
    ),
    # rules for links from files
    Excludes("links", _OF_MODELS, "--links takes links from a file, without a model; leave out {others}"),
    Needs("links", "target", "--links are of given pairs; give --target as well"),
    Needs(
        "symmetrize threshold",
        "reverse_links",
        "--symmetrize and --threshold join two files of links; give --reverse-links as well",
        where="links",
    ),
    Excludes(
        "links", "suspects", "--suspects asks a model how probable each pair is, and --links are of none; leave one out"
    ),
    Needs(
        "reverse_links links_base target_first",
        "links",
        "--reverse-links, --links-base and --target-first go with links from a file; give --links",
    ),
    # rules for models
    Needs("signed", "method=input-x-gradient", "--signed: only products have a sign; add --method input-x-gradient"),
    Needs("raw", "method=gradient/input-x-gradient", "--raw: is of gradients; add --method gradient"),
    Excludes("signed", "raw", "--signed leaves the matrix as it is, too; leave out --raw"),
    Needs(
        "raw signed",
        "format_=tsv/jsonl/npz/png/svg/html",
        "{option} is of the soft matrix, for --format tsv, jsonl, npz, png, svg or html; add one of these",
    ),
    Excludes(
        "raw signed", "reverse", "{option}: derivatives of two models' scores cannot be joined; leave out {others}"
    ),
    Excludes(
        "heads",
        "method!=attention/shifted-attention",
        "--heads are those of attention, which --method {method} does not look at; leave it out",
    ),
    Excludes("choose_heads", "heads", "--heads names the heads, and --choose-heads looks for them; leave one out"),
    Excludes(
        "choose_heads",
        "method!=attention",
        "--choose-heads is of attention, which --method {method} does not look at; leave it out",
    ),
    Needs("choose_heads=gold", "gold", "--choose-heads gold goes by gold links; give --gold as well"),
    Needs("gold", "target", "--gold holds links of given translations; give --target as well"),
    Excludes(
        "free_running",
        "target",
        "--free-running aligns the model's own translations; leave out --target, or --free-running",
    ),
    Excludes(
        "beam length_penalty max_length_ratio",
        "target",
        "--beam, --length-penalty and --max-length-ratio do nothing where --target is given",
    ),
    Needs(
        "symmetrize threshold", "reverse links", "--symmetrize and --threshold join two models; give --reverse as well"
    ),
    Excludes(
        "reverse",
        "free_running",
        "--reverse aligns given pairs, and --free-running the model's own translations; leave one out",
    ),
    Needs("reverse_to", "reverse", "--reverse-to is the target language of --reverse; give --reverse as well"),
    Needs("reverse", "target", "--reverse aligns given pairs; give --target as well"),
    Excludes("reverse", "compare", "--compare is of the methods of one model; leave out --reverse, or --compare"),
    Excludes(
        "reverse",
        "level=subword",
        "--level subword: two models are joined between words, as their subwords differ; leave it out",
    ),
    Needs("json", "compare", "--json is for the report of --compare; add --compare, or use --format jsonl"),
    Excludes(
        "compare",
        "method raw signed format_ views level output base lexicon terms suspects choose_heads",
        "--compare prints a report on all methods, between words; leave out {others}",
    ),
    # rules for the contents of a page
    Needs("views", "format_=html", "--view chooses what --format html shows; add that, or leave out --view"),
    Excludes("views", "method", "--view names methods and heads itself; leave out --method, or --view"),
    Excludes("views", "heads", "--view names methods and heads itself; leave out --heads, or --view"),
)
