"""`nmt evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt import plugins
from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import ModelOptions, check_model, first_word, with_options
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from nmt.workflows.evaluate import Plot, Scoring

_METRICS = plugins.entries("metrics")
_METRICS_HELP = f"Also score by {', '.join(_METRICS)}; repeatable."

_scores = partial(typer.Option, rich_help_panel="Scores")
_links = partial(typer.Option, rich_help_panel="Word alignments, without a model")


@dataclass(frozen=True)
class EvaluateOptions(ModelOptions):
    """The options of `nmt evaluate`."""

    reference: Annotated[Path | None, typer.Option("--reference", "-r", metavar="FILE")] = None
    """Reference translations."""
    source: Annotated[Path | None, typer.Option("--source", "-s", metavar="FILE")] = None
    """Text for the model to translate."""
    hypothesis: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Score these translations; needs no model."""
    alignment: Annotated[Path | None, _links(metavar="FILE")] = None
    """Score these word alignments, in any format of nmt align, against --gold; needs no model."""
    alignment_base: Annotated[int | None, first_word(_links, "--alignment-base", "--alignment")] = None
    gold: Annotated[Path | None, _links(metavar="FILE")] = None
    """Gold links: 3-4 is sure, 3p4 possible."""
    gold_base: Annotated[int | None, first_word(_links, "--gold-base", "--gold")] = None
    json: Annotated[bool, typer.Option("--json")] = False
    """Print the scores as one JSON object."""
    by_length: Annotated[bool, _scores("--by-length")] = False
    """Also score by source length, with bootstrap intervals."""
    length_edges: Annotated[str | None, _scores(metavar="N,N,...")] = None
    """Largest number of source words of each bucket of --by-length. Default: 5,10,15,20,25,30."""
    metrics: Annotated[
        list[str] | None, _scores("--metric", metavar="NAME", help=_METRICS_HELP, hidden=not _METRICS)
    ] = None
    lowercase: Annotated[bool, _scores("--lowercase")] = False
    """Ignore case in BLEU and chrF, as TER does."""
    tokenize: Annotated[str | None, _scores(metavar="NAME")] = None
    """BLEU's tokenizer, such as 13a, zh, char. Default: by the script."""

    @property
    def source_readers(self) -> list[str]:
        """Lists the options that compare translations with their sources; a plug-in may add some."""
        return ["--by-length"] * self.by_length

    def scoring(self) -> Scoring:
        """Returns the settings of the scores; a plug-in may change them."""
        from nmt.evaluation.by_length import EDGES, parse_edges
        from nmt.workflows.evaluate import Scoring

        edges = None
        if self.by_length:
            edges = EDGES if self.length_edges is None else parse_edges(self.length_edges)
        return Scoring(self.lowercase, self.tokenize, edges, self.metrics or ())

    def plotter(self) -> Plot | None:
        """Returns the function that draws the scores by length, of a plug-in."""
        return None


CONFLICTS = (
    Needs("gold gold_base", "alignment",
        "--gold and --gold-base judge word alignments; give --alignment as well, or use nmt align --gold"),
    Needs("alignment_base", "alignment", "--alignment-base is of the links of --alignment; give --alignment as well"),
    Excludes("alignment",
        "model reference source hypothesis by_length length_edges metrics lowercase tokenize changes device precision",
        "--alignment scores links against --gold alone; leave out {others}"),
    Needs("alignment", "gold", "--alignment is judged by gold links; give --gold as well"),
    Needs("source hypothesis", "reference", "--reference is missing; name the file with the reference translations"),
    Needs("reference", "source hypothesis",
        "there is nothing to score; give --source for a model to translate, or --hypothesis"),
    Needs("length_edges", "by_length", "--length-edges belongs to the scores by length; give --by-length as well"),
    Needs("hypothesis", "source", "--by-length needs the length of each source; give --source beside --hypothesis",
        where="by_length"),
    Excludes("hypothesis", "model", "--hypothesis scores a file without a model; leave out MODEL, or --hypothesis"),
    Needs("hypothesis", "source_readers",
        "--hypothesis scores a file without a model; leave out MODEL and --source, or --hypothesis", where="source"),
    Excludes("hypothesis", "changes device precision",
        "--hypothesis needs no model; leave out --set, --device, --precision and search options"),
)  # fmt: skip


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
            options.alignment, options.gold, gold_base=options.gold_base or 0, json=options.json,
            base=options.alignment_base,
        )  # fmt: skip
        return
    if options.hypothesis is None:
        check_model(options.model, options.changes, needs_language=options.source is not None)
    plot, load = options.plotter(), options.load()  # before PyTorch is imported, and minutes of translation
    with gc_paused():
        from nmt.workflows import evaluate as workflow

    workflow.evaluate(
        load, source=options.source, reference=options.reference, hypothesis=options.hypothesis,
        scoring=options.scoring(), plot=plot, json=options.json,
    )  # fmt: skip
