"""`nmt translate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli import options as common
from nmt.cli.conflicts import Excludes, Needs, given_options
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused, limit_caches_for_translation

if TYPE_CHECKING:
    from nmt.translator.translator import Loader
    from nmt.translator.windows import OutputOptions

_drawn = partial(typer.Option, rich_help_panel="Random translations")
_text = partial(typer.Option, rich_help_panel="Text")


@dataclass(frozen=True)
class TranslateOptions(common.ModelOptions):
    """The options of `nmt translate`."""

    input_: Annotated[Path | None, typer.Option("--input", "-i", metavar="FILE")] = None
    """Text to translate; default: stdin."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """File to write; default: stdout."""
    n_best: Annotated[int | None, common.search_option(metavar="N", min=1)] = None
    """Translations of each line; with --format tsv or jsonl."""
    sample: Annotated[bool, _drawn("--sample")] = False
    """Draw translations at random instead of searching for the most probable."""
    temperature: Annotated[float | None, _drawn(metavar="X")] = None
    """Temperature of the draws: below 1, probable words become more probable. Implies --sample.
    Default: 1, and 0.5 for --consensus."""
    top_k: Annotated[int | None, _drawn(metavar="N", min=1)] = None
    """Draw from the N most probable subwords. Implies --sample."""
    top_p: Annotated[float | None, _drawn(metavar="X")] = None
    """Draw from the fewest subwords whose total probability reaches X. Implies --sample."""
    seed: Annotated[int | None, _drawn(metavar="N", min=0)] = None
    """Seed of the draws. Implies --sample."""
    consensus: Annotated[bool, _drawn("--consensus")] = False
    """Draw many translations and choose the one most similar to all (minimum Bayes risk)."""
    samples: Annotated[int | None, _drawn(metavar="N", min=2)] = None
    """Number of draws of --consensus. Default: 32."""
    prefix: Annotated[Path | None, _text(metavar="FILE")] = None
    """How translations begin, one line for each input line; blank: no prefix."""
    constraints: Annotated[Path | None, _text(metavar="FILE")] = None
    """Words or phrases, separated by tabs, that translations contain; one line for each input line."""
    ensemble: Annotated[list[str] | None, common.search_option(metavar="MODEL")] = None
    """Another model that translates together with MODEL; repeatable."""
    replace_unknown: Annotated[bool, _text("--replace-unknown")] = False
    """Replace an unknown word of a translation by its source word."""
    markup: Annotated[bool, _text("--markup")] = False
    """Keep tags, entities, URLs, numbers and placeholders unchanged."""
    document: Annotated[bool, _text("--document")] = False
    """The input is running text: translate each line sentence by sentence."""
    context: Annotated[bool, _text("--context")] = False
    """Translate each line with those before it, for a model with data.context. A blank line ends a document. With
    --document, lines are paragraphs."""
    format_: Annotated[Literal["text", "tsv", "jsonl"], typer.Option("--format")] = "text"
    """tsv: line, rank, score, text. jsonl: one object for each line."""
    alignment: Annotated[bool, typer.Option("--alignment", rich_help_panel="Input and output")] = False
    """With --format jsonl: links and soft matrix of each translation."""
    engine: common.Engine = "nmt"
    workers: Annotated[int | None, common.machine_option(metavar="N", min=1, max=1024)] = None
    """Translate as many parts of the input at once: two by threads, more by processes. Default: two on two cores,
    and on more as many as cores for thousands of lines."""

    @property
    def changes(self) -> list[str]:
        """Returns the changes of the configuration."""
        values: dict[str, object] = {"n_best": self.n_best, "sampling": {} if self.sample else None}
        values |= {f"sampling.{name}": getattr(self, name) for name in ("temperature", "top_k", "top_p", "seed")}
        values |= {"consensus": {} if self.consensus else None, "consensus.samples": self.samples}
        values |= {name: getattr(self, name) or None for name in ("replace_unknown", "markup", "document")}
        return common.with_search(super().changes, values)

    def load(self) -> Loader:
        """Returns the function that loads the translator; a plug-in may add arguments to it."""
        engine, own = self.engine, given_options(self, "constraints workers")
        if engine == "auto" and own:
            log.info(f"engine: nmt's own: {own[0]} needs it")
            engine = "nmt"
        return partial(super().load(), ensemble=self.ensemble or [], engine=engine)

    def output_options(self) -> OutputOptions:
        """Returns the form of the output; a plug-in may change it."""
        from nmt.translator.windows import OutputOptions

        return OutputOptions(self.format_, self.alignment)

    def run(self, load: Loader) -> None:
        """Translates; a plug-in may do it in another way."""
        with gc_paused():
            from nmt.workflows import translate as workflow

        workflow.translate(
            self.model, load, input=self.input_, output=self.output, prefix=self.prefix, constraints=self.constraints,
            options=self.output_options(), workers=self.workers, context=self.context,
        )  # fmt: skip


CONFLICTS = (
    Needs("alignment", "format_=jsonl",
        "--alignment: needs --format jsonl; nmt align writes alignments in other formats"),
    Needs("samples", "consensus", "--samples: is for --consensus; to be given several draws, use --sample --n-best"),
    Excludes("beam", "sample temperature top_k top_p seed consensus samples",
        "--beam: draws have no beams; leave it out, or {others}"),
    Excludes("workers", "engine!=nmt/auto", "--workers: --engine {engine} shares out its work by itself; leave it out"),
)  # fmt: skip


@common.with_options(TranslateOptions, CONFLICTS)
def translate(options: TranslateOptions) -> Callable[[], None]:
    """Translate text, line by line.

    Each input line is a sentence and gives one output line, or with --format tsv one line per translation."""
    try:
        common.check_model(options.model, options.changes, needs_language=True)
    except InputError:
        if options.model is not None:
            from nmt.cli.mistakes import refuse_text

            refuse_text(options.model)
        raise
    for other in options.ensemble or []:
        common.check_model(other, [])
    load = options.load()
    limit_caches_for_translation()
    return partial(options.run, load)
