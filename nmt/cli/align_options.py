"""The options of `nmt align` alone, in the groups of its help page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

_ALIGNED = "What is aligned"
_MODELS = "By models"
_LEARNT = "By what is learnt from text, without a model"
_FILES = "By links from files, without a model"
_JOINED = "Two directions"
_WRITTEN = "What is written"
_JUDGED = "How good it is"
_REPORTS = "What all pairs tell together"

Source: TypeAlias = Annotated[
    Path | None,
    typer.Option("--source", "-s", metavar="FILE", help="Source sentences.", rich_help_panel=_ALIGNED),
]

Target: TypeAlias = Annotated[
    Path | None,
    typer.Option("--target", "-t", metavar="FILE", help="Their translations, to be aligned.", rich_help_panel=_ALIGNED),
]

FreeRunning: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--free-running",
        help="Align the model's own translations instead of --target.",
        rich_help_panel=_ALIGNED,
    ),
]

Text: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--text",
        help="The lines are ordinary text: align its words and punctuation marks, not what white space parts.",
        rich_help_panel=_ALIGNED,
    ),
]

AlignmentMethod: TypeAlias = Annotated[
    Literal["attention", "shifted-attention", "gradient", "input-x-gradient", "trained"] | None,
    typer.Option(
        "--method",
        help="Where the soft matrix comes from: the model's attention when it produces a word, or once it has read it; "
        "what its score of each target word depends on, which takes far longer and works without attention; or what "
        "nmt aligner has learnt for it, which is best. Default: attention.",
        show_default=False,
        rich_help_panel=_MODELS,
    ),
]

Heads: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--heads",
        metavar="PATTERN",
        help="Whose attention weights are averaged, for example layer3.* or layer2.head1. Default: all.",
        show_default=False,
        rich_help_panel=_MODELS,
    ),
]

ChooseHeads: TypeAlias = Annotated[
    Literal["entropy", "gold"] | None,
    typer.Option(
        "--choose-heads",
        help="Average the heads, of one layer or of all, or take the one head, whose weights on the first 200 pairs "
        "are least spread, or whose links agree best with --gold.",
        show_default=False,
        rich_help_panel=_MODELS,
    ),
]

Aligner: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--aligner",
        metavar="FILE",
        help="Align by what nmt aligner --output has written, without a model.",
        show_default=False,
        rich_help_panel=_LEARNT,
    ),
]

Learn: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--learn",
        help="Align by what is learnt from these very pairs, without a model.",
        rich_help_panel=_LEARNT,
    ),
]

Reverse: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--reverse",
        metavar="MODEL",
        help="A model that translates the target to the source: the alignments of both are joined.",
        rich_help_panel=_MODELS,
    ),
]

Links: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--links",
        metavar="FILE",
        help="Take links from this file, of any format and aligner, instead of a model.",
        rich_help_panel=_FILES,
    ),
]

ReverseLinks: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--reverse-links",
        metavar="FILE",
        help="Links of the other direction, to be joined with --links; source first, as fast_align and eflomal "
        "write them.",
        rich_help_panel=_FILES,
    ),
]

LinksBase: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--links-base",
        metavar="0|1",
        min=0,
        max=1,
        help="What --links and --reverse-links call the first word of a sentence. Default: 0.",
        show_default=False,
        rich_help_panel=_FILES,
    ),
]

TargetFirst: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--target-first",
        help="--reverse-links, or --links where they stand alone, put the target first, as nmt align does with a "
        "model of the other direction.",
        rich_help_panel=_FILES,
    ),
]

Symmetrize: TypeAlias = Annotated[
    Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "soft-mean", "soft-product"]
    | None,
    typer.Option(
        "--symmetrize",
        help="How they are joined: by their links, or where the mean or the product of their matrices reaches a "
        "threshold. Default: grow-diag-final-and.",
        show_default=False,
        rich_help_panel=_JOINED,
    ),
]

Threshold: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="The least mean or product that makes a link. Default: 0.25 for soft-mean, 0.05 for soft-product.",
        show_default=False,
        rich_help_panel=_JOINED,
    ),
]

AlignmentFormat: TypeAlias = Annotated[
    Literal["pharaoh", "gold", "tsv", "jsonl", "heatmap", "npz", "png", "svg", "html"] | None,
    typer.Option(
        "--format",
        help="pharaoh: hard links 0-0 1-2; gold: sure 3-4, possible 3p4; tsv: a table of links; jsonl, npz: also "
        "the soft matrix; heatmap: a picture in text; png, svg: a picture; html: a page to look through all pairs. "
        "Default: pharaoh, on a terminal heatmap.",
        show_default=False,
        rich_help_panel=_WRITTEN,
    ),
]

Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Where to write: a file, for png and svg a folder; left out, stdout.",
        rich_help_panel=_WRITTEN,
    ),
]

Base: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--base",
        metavar="0|1",
        min=0,
        max=1,
        help="What pharaoh, gold and tsv are to call the first word of a sentence. Default: 0.",
        show_default=False,
        rich_help_panel=_WRITTEN,
    ),
]

Level: TypeAlias = Annotated[
    Literal["word", "subword"] | None,
    typer.Option(
        "--level",
        help="The tokens of the soft matrix: words or subwords. Default: word.",
        show_default=False,
        rich_help_panel=_WRITTEN,
    ),
]

Views: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--view",
        metavar="VIEW",
        help="What --format html shows: METHOD or METHOD:HEADS, for example attention:layer3.* or gradient, each:HEADS "
        "for a view of each head, or, of --links, links; with forward: or backward: before it, of one of two "
        "directions alone; repeatable. Default: what the other options say.",
        show_default=False,
        rich_help_panel=_WRITTEN,
    ),
]

Gold: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--gold",
        metavar="FILE",
        help="Gold links, 3-4 sure and 3p4 possible: print AER to stderr.",
        rich_help_panel=_JUDGED,
    ),
]

GoldBase: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--gold-base",
        metavar="0|1",
        min=0,
        max=1,
        help="What --gold calls the first word of a sentence. Default: 0.",
        show_default=False,
        rich_help_panel=_JUDGED,
    ),
]

Compare: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--compare",
        help="Print no alignments but how far a model's methods agree, and with --gold their AER.",
        rich_help_panel=_JUDGED,
    ),
]

Json: TypeAlias = Annotated[
    bool,
    typer.Option("--json", help="Print what --compare finds as one JSON object.", rich_help_panel=_JUDGED),
]

Lexicon: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--lexicon",
        metavar="FILE",
        help="Write which words and phrases were linked, and how often: TSV, or JSON lines as FILE.jsonl.",
        rich_help_panel=_REPORTS,
    ),
]

MinCount: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min-count",
        metavar="N",
        min=1,
        help="The least count in it. Default: 1.",
        show_default=False,
        rich_help_panel=_REPORTS,
    ),
]

Lowercase: TypeAlias = Annotated[
    bool, typer.Option("--lowercase", help="Its words in lower case.", rich_help_panel=_REPORTS)
]

Examples: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--examples",
        metavar="N",
        min=0,
        help="Line numbers that it names for each entry. Default: 3.",
        show_default=False,
        rich_help_panel=_REPORTS,
    ),
]

Suspects: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--suspects",
        metavar="FILE",
        help="Write which pairs of --target are probably mistranslations, worst first: TSV, or JSON lines as "
        "FILE.jsonl. Needs a model.",
        rich_help_panel=_REPORTS,
    ),
]

MinScore: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--min-score",
        metavar="X",
        help="The score from which on a pair is suspicious by itself. Default: 4.",
        show_default=False,
        rich_help_panel=_REPORTS,
    ),
]
