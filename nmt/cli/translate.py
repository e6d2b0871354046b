"""`nmt translate`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

import nmt
from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import ModelOptions, Ray, check_model, machine_option, search_option, with_options, with_search
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.core.memory import gc_paused, limit_caches_for_translation

_drawn = partial(typer.Option, rich_help_panel="Random translations")
_text = partial(typer.Option, rich_help_panel="Text")


@dataclass(frozen=True)
class TranslateOptions(ModelOptions):
    """The options of `nmt translate`."""

    input_: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Text to translate; default: stdin. With --ray a file, a folder, or a pattern in quotes.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; default: stdout. With --ray a folder."),
    ] = None
    ray: Ray = None
    field: Annotated[
        str | None,
        machine_option("--field", metavar="NAME", help="With --ray: field of records with the text. Default: text."),
    ] = None
    n_best: Annotated[
        int | None,
        search_option("--n-best", metavar="N", min=1, help="Translations of each line; with --format tsv or jsonl."),
    ] = None
    sample: Annotated[
        bool, _drawn("--sample", help="Draw translations at random instead of searching for the most probable.")
    ] = False
    temperature: Annotated[
        float | None,
        _drawn(
            "--temperature",
            metavar="X",
            help="Temperature of the draws: below 1, probable words become more probable. Implies --sample.",
        ),
    ] = None
    top_k: Annotated[
        int | None,
        _drawn("--top-k", metavar="N", min=1, help="Draw from the N most probable subwords. Implies --sample."),
    ] = None
    top_p: Annotated[
        float | None,
        _drawn(
            "--top-p",
            metavar="X",
            help="Draw from the fewest subwords whose total probability reaches X. Implies --sample.",
        ),
    ] = None
    seed: Annotated[int | None, _drawn("--seed", metavar="N", min=0, help="Seed of the draws. Implies --sample.")] = (
        None
    )
    consensus: Annotated[
        Literal["chrf", "bleu"] | None,
        _drawn(
            "--consensus", help="Draw many translations and choose the one most similar to all (minimum Bayes risk)."
        ),
    ] = None
    samples: Annotated[
        int | None, _drawn("--samples", metavar="N", min=2, help="Number of draws of --consensus. Default: 32.")
    ] = None
    prefix: Annotated[
        Path | None,
        _text(
            "--prefix", metavar="FILE", help="How translations begin, one line for each input line; blank: no prefix."
        ),
    ] = None
    constraints: Annotated[
        Path | None,
        _text(
            "--constraints",
            metavar="FILE",
            help="Words or phrases, separated by tabs, that translations contain; one line for each input line.",
        ),
    ] = None
    glossary: Annotated[
        Path | None,
        _text(
            "--glossary", metavar="FILE", help="Terms and their translations: lines of source term, TAB, target term."
        ),
    ] = None
    wait: Annotated[
        int | None,
        search_option("--wait", metavar="K", min=1, help="Simultaneous: word t depends on K + t - 1 source words."),
    ] = None
    ensemble: Annotated[
        list[str] | None,
        search_option(
            "--ensemble", metavar="MODEL", help="Another model that translates together with MODEL; repeatable."
        ),
    ] = None
    replace_unknown: Annotated[
        bool, _text("--replace-unknown", help="Replace an unknown word of a translation by its source word.")
    ] = False
    markup: Annotated[
        bool, _text("--markup", help="Keep tags, entities, URLs, numbers and placeholders unchanged.")
    ] = False
    document: Annotated[
        bool, _text("--document", help="The input is running text: translate each line sentence by sentence.")
    ] = False
    context: Annotated[
        bool,
        _text(
            "--context",
            help="Translate each line with those before it, for a model with data.context. A blank line ends a "
            "document. With --document, lines are paragraphs.",
        ),
    ] = False
    format_: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option("--format", help="tsv: line, rank, score, text. jsonl: one object for each line."),
    ] = "text"
    alignment: Annotated[
        bool,
        typer.Option(
            "--alignment",
            rich_help_panel="Input and output",
            help="With --format jsonl: links and soft matrix of each translation.",
        ),
    ] = False
    engine: Annotated[
        Literal["nmt", "ctranslate2"],
        machine_option("--engine", help="ctranslate2: translate with the files that nmt export wrote for MODEL."),
    ] = "nmt"
    workers: Annotated[
        int | None,
        machine_option(
            "--workers",
            metavar="N",
            min=1,
            max=1024,
            help="Processes with one thread each. Default: one, and for thousands of lines as many as threads.",
        ),
    ] = None

    @property
    def changes(self) -> list[str]:
        """Returns the changes of the configuration."""
        values: dict[str, object] = {
            "n_best": self.n_best,
            "sampling": {} if self.sample else None,
            "sampling.temperature": self.temperature,
            "sampling.top_k": self.top_k,
            "sampling.top_p": self.top_p,
            "sampling.seed": self.seed,
            "consensus.utility": self.consensus,
            "consensus.samples": self.samples,
            "replace_unknown": True if self.replace_unknown else None,
            "markup": True if self.markup else None,
            "document": True if self.document else None,
        }
        return with_search(super().changes, values)


CONFLICTS = (
    Needs(
        "alignment", "format_=jsonl", "--alignment: needs --format jsonl; nmt align writes alignments in other formats"
    ),
    Needs("samples", "consensus", "--samples: is for --consensus; to be given several draws, use --sample --n-best"),
    Excludes("prefix constraints glossary workers", "ray", "{option}: cannot be had together with --ray; leave it out"),
    Needs("ray", "input_", "--ray: needs --input: shards are read from files and written to a folder"),
    Needs("ray", "output", "--ray: needs --output: shards are read from files and written to a folder"),
    Needs("field", "ray", "--field: is for the JSONL and Parquet that --ray reads; without it the input is text"),
    Excludes(
        "wait",
        "beam n_best prefix sample temperature top_k top_p seed consensus samples constraints glossary "
        "replace_unknown markup document engine ray",
        "--wait: is greedy search for one sentence in each line; leave out {others}",
    ),
    Excludes("glossary", "engine", "--glossary: --engine {engine} has no constraints; use --engine nmt"),
    Excludes(
        "glossary",
        "sample temperature top_k top_p seed consensus samples",
        "--glossary: terms are searched for, not drawn; leave out {others}",
    ),
    Excludes("workers", "engine", "--workers: --engine {engine} shares out its work by itself; leave it out"),
)


@with_options(TranslateOptions, CONFLICTS)
def translate(options: TranslateOptions) -> None:
    """Translate text, line by line.

    Each input line is a sentence and gives one output line, or with --format tsv one line per translation. With --ray
    it translates many files on many machines (text, JSONL or Parquet) into files of the same names."""
    changes, ensemble = options.changes, options.ensemble or []
    try:
        check_model(options.model, changes, needs_language=True)
    except InputError:
        if options.model is not None:
            from nmt.cli.mistakes import refuse_text

            refuse_text(options.model)
        raise
    for other in ensemble:
        check_model(other, [])
    glossary = None
    if options.glossary is not None:
        from nmt.extras.glossary.glossary import read_glossary

        refuse_overwriting(options.output, options.glossary)
        glossary = read_glossary(options.glossary)
    limit_caches_for_translation()
    if options.ray is not None and options.input_ is not None and options.output is not None:
        from nmt.extras.ray.translate_shards import translate_shards

        translate_shards(
            options.model,
            changes,
            input=options.input_,
            output=options.output,
            field=options.field,
            ensemble=ensemble,
            format=options.format_,
            alignment=options.alignment,
            engine=options.engine,
            device=options.device,
            precision=options.precision,
            context=options.context,
            ray=options.ray,
        )
        return
    with gc_paused():
        from nmt.workflows import translate as workflow

    workflow.translate(
        options.model,
        changes,
        input=options.input_,
        output=options.output,
        prefix=options.prefix,
        constraints=options.constraints,
        ensemble=ensemble,
        format=options.format_,
        alignment=options.alignment,
        engine=options.engine,
        workers=options.workers,
        device=options.device,
        precision=options.precision,
        context=options.context,
        load=partial(nmt.load_translator, wait=options.wait, glossary=glossary),
    )
