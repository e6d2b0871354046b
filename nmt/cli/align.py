"""`nmt align`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from json import dumps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import nmt
from nmt.cli import align_options as of
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
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from nmt.alignment.directions import Join
    from nmt.alignment.formats import Level
    from nmt.alignment.views import View
    from nmt.extras.inspect.corpus_reports import LexiconChoice, SuspectsChoice
    from nmt.workflows.align import Format, Given, Written


def align(
    model: Model = None,
    source: of.Source = None,
    target: of.Target = None,
    free_running: of.FreeRunning = False,
    text: of.Text = False,
    method: of.AlignmentMethod = None,
    heads: of.Heads = None,
    choose_heads: of.ChooseHeads = None,
    reverse: of.Reverse = None,
    aligner: of.Aligner = None,
    learn: of.Learn = False,
    links: of.Links = None,
    reverse_links: of.ReverseLinks = None,
    links_base: of.LinksBase = None,
    target_first: of.TargetFirst = False,
    symmetrize: of.Symmetrize = None,
    threshold: of.Threshold = None,
    format_: of.AlignmentFormat = None,
    output: of.Output = None,
    base: of.Base = None,
    level: of.Level = None,
    views: of.Views = None,
    gold: of.Gold = None,
    gold_base: of.GoldBase = None,
    compare: of.Compare = False,
    json: of.Json = False,
    lexicon: of.Lexicon = None,
    min_count: of.MinCount = None,
    lowercase: of.Lowercase = False,
    examples: of.Examples = None,
    suspects: of.Suspects = None,
    min_score: of.MinScore = None,
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

    By a model's attention or gradients, one line per pair. With --target the pairs are given (forced decoding); without
    it the model's own translations are aligned. With --reverse two models align the pairs, one from each side, and
    their alignments are joined. With --links there is no model: links from files are joined, written in another format,
    drawn and judged. With --lexicon or --suspects the links themselves are written only where --output or --format is
    given. With --compare it says how far a model's methods agree instead.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    given = _given(source, target, gold, gold_base, text=text)
    written = _written(
        output,
        format_,
        base,
        level,
        _lexicon(lexicon, min_count=min_count, lowercase=lowercase, examples=examples),
        _suspects(suspects, target, min_score=min_score),
    )
    of_models: dict[str, object] = {
        "MODEL": model,
        "--free-running": free_running,
        "--reverse": reverse,
        "--method": method,
    }
    of_models |= {
        "--heads": heads,
        "--choose-heads": choose_heads,
        "--compare": compare,
        "--json": json,
        "--level": level,
    }
    of_models |= {
        "--set and search options": changes,
        "--device": device != "auto",
        "--precision": precision != "auto",
    }
    if aligner is not None or learn:
        others: dict[str, object] = {
            "--links": links,
            "--reverse-links": reverse_links,
            "--links-base": links_base,
            "--target-first": target_first,
            "--symmetrize": symmetrize,
            "--threshold": threshold,
            "--view": views,
        }
        _align_learned(aligner, given, written, _named(of_models | others), learn=learn)
        return
    if links is not None:
        if unused := _named(of_models):
            raise InputError(f"--links takes links from a file, without a model; leave out {unused}")
        _align_links(
            links,
            reverse_links,
            symmetrize,
            threshold,
            views,
            given,
            written,
            base=links_base,
            target_first=target_first,
        )
        return
    if reverse_links is not None or links_base is not None or target_first:
        raise InputError("--reverse-links, --links-base and --target-first go with links from a file; give --links")
    if heads is not None:
        if method not in (None, "attention", "shifted-attention"):
            raise InputError(f"--heads are those of attention, which --method {method} does not look at; leave it out")
        changes.append(f"alignment.heads={dumps(heads)}")
    if choose_heads is not None:
        _check_choice(choose_heads, heads, method, gold)
    searching = (beam, length_penalty, max_length_ratio) != (None, None, None)
    _check_target(given, free_running=free_running, searching=searching)
    _check_reverse(reverse, symmetrize, threshold, target, free_running=free_running, compare=compare, level=level)
    if json and not compare:
        raise InputError("--json is for the report of --compare; add --compare, or use --format jsonl")
    if compare:
        surplus: dict[str, object] = {
            "--method": method,
            "--format": format_,
            "--view": views,
            "--level": level,
            "--output": output,
        }
        surplus |= {"--base": base, "--lexicon": lexicon, "--suspects": suspects, "--choose-heads": choose_heads}
        if unused := _named(surplus):
            raise InputError(f"--compare prints a report on all methods, between words; leave out {unused}")
    asked = _views(views, format_, method, heads, reverse)
    check_model(model, changes)
    with gc_paused():
        from nmt.workflows import align_models as workflow

    if compare:
        from nmt.workflows.compare_alignments import compare as compare_workflow

        compare_workflow(
            workflow.Models(model, changes, device=device, precision=precision), given, json=json, load=nmt.load
        )
        return
    joined = None
    if reverse is not None:
        joined = workflow.Reverse(reverse, _join(symmetrize, threshold))
        check_model(reverse, changes)
    workflow.align(
        workflow.Models(model, changes, joined, device, precision, choose_heads), asked, given, written, nmt.load
    )


def _named(options: Mapping[str, object]) -> str:
    """Those that were given."""
    return ", ".join(option for option, value in options.items() if value not in (None, []) and value is not False)


# ----------------------------------------------------------------------------------------- what is aligned, and by whom


def _given(source: Path | None, target: Path | None, gold: Path | None, gold_base: int | None, *, text: bool) -> Given:
    if source is None:
        raise InputError("--source is missing; name the file with the source sentences")
    if gold is None and gold_base is not None:
        raise InputError("--gold-base is of the links of --gold; give --gold as well")
    from nmt.workflows.align import Given

    return Given(source, target, gold, gold_base or 0, text)


def _check_target(given: Given, *, free_running: bool, searching: bool) -> None:
    if given.target is None:
        if given.gold is not None:
            raise InputError("--gold holds links of given translations; give --target as well")
        return
    if free_running:
        raise InputError("--free-running aligns the model's own translations; leave out --target, or --free-running")
    if searching:
        raise InputError("--beam, --length-penalty and --max-length-ratio do nothing where --target is given")


def _check_choice(choose_heads: str, heads: str | None, method: str | None, gold: Path | None) -> None:
    if heads is not None:
        raise InputError("--heads names the heads, and --choose-heads looks for them; leave one out")
    if method not in (None, "attention"):
        raise InputError(f"--choose-heads is of attention, which --method {method} does not look at; leave it out")
    if choose_heads == "gold" and gold is None:
        raise InputError("--choose-heads gold goes by gold links; give --gold as well")


def _check_reverse(
    reverse: str | None,
    symmetrize: str | None,
    threshold: float | None,
    target: Path | None,
    *,
    free_running: bool,
    compare: bool,
    level: str | None,
) -> None:
    if reverse is None:
        if (symmetrize, threshold) != (None, None):
            raise InputError("--symmetrize and --threshold join two models; give --reverse as well")
        return
    if free_running:
        raise InputError("--reverse aligns given pairs, and --free-running the model's own translations; leave one out")
    if target is None:
        raise InputError("--reverse aligns given pairs; give --target as well")
    if compare:
        raise InputError("--compare is of the methods of one model; leave out --reverse, or --compare")
    if level == "subword":
        raise InputError("--level subword: two models are joined between words, as their subwords differ; leave it out")


def _join(symmetrize: str | None, threshold: float | None) -> Join:
    from nmt.alignment import directions

    return directions.join(symmetrize or directions.DEFAULT, threshold)


def _align_learned(aligner: Path | None, given: Given, written: Written, unused: str, *, learn: bool) -> None:
    option = "--learn" if learn else "--aligner"
    if aligner is not None and learn:
        raise InputError("--learn learns from the given pairs, and --aligner has been learnt; leave one out")
    if unused:
        raise InputError(f"{option} aligns both directions together, without a model; leave out {unused}")
    if given.target is None:
        raise InputError(f"{option} aligns given pairs; give --target as well")
    if written.suspects is not None:
        raise InputError(f"--suspects asks a model how probable each pair is, and {option} has none; leave one out")
    from nmt.extras.word_aligner.align import align_learned

    align_learned(aligner, given, written)


def _align_links(
    links: Path,
    reverse_links: Path | None,
    symmetrize: str | None,
    threshold: float | None,
    views: list[str] | None,
    given: Given,
    written: Written,
    *,
    base: int | None,
    target_first: bool,
) -> None:
    if given.target is None:
        raise InputError("--links are of given pairs; give --target as well")
    if reverse_links is None and (symmetrize, threshold) != (None, None):
        raise InputError("--symmetrize and --threshold join two files of links; give --reverse-links as well")
    if written.suspects is not None:
        raise InputError("--suspects asks a model how probable each pair is, and --links are of none; leave one out")
    from nmt.workflows import align_links as workflow

    asked = _link_views(views, written.format, reverse_links)
    reverse = None
    if reverse_links is not None:
        file = workflow.LinkFile(reverse_links, base, target_first)
        reverse = workflow.ReverseLinks(file, _join(symmetrize, threshold))
    first = workflow.LinkFile(links, base, target_first and reverse is None)
    workflow.align_links(first, reverse, asked, given, written)


# ------------------------------------------------------------------------------------------------------ what is written


def _written(
    output: Path | None,
    format_: Format | None,
    base: int | None,
    level: Level | None,
    lexicon: LexiconChoice | None,
    suspects: SuspectsChoice | None,
) -> Written:
    if base is not None and format_ in ("jsonl", "heatmap", "npz", "png", "svg", "html"):
        raise InputError(f"--base: {format_} always counts from 0; leave it out, or use pharaoh, gold or tsv")
    if output is None and format_ in ("npz", "png", "svg", "html"):
        kind = "a file" if format_ in ("npz", "html") else "a folder for the pictures"
        raise InputError(f"--format {format_} needs --output, {kind}")
    if level == "subword" and format_ == "html":
        raise InputError("--level subword: --format html shows words; leave it out, or use --format png")
    reports = [each.path for each in (lexicon, suspects) if each is not None]
    paths = [path.resolve() for path in (output, *reports) if path is not None]
    if len(set(paths)) < len(paths):
        raise InputError("--output, --lexicon and --suspects: two of them are the same file; give each its own")
    from nmt.workflows.align import Written

    if format_ is None and (output is not None or not reports):
        format_ = "heatmap" if output is None and base is None and sys.stdout.isatty() else "pharaoh"
    if format_ is None and (base, level) != (None, None):
        raise InputError("--base and --level are of links, which only reports do not show; add --output or --format")
    return Written(output, format_, base or 0, level or "word", lexicon, suspects)


def _lexicon(
    path: Path | None, *, min_count: int | None, lowercase: bool, examples: int | None
) -> LexiconChoice | None:
    if path is None:
        if (min_count, lowercase, examples) != (None, False, None):
            raise InputError("--min-count, --lowercase and --examples say what is in a lexicon; give --lexicon as well")
        return None
    from nmt.extras.inspect.corpus_reports import LexiconChoice

    shown = 3 if examples is None else examples
    return LexiconChoice(path, min_count=min_count or 1, lowercase=lowercase, examples=shown)


def _suspects(path: Path | None, target: Path | None, *, min_score: float | None) -> SuspectsChoice | None:
    if path is None:
        if min_score is not None:
            raise InputError("--min-score says which pairs are suspicious; give --suspects as well")
        return None
    if target is None:
        raise InputError("--suspects looks for mistranslations in given pairs; give --target as well")
    from nmt.extras.inspect.corpus_reports import SuspectsChoice

    if min_score is None:
        return SuspectsChoice(path)
    if not isfinite(min_score):
        raise InputError(f"--min-score {min_score}: give a finite number")
    return SuspectsChoice(path, min_score=min_score)


def _views(
    texts: list[str] | None, format_: str | None, method: str | None, heads: str | None, reverse: str | None
) -> list[View]:
    """What is to be seen of models."""
    from nmt.alignment.views import View, parse_view

    _check_views(texts, format_)
    if not texts:
        return [View(method or "attention")]
    for option, value in (("--method", method), ("--heads", heads)):
        if value is not None:
            raise InputError(f"--view names methods and heads itself; leave out {option}, or --view")
    views = [parse_view(text) for text in texts]
    for each in views:
        if each.side is not None and reverse is None:
            raise InputError(f"--view {each.name}: is of one of two models; give --reverse as well")
    return views


def _link_views(texts: list[str] | None, format_: str | None, reverse_links: Path | None) -> list[View]:
    """What is to be seen of links from files."""
    from nmt.alignment.views import LINKS, parse_link_view

    _check_views(texts, format_)
    views = [parse_link_view(text) for text in texts or [LINKS]]
    for each in views:
        if each.side is not None and reverse_links is None:
            raise InputError(f"--view {each.name}: is of one of two files; give --reverse-links as well")
    return views


def _check_views(texts: list[str] | None, format_: str | None) -> None:
    if texts and format_ != "html":
        raise InputError("--view chooses what --format html shows; add that, or leave out --view")
