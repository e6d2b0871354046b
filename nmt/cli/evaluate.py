"""`nmt evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

import nmt
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


def evaluate(
    model: Model = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", "-r", metavar="FILE", help="Reference translations.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", "-s", metavar="FILE", help="Text for the model to translate.")
    ] = None,
    hypothesis: Annotated[
        Path | None, typer.Option("--hypothesis", metavar="FILE", help="Score these translations; needs no model.")
    ] = None,
    alignment: Annotated[
        Path | None,
        typer.Option(
            "--alignment",
            metavar="FILE",
            help="Score these word alignments, of any format of nmt align, against --gold; no model.",
        ),
    ] = None,
    alignment_base: Annotated[
        int | None,
        typer.Option(
            "--alignment-base",
            metavar="0|1",
            min=0,
            max=1,
            help="What --alignment calls the first word of a sentence. Default: 0.",
            show_default=False,
        ),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option("--gold", metavar="FILE", help="Gold links: 3-4 is sure, 3p4 possible.")
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
    json: Annotated[bool, typer.Option("--json", help="Print the scores as one JSON object.")] = False,
    by_length: Annotated[
        bool, typer.Option("--by-length", help="Also score by source length, with bootstrap intervals.")
    ] = False,
    length_edges: Annotated[
        str | None,
        typer.Option(
            "--length-edges",
            metavar="N,N,...",
            help="Where --by-length cuts: the last number of source words of each bucket. Default: 5,10,15,20,25,30.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw BLEU by source length into this .png or .svg file."),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case in BLEU and chrF, as TER does.")] = False,
    tokenize: Annotated[
        str,
        typer.Option(
            "--tokenize", metavar="NAME", help="BLEU's tokenizer, one of sacreBLEU's: 13a, intl, char, none …"
        ),
    ] = "13a",
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
    """Score translations, or word alignments.

    BLEU, chrF and TER with their sacreBLEU signatures. With a model, the scores of its own translations, and perplexity
    and token accuracy of the references under teacher forcing, free running and scheduled sampling. Without files it
    scores the test corpora of the configuration. With --alignment: AER, precision, recall and F1 of links.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    if alignment is None and (gold, gold_base) != (None, None):
        raise InputError(
            "--gold and --gold-base judge word alignments; give --alignment as well, or use nmt align --gold"
        )
    if alignment is None and alignment_base is not None:
        raise InputError("--alignment-base is of the links of --alignment; give --alignment as well")
    if alignment is not None:
        _check_alone(
            {
                "MODEL": model is not None,
                "--reference": reference is not None,
                "--source": source is not None,
                "--hypothesis": hypothesis is not None,
                "--by-length": by_length,
                "--length-edges": length_edges is not None,
                "--plot": plot is not None,
                "--lowercase": lowercase,
                "--tokenize": tokenize != "13a",
                "--set and search options": bool(changes),
                "--device": device != "auto",
                "--precision": precision != "auto",
            }
        )
        if gold is None:
            raise InputError("--alignment is judged by gold links; give --gold as well")
        from nmt.workflows.evaluate_alignment import evaluate_alignment

        evaluate_alignment(alignment, gold, gold_base=gold_base or 0, json=json, base=alignment_base)
        return
    if reference is None and (source, hypothesis) != (None, None):
        raise InputError("--reference is missing; name the file with the reference translations")
    if reference is not None and source is None and hypothesis is None:
        raise InputError("there is nothing to score; give --source for a model to translate, or --hypothesis")
    if not by_length and (length_edges, plot) != (None, None):
        raise InputError("--length-edges and --plot belong to the scores by length; give --by-length as well")
    if hypothesis is not None:
        _check_without_model(model, source, by_length)
        if changes or (device, precision) != ("auto", "auto"):
            raise InputError("--hypothesis needs no model; leave out --set, --device, --precision and search options")
    lengths = None
    if by_length:
        from nmt.evaluation.by_length import EDGES, parse_edges
        from nmt.workflows.evaluate import LengthAnalysis

        lengths = LengthAnalysis(EDGES if length_edges is None else parse_edges(length_edges), plot)
    if hypothesis is None:
        check_model(model, changes)
    with gc_paused():
        from nmt.workflows import evaluate as workflow
        from nmt.workflows.evaluate import Preparation

    workflow.evaluate(
        model,
        changes,
        source=source,
        reference=reference,
        hypothesis=hypothesis,
        lengths=lengths,
        preparation=Preparation(lowercase, tokenize),
        json=json,
        device=device,
        precision=precision,
        load=nmt.load,
    )


def _check_alone(given: Mapping[str, bool]) -> None:
    surplus = [name for name, is_given in given.items() if is_given]
    if surplus:
        raise InputError(f"--alignment scores links against --gold alone; leave out {', '.join(surplus)}")


def _check_without_model(model: str | None, source: Path | None, by_length: bool) -> None:
    if by_length and source is None:
        raise InputError("--by-length needs the length of each source; give --source beside --hypothesis")
    if model is not None or (source is not None and not by_length):
        surplus = "MODEL" if by_length else "MODEL and --source"
        raise InputError(f"--hypothesis scores a file without a model; leave out {surplus}, or --hypothesis")
