"""`nmt evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import nmt
from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import ModelOptions, check_model, first_word, with_options
from nmt.core.memory import gc_paused

_scores = partial(typer.Option, rich_help_panel="Scores")
_links = partial(typer.Option, rich_help_panel="Word alignments, without a model")


@dataclass(frozen=True)
class EvaluateOptions(ModelOptions):
    """The options of `nmt evaluate`."""

    reference: Annotated[
        Path | None, typer.Option("--reference", "-r", metavar="FILE", help="Reference translations.")
    ] = None
    source: Annotated[
        Path | None, typer.Option("--source", "-s", metavar="FILE", help="Text for the model to translate.")
    ] = None
    hypothesis: Annotated[
        Path | None, typer.Option("--hypothesis", metavar="FILE", help="Score these translations; needs no model.")
    ] = None
    alignment: Annotated[
        Path | None,
        _links(
            "--alignment",
            metavar="FILE",
            help="Score these word alignments, in any format of nmt align, against --gold; needs no model.",
        ),
    ] = None
    alignment_base: Annotated[int | None, first_word(_links, "--alignment-base", "--alignment")] = None
    gold: Annotated[Path | None, _links("--gold", metavar="FILE", help="Gold links: 3-4 is sure, 3p4 possible.")] = None
    gold_base: Annotated[int | None, first_word(_links, "--gold-base", "--gold")] = None
    json: Annotated[bool, typer.Option("--json", help="Print the scores as one JSON object.")] = False
    glossary: Annotated[
        Path | None,
        _scores(
            "--glossary",
            metavar="FILE",
            help="Translate with these terms and count them in translations: see nmt translate --glossary.",
        ),
    ] = None
    by_length: Annotated[
        bool, _scores("--by-length", help="Also score by source length, with bootstrap intervals.")
    ] = False
    length_edges: Annotated[
        str | None,
        _scores(
            "--length-edges",
            metavar="N,N,...",
            help="Largest number of source words of each bucket of --by-length. Default: 5,10,15,20,25,30.",
        ),
    ] = None
    plot: Annotated[
        Path | None, _scores("--plot", metavar="FILE", help="Draw BLEU by source length into this .png or .svg file.")
    ] = None
    wait: Annotated[
        str | None,
        _scores("--wait", metavar="K,K,...", help="Also score the simultaneous translations of nmt translate --wait."),
    ] = None
    lowercase: Annotated[bool, _scores("--lowercase", help="Ignore case in BLEU and chrF, as TER does.")] = False
    tokenize: Annotated[
        str | None,
        _scores("--tokenize", metavar="NAME", help="BLEU's tokenizer, such as 13a, zh, char. Default: by the script."),
    ] = None


CONFLICTS = (
    Needs(
        "gold gold_base",
        "alignment",
        "--gold and --gold-base judge word alignments; give --alignment as well, or use nmt align --gold",
    ),
    Needs("alignment_base", "alignment", "--alignment-base is of the links of --alignment; give --alignment as well"),
    Excludes(
        "alignment",
        "model reference source hypothesis glossary by_length length_edges plot wait lowercase tokenize changes device "
        "precision",
        "--alignment scores links against --gold alone; leave out {others}",
    ),
    Needs("alignment", "gold", "--alignment is judged by gold links; give --gold as well"),
    Needs("source hypothesis", "reference", "--reference is missing; name the file with the reference translations"),
    Needs(
        "reference",
        "source hypothesis",
        "there is nothing to score; give --source for a model to translate, or --hypothesis",
    ),
    Needs(
        "length_edges plot",
        "by_length",
        "--length-edges and --plot belong to the scores by length; give --by-length as well",
    ),
    Needs(
        "hypothesis",
        "source",
        "--by-length needs the length of each source; give --source beside --hypothesis",
        where="by_length",
    ),
    Needs(
        "hypothesis",
        "source",
        "--glossary finds its terms in the sources; give --source beside --hypothesis",
        where="glossary",
    ),
    Excludes("glossary", "wait", "--wait: cannot be had together with --glossary; leave one of them out"),
    Excludes("hypothesis", "model", "--hypothesis scores a file without a model; leave out MODEL, or --hypothesis"),
    Needs(
        "hypothesis",
        "by_length glossary",
        "--hypothesis scores a file without a model; leave out MODEL and --source, or --hypothesis",
        where="source",
    ),
    Excludes(
        "hypothesis",
        "changes device precision wait",
        "--hypothesis needs no model; leave out --set, --device, --precision and search options",
    ),
)


@with_options(EvaluateOptions, CONFLICTS)
def evaluate(options: EvaluateOptions) -> None:
    """Score translations, or word alignments.

    Prints BLEU, chrF and TER with their sacreBLEU signatures. With a model, it scores the model's translations, and
    also prints perplexity and token accuracy of the references under teacher forcing, free running and scheduled
    sampling. Without files it scores the test corpora of the configuration. With --alignment it prints AER,
    precision, recall and F1 of links.
    """
    if options.alignment is not None and options.gold is not None:
        from nmt.workflows.evaluate_alignment import evaluate_alignment

        evaluate_alignment(
            options.alignment,
            options.gold,
            gold_base=options.gold_base or 0,
            json=options.json,
            base=options.alignment_base,
        )
        return
    edges = None
    if options.by_length:
        from nmt.evaluation.by_length import EDGES, parse_edges

        edges = EDGES if options.length_edges is None else parse_edges(options.length_edges)
    if options.hypothesis is None:
        check_model(options.model, options.changes, needs_language=options.source is not None)
    plot = None
    if options.plot is not None:
        from nmt.extras.inspect.score_plot import check_plot, plot_by_length

        check_plot(options.plot)  # raised before minutes of translation
        plot = partial(plot_by_length, path=options.plot)
    glossary = term_recall = None
    if options.glossary is not None:
        from nmt.extras.glossary import glossary as terms

        glossary = terms.read_glossary(options.glossary)
        term_recall = partial(terms.term_recall, glossary)
    with gc_paused():
        from nmt.workflows import evaluate as workflow

    wait_scores = None
    if options.wait is not None:
        from nmt.evaluation.by_length import parse_edges
        from nmt.extras.streaming import wait_k

        wait_scores = partial(wait_k.wait_scores, waits=parse_edges(options.wait, "--wait"))
    workflow.evaluate(
        options.model,
        options.changes,
        source=options.source,
        reference=options.reference,
        hypothesis=options.hypothesis,
        scoring=workflow.Scoring(options.lowercase, options.tokenize, edges, wait_scores, term_recall),
        plot=plot,
        json=options.json,
        device=options.device,
        precision=options.precision,
        load=partial(nmt.load_translator, glossary=glossary),
    )
