"""`nmt score`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli import options as common
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from nmt.translator.translator import Loader


@dataclass(frozen=True)
class ScoreOptions:
    """The options of `nmt score`."""

    source: Annotated[Path, typer.Option("--source", "-s", metavar="FILE")]
    """Source sentences."""
    target: Annotated[Path, typer.Option("--target", "-t", metavar="FILE")]
    """Their translations."""
    model: common.Model = None
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """File to write; default: stdout."""
    format_: Annotated[Literal["text", "tsv", "jsonl"], typer.Option("--format")] = "text"
    """text: the score. tsv: score, log-probability, number of subwords. jsonl: also of each subword."""
    to: common.To = None
    length_penalty: common.LengthPenalty = None
    batch_tokens: common.BatchTokens = None
    device: common.Device = "auto"
    precision: common.UsePrecision = "auto"
    overrides: common.Overrides = None

    @property
    def changes(self) -> list[str]:
        """Returns the changes of the configuration."""
        search = {key: getattr(self, key) for key in ("length_penalty", "batch_tokens", "to")}
        return common.with_search(self.overrides, search)

    def load(self) -> Loader:
        """Returns the function that loads the translator; a plug-in may add arguments to it."""
        return common.loader(self.model, self.changes, device=self.device, precision=self.precision)


@common.with_options(ScoreOptions)
def score(options: ScoreOptions) -> None:
    """Score given translations: how probable the model finds them.

    Prints one line for each pair of lines. The score is the log-probability divided by the length penalty, by which
    the search ranks translations."""
    common.check_model(options.model, options.changes, needs_language=True)
    with gc_paused():
        from nmt.workflows import score as workflow

    load = options.load()
    workflow.score(load, source=options.source, target=options.target, output=options.output, format=options.format_)
