"""`nmt align`."""

from __future__ import annotations

from json import dumps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.options import (
    BatchTokens,
    Beam,
    Device,
    LengthPenalty,
    MaxLengthRatio,
    Model,
    Overrides,
    Quiet,
    UsePrecision,
    Verbose,
    check_model,
    set_verbosity,
    with_search,
)
from nmt.core.errors import InputError

if TYPE_CHECKING:
    from nmt.alignment import Method
    from nmt.alignment.views import View
    from nmt.workflows.align import Format
    from nmt.workflows.corpus_reports import LexiconChoice, SuspectsChoice


def align(
    model: Model = None,
    source: Annotated[Path | None, typer.Option("--source", "-s", metavar="FILE", help="Source sentences.")] = None,
    target: Annotated[
        Path | None, typer.Option("--target", "-t", metavar="FILE", help="Their translations, to be aligned.")
    ] = None,
    free_running: Annotated[
        bool, typer.Option("--free-running", help="Align the model's own translations instead of --target.")
    ] = False,
    reverse: Annotated[
        str | None,
        typer.Option(
            "--reverse",
            metavar="MODEL",
            help="A model that translates the target to the source: the alignments of both are joined.",
        ),
    ] = None,
    symmetrize: Annotated[
        Literal[
            "intersection",
            "union",
            "grow-diag",
            "grow-diag-final",
            "grow-diag-final-and",
            "soft-mean",
            "soft-product",
        ]
        | None,
        typer.Option(
            "--symmetrize",
            help="How they are joined: by their links, or where the mean or the product of their matrices reaches a "
            "threshold. Default: grow-diag-final-and.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="X",
            help="The least mean or product that makes a link. Default: 0.25 for soft-mean, 0.05 for soft-product.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        Literal["attention", "gradient", "input-x-gradient"] | None,
        typer.Option(
            "--method",
            help="Where the soft matrix comes from: the model's attention, or what its score of each target word "
            "depends on; gradients take far longer, and work without attention. Default: attention.",
            show_default=False,
        ),
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(
            "--heads",
            metavar="PATTERN",
            help="Whose attention weights are averaged, for example layer3.* or layer2.head1. Default: all.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Print no alignments but how far the methods agree, and with --gold their AER."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what --compare finds as one JSON object.")] = False,
    format_: Annotated[
        Literal["pharaoh", "gold", "tsv", "jsonl", "npz", "png", "svg", "html"] | None,
        typer.Option(
            "--format",
            help="pharaoh: hard links 0-0 1-2; gold: sure 3-4, possible 3p4; tsv: a table of links; jsonl, npz: also "
            "the soft matrix; png, svg: a heatmap; html: a page to look through all pairs. Default: pharaoh.",
            show_default=False,
        ),
    ] = None,
    views: Annotated[
        list[str] | None,
        typer.Option(
            "--view",
            metavar="VIEW",
            help="What --format html shows, METHOD or METHOD:HEADS, for example attention:layer3.* or gradient, or "
            "each:HEADS for a view of each head; repeatable. Default: what --method and --heads say.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        int | None,
        typer.Option(
            "--base",
            metavar="0|1",
            min=0,
            max=1,
            help="What pharaoh, gold and tsv are to call the first word of a sentence. Default: 0.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="The lines are ordinary text: align its words and punctuation marks, not what white space parts.",
        ),
    ] = False,
    level: Annotated[
        Literal["word", "subword"] | None,
        typer.Option(
            "--level", help="What is aligned: white-space words or subwords. Default: word.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="Where to write: a file, for png and svg a folder; left out, stdout."
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option("--gold", metavar="FILE", help="Gold links, 3-4 sure and 3p4 possible: print AER to stderr."),
    ] = None,
    gold_base: Annotated[
        int | None,
        typer.Option(
            "--gold-base",
            metavar="0|1",
            min=0,
            max=1,
            help="What --gold calls the first word of a sentence. Default: 0.",
            show_default=False,
        ),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            "--links",
            metavar="FILE",
            help="Take links from this file, of any format and aligner, instead of a model.",
        ),
    ] = None,
    reverse_links: Annotated[
        Path | None,
        typer.Option(
            "--reverse-links",
            metavar="FILE",
            help="Links of the other direction, to be joined with --links; source first, as fast_align and eflomal "
            "write them.",
        ),
    ] = None,
    links_base: Annotated[
        int | None,
        typer.Option(
            "--links-base",
            metavar="0|1",
            min=0,
            max=1,
            help="What --links and --reverse-links call the first word of a sentence. Default: 0.",
            show_default=False,
        ),
    ] = None,
    target_first: Annotated[
        bool,
        typer.Option(
            "--target-first",
            help="--reverse-links, or --links where they stand alone, put the target first, as nmt align does with a "
            "model of the other direction.",
        ),
    ] = False,
    lexicon: Annotated[
        Path | None,
        typer.Option(
            "--lexicon",
            metavar="FILE",
            help="Write which words and phrases were linked, and how often: TSV, or JSON lines as FILE.jsonl.",
        ),
    ] = None,
    min_count: Annotated[
        int | None,
        typer.Option("--min-count", metavar="N", min=1, help="The least count in it. Default: 1.", show_default=False),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Its words in lower case.")] = False,
    examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            metavar="N",
            min=0,
            help="Line numbers that it names for each entry. Default: 3.",
            show_default=False,
        ),
    ] = None,
    suspects: Annotated[
        Path | None,
        typer.Option(
            "--suspects",
            metavar="FILE",
            help="Write which pairs of --target are probably mistranslations, worst first: TSV, or JSON lines as "
            "FILE.jsonl.",
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            metavar="X",
            help="The score from which on a pair is suspicious by itself. Default: 4.",
            show_default=False,
        ),
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    batch_tokens: BatchTokens = None,
    device: Device = "auto",
    precision: UsePrecision = "auto",
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Align the words of sentence pairs.

    By the model's attention or by gradients, one line per pair. With --target the pairs are given (forced decoding);
    without it the model's own translations are aligned. With --reverse two models align the pairs, one from each side,
    and their alignments are joined. With --compare it says how far the methods agree instead. With --links there is no
    model: links from files are joined, written in another format, drawn and judged. With --lexicon or --suspects the
    links themselves are written only where --output or --format is given.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    if source is None:
        raise InputError("--source is missing; name the file with the source sentences")
    if gold is None and gold_base is not None:
        raise InputError("--gold-base is of the links of --gold; give --gold as well")
    if base is not None and format_ in ("jsonl", "npz", "png", "svg", "html"):
        raise InputError(f"--base: {format_} always counts from 0; leave it out, or use pharaoh, gold or tsv")
    if output is None and format_ in ("npz", "png", "svg", "html"):
        kind = "a file" if format_ in ("npz", "html") else "a folder for the pictures"
        raise InputError(f"--format {format_} needs --output, {kind}")
    if links is not None:
        without = {
            "MODEL": model is not None,
            "--free-running": free_running,
            "--reverse": reverse is not None,
            "--method": method is not None,
            "--heads": heads is not None,
            "--compare": compare,
            "--json": json,
            "--level": level is not None,
            "--view": bool(views),
            "--format html": format_ == "html",
            "--lexicon": lexicon is not None,
            "--suspects": suspects is not None,
            "--set and search options": bool(changes),
            "--device": device != "auto",
            "--precision": precision != "auto",
        }
        surplus = [option for option, is_given in without.items() if is_given]
        if surplus:
            raise InputError(f"--links takes links from a file, without a model; leave out {', '.join(surplus)}")
        if target is None:
            raise InputError("--links are of given pairs; give --target as well")
        _align_links(
            links,
            reverse_links,
            links_base=links_base,
            target_first=target_first,
            symmetrize=symmetrize,
            threshold=threshold,
            source=source,
            target=target,
            output=output,
            format_="pharaoh" if format_ is None or format_ == "html" else format_,
            base=base or 0,
            gold=gold,
            gold_base=gold_base or 0,
            text=text,
        )
        return
    if reverse_links is not None or links_base is not None or target_first:
        raise InputError("--reverse-links, --links-base and --target-first go with links from a file; give --links")
    if heads is not None:
        if method not in (None, "attention"):
            raise InputError(f"--heads are those of attention, which --method {method} does not look at; leave it out")
        changes.append(f"alignment.heads={dumps(heads)}")
    if target is not None and free_running:
        raise InputError("--free-running aligns the model's own translations; leave out --target, or --free-running")
    if target is not None and (beam, length_penalty, max_length_ratio) != (None, None, None):
        raise InputError("--beam, --length-penalty and --max-length-ratio do nothing where --target is given")
    if gold is not None and target is None:
        raise InputError("--gold holds links of given translations; give --target as well")
    if reverse is None and (symmetrize, threshold) != (None, None):
        raise InputError("--symmetrize and --threshold join two models; give --reverse as well")
    if reverse is not None:
        _check_reverse(target, free_running=free_running, compare=compare, level=level)
    if json and not compare:
        raise InputError("--json is for the report of --compare; add --compare, or use --format jsonl")
    wanted_lexicon = _lexicon(lexicon, min_count=min_count, lowercase=lowercase, examples=examples)
    wanted_suspects = _suspects(suspects, target, min_score=min_score)
    written = [path.resolve() for path in (output, lexicon, suspects) if path is not None]
    if len(set(written)) < len(written):
        raise InputError("--output, --lexicon and --suspects: two of them are the same file; give each its own")
    if compare:
        unused: dict[str, object] = {"--method": method, "--format": format_, "--view": views, "--level": level}
        unused |= {"--output": output, "--base": base, "--lexicon": lexicon, "--suspects": suspects}
        for option, value in unused.items():
            if value is not None:
                raise InputError(f"--compare prints a report on all methods, between words; leave out {option}")
    if format_ == "html" and (lexicon, suspects) != (None, None):
        raise InputError("--lexicon and --suspects are not written beside --format html; ask for them by themselves")
    asked = _asked_views(views, format_, method, heads, level, reverse=reverse is not None)
    check_model(model, changes)
    if compare:
        from nmt.workflows.compare_alignments import compare as compare_workflow

        compare_workflow(
            model,
            changes,
            source=source,
            target=target,
            gold=gold,
            gold_base=gold_base or 0,
            text=text,
            json=json,
            device=device,
            precision=precision,
        )
        return
    from nmt.workflows import align as workflow

    only_reports = output is None and (lexicon, suspects) != (None, None)
    joined = None
    if reverse is not None:
        from nmt.alignment import directions

        joined = workflow.Reverse(reverse, directions.join(symmetrize or directions.DEFAULT, threshold))
        check_model(reverse, changes)
    if format_ == "html":
        from nmt.workflows.view_alignments import view as view_workflow

        assert output is not None
        view_workflow(
            model,
            changes,
            source=source,
            target=target,
            reverse=joined,
            views=asked,
            output=output,
            gold=gold,
            gold_base=gold_base or 0,
            text=text,
            device=device,
            precision=precision,
        )
        return
    workflow.align(
        model,
        changes,
        source=source,
        target=target,
        reverse=joined,
        method=method or "attention",
        output=output,
        format=format_ or (None if only_reports else "pharaoh"),
        level=level or "word",
        gold=gold,
        gold_base=gold_base or 0,
        base=base or 0,
        text=text,
        lexicon=wanted_lexicon,
        suspects=wanted_suspects,
        device=device,
        precision=precision,
    )


def _align_links(
    links: Path,
    reverse_links: Path | None,
    *,
    links_base: int | None,
    target_first: bool,
    symmetrize: str | None,
    threshold: float | None,
    source: Path,
    target: Path,
    output: Path | None,
    format_: Format,
    base: int,
    gold: Path | None,
    gold_base: int,
    text: bool,
) -> None:
    if reverse_links is None and (symmetrize, threshold) != (None, None):
        raise InputError("--symmetrize and --threshold join two files of links; give --reverse-links as well")
    from nmt.alignment import directions
    from nmt.workflows import align_links as workflow

    reverse = None
    if reverse_links is not None:
        join = directions.join(symmetrize or directions.DEFAULT, threshold)
        reverse = workflow.ReverseLinks(workflow.LinkFile(reverse_links, links_base, target_first), join)
    workflow.align_links(
        workflow.LinkFile(links, links_base, target_first and reverse is None),
        reverse=reverse,
        source=source,
        target=target,
        output=output,
        format=format_,
        base=base,
        gold=gold,
        gold_base=gold_base,
        text=text,
    )


def _asked_views(
    texts: list[str] | None,
    format_: str | None,
    method: Method | None,
    heads: str | None,
    level: str | None,
    *,
    reverse: bool,
) -> list[View]:
    """What --format html is to show."""
    from nmt.alignment.views import View, parse_view

    if format_ != "html":
        if texts:
            raise InputError("--view chooses what --format html shows; add that, or leave out --view")
        return []
    if level == "subword":
        raise InputError("--level subword: --format html shows words; leave it out, or use --format png")
    if not texts:
        return [View(method or "attention")]
    for option, value in (("--method", method), ("--heads", heads)):
        if value is not None:
            raise InputError(f"--view names methods and heads itself; leave out {option}, or --view")
    views = [parse_view(text) for text in texts]
    for each in views:
        if each.side is not None and not reverse:
            raise InputError(f"--view {each.name}: is of one of two models; give --reverse as well")
    return views


def _check_reverse(target: Path | None, *, free_running: bool, compare: bool, level: str | None) -> None:
    if free_running:
        raise InputError("--reverse aligns given pairs, and --free-running the model's own translations; leave one out")
    if target is None:
        raise InputError("--reverse aligns given pairs; give --target as well")
    if compare:
        raise InputError("--compare is of the methods of one model; leave out --reverse, or --compare")
    if level == "subword":
        raise InputError("--level subword: two models are joined between words, as their subwords differ; leave it out")


def _lexicon(
    path: Path | None, *, min_count: int | None, lowercase: bool, examples: int | None
) -> LexiconChoice | None:
    if path is None:
        if (min_count, lowercase, examples) != (None, False, None):
            raise InputError("--min-count, --lowercase and --examples say what is in a lexicon; give --lexicon as well")
        return None
    from nmt.workflows.corpus_reports import LexiconChoice

    shown = 3 if examples is None else examples
    return LexiconChoice(path, min_count=min_count or 1, lowercase=lowercase, examples=shown)


def _suspects(path: Path | None, target: Path | None, *, min_score: float | None) -> SuspectsChoice | None:
    if path is None:
        if min_score is not None:
            raise InputError("--min-score says which pairs are suspicious; give --suspects as well")
        return None
    if target is None:
        raise InputError("--suspects looks for mistranslations in given pairs; give --target as well")
    from nmt.workflows.corpus_reports import SuspectsChoice

    if min_score is None:
        return SuspectsChoice(path)
    if not isfinite(min_score):
        raise InputError(f"--min-score {min_score}: give a finite number")
    return SuspectsChoice(path, min_score=min_score)
