"""`nmt translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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
    Ray,
    UsePrecision,
    Verbose,
    check_model,
    set_verbosity,
    with_search,
)
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused
from nmt.core.onednn_cache import limit_caches_for_translation


def translate(
    model: Model = None,
    input_: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Text to translate; left out, stdin. With --ray a file, a folder, or a pattern in quotes.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; left out, stdout. With --ray a folder."),
    ] = None,
    ray: Ray = None,
    field: Annotated[
        str | None,
        typer.Option("--field", metavar="NAME", help="With --ray: where records have the text. Default: text."),
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    batch_tokens: BatchTokens = None,
    n_best: Annotated[
        int | None,
        typer.Option("--n-best", metavar="N", min=1, help="Translations of each line; with --format tsv or jsonl."),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random instead of searching for the most probable.")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature", metavar="X", help="Of a draw: below 1 probable words become more so. Implies --sample."
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", metavar="N", min=1, help="Draw from the N most probable subwords. Implies --sample."),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            "--top-p", metavar="X", help="Draw from the fewest subwords of probability X together. Implies --sample."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, help="Another seed, other draws. Implies --sample."),
    ] = None,
    consensus: Annotated[
        Literal["chrf", "bleu"] | None,
        typer.Option("--consensus", help="Draw many translations, take the one most like all (minimum Bayes risk)."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", metavar="N", min=2, help="How many --consensus draws. Default: 32."),
    ] = None,
    prefix: Annotated[
        Path | None,
        typer.Option(
            "--prefix", metavar="FILE", help="What translations begin with, a line for each line; blank: as they like."
        ),
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option(
            "--constraints",
            metavar="FILE",
            help="Words or phrases, with tabs between, that translations contain, a line for each line.",
        ),
    ] = None,
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            "--ensemble", metavar="MODEL", help="A further model that translates together with MODEL; repeatable."
        ),
    ] = None,
    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Choose among what nmt shortlist found for the words of a line: faster."),
    ] = False,
    replace_unknown: Annotated[
        bool,
        typer.Option("--replace-unknown", help="Copy the source word where a translation would have an unknown one."),
    ] = False,
    markup: Annotated[
        bool,
        typer.Option("--markup", help="Carry tags, entities, URLs, numbers and placeholders over unchanged."),
    ] = False,
    document: Annotated[
        bool,
        typer.Option("--document", help="The input is running text: translate each line sentence by sentence."),
    ] = False,
    format_: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option("--format", help="tsv: line, rank, score, text. jsonl: all that is known of each line."),
    ] = "text",
    alignment: Annotated[
        bool, typer.Option("--alignment", help="With --format jsonl: soft alignment and links of each translation.")
    ] = False,
    engine: Annotated[
        Literal["nmt", "ctranslate2"],
        typer.Option("--engine", help="ctranslate2: translate with what nmt export has written of MODEL."),
    ] = "nmt",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            max=1024,
            help="Processes that translate, each with one thread. Left out, as many as threads where there are "
            "thousands of lines.",
        ),
    ] = None,
    device: Device = "auto",
    precision: UsePrecision = "auto",
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Translate text, line by line.

    One sentence per line; every line in gives one line out, and --format tsv one for each translation. With --ray many
    files on many machines: text, JSONL and Parquet, each to a file of the same name in a folder."""
    set_verbosity(quiet=quiet, verbose=verbose)
    if alignment and format_ != "jsonl":
        raise InputError("--alignment: needs --format jsonl; nmt align writes alignments in other formats")
    if samples is not None and consensus is None:
        raise InputError("--samples: is for --consensus; to be given several draws, use --sample --n-best")
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    changes += [f"search.n_best={n_best}"] if n_best is not None else []
    drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    changes += ["search.sampling={}"] if sample else []
    changes += [f"search.sampling.{name}={value}" for name, value in drawn.items() if value is not None]
    changes += [f"search.consensus.utility={consensus}"] if consensus is not None else []
    changes += [f"search.consensus.samples={samples}"] if samples is not None else []
    changes += ["search.shortlist=true"] if shortlist else []
    changes += ["search.replace_unknown=true"] if replace_unknown else []
    changes += ["search.markup=true"] if markup else []
    changes += ["search.document=true"] if document else []
    check_model(model, changes)
    for other in ensemble or []:
        check_model(other, [])
    limit_caches_for_translation()
    if ray is not None:
        without = {"--prefix": prefix, "--constraints": constraints, "--workers": workers}
        for option, value in without.items():
            if value is not None:
                raise InputError(f"{option}: cannot be had together with --ray; leave it out")
        if input_ is None or output is None:
            missing = "--input" if input_ is None else "--output"
            raise InputError(f"--ray: needs {missing}: shards are read from files and written to a folder")
        from nmt.extras.ray.translate_shards import translate_shards

        translate_shards(
            model,
            changes,
            input=input_,
            output=output,
            field=field,
            ensemble=ensemble or [],
            format=format_,
            alignment=alignment,
            engine=engine,
            device=device,
            precision=precision,
            ray=ray,
        )
        return
    if field is not None:
        raise InputError("--field: is for the JSONL and Parquet that --ray reads; without it the input is text")
    with gc_paused():
        from nmt.workflows import translate as workflow

    workflow.translate(
        model,
        changes,
        input=input_,
        output=output,
        prefix=prefix,
        constraints=constraints,
        ensemble=ensemble or [],
        format=format_,
        alignment=alignment,
        engine=engine,
        workers=workers,
        device=device,
        precision=precision,
        load=nmt.load,
    )
