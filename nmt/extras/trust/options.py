"""The options of commands that tell how sure a translation is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from nmt.cli.conflicts import Excludes, Needs
from nmt.config.yaml_source import Override

if TYPE_CHECKING:
    from nmt.cli.evaluate import EvaluateOptions
    from nmt.cli.translate import TranslateOptions
    from nmt.extras.service.command import ServeOptions
    from nmt.translator.translator import Loader
    from nmt.translator.windows import OutputOptions
    from nmt.workflows.evaluate import Scoring
else:
    EvaluateOptions = ServeOptions = TranslateOptions = object

_trust = partial(typer.Option, rich_help_panel="Confidence")


@dataclass(frozen=True)
class TranslateConfidence(TranslateOptions):
    """Has `nmt translate` tell how sure each translation is."""

    confidence: Annotated[bool, _trust("--confidence")] = False
    """After nmt calibrate: the probability that each translation is right, before the text and a TAB; in tsv after it,
    with the reasons to doubt it; in jsonl also that of each word."""
    reject_below: Annotated[float | None, _trust(metavar="P", min=0, max=1)] = None
    """Reject translations whose confidence is below P."""
    rejected: Annotated[Literal["mark", "source"] | None, _trust()] = None
    """mark (default): "[?] " before a rejected translation. source: the source line in its place."""
    choose_from: Annotated[int | None, _trust(metavar="N", min=2)] = None
    """Find N translations of each line, and write the one with the highest confidence."""
    after: ClassVar[str] = "context"
    conflicts: ClassVar = (
        Excludes("confidence reject_below choose_from", "engine",
            "{option}: --engine {engine} has no signals; use --engine nmt"),
        Excludes("confidence reject_below choose_from", "ensemble wait neighbors ray shard",
            "{option}: is calibrated for one model that reads whole lines in this process; leave out {others}"),
        Needs("rejected", "reject_below", "--rejected: needs a probability; give --reject-below as well"),
        Excludes("choose_from", "n_best sample temperature top_k top_p seed consensus samples",
            "--choose-from: writes the most confident of N translations that it searches; leave out {others}"),
    )  # fmt: skip

    @property
    def changes(self) -> list[str]:
        if self.choose_from is None:
            return super().changes
        return [*super().changes, Override(f"search.n_best={self.choose_from}", f"--choose-from {self.choose_from}")]

    def load(self) -> Loader:
        if not self.confidence and self.reject_below is None and self.choose_from is None:
            return super().load()
        from nmt.extras.trust.confidence import ConfidenceSelection

        selection = ConfidenceSelection(self.reject_below or 0.0, self.rejected == "source", bool(self.choose_from))
        return partial(super().load(), confidence=selection)

    def output_options(self) -> OutputOptions:
        return replace(super().output_options(), confidence=self.confidence, chosen=self.choose_from is not None)


@dataclass(frozen=True)
class ShowConfidence(ServeOptions):
    """Has `nmt score` and `nmt serve` tell how sure each translation is."""

    confidence: Annotated[bool, _trust("--confidence")] = False
    """After nmt calibrate: also the probability that each translation is right; in JSON with words and reasons, in text
    and tsv after a TAB."""

    def load(self) -> Loader:
        return partial(super().load(), confidence=self.confidence)


@dataclass(frozen=True)
class AlignConfidence(ShowConfidence):
    """Has `nmt align` mark doubtful words."""

    confidence: Annotated[bool, _trust("--confidence")] = False
    """After nmt calibrate: in html mark doubtful words, give reasons, and show the least confident pairs first."""
    after: ClassVar[str] = "views"
    conflicts: ClassVar = (
        Excludes("confidence", "learn aligner",
            "--confidence: is calibrated for a model, and {others} needs none; leave one out"),
        Needs("confidence", "format_=html", "--confidence: marks words of a page; add --format html"),
    )  # fmt: skip


@dataclass(frozen=True)
class EvaluateRisk(EvaluateOptions):
    """Has `nmt evaluate` compare confidence with quality."""

    risk_coverage: Annotated[bool, typer.Option("--risk-coverage", rich_help_panel="Scores")] = False
    """Also score the most confident shares of the translations, after nmt calibrate."""
    after: ClassVar[str] = "length_edges"
    conflicts: ClassVar = (
        Excludes("risk_coverage", "alignment hypothesis",
            "--risk-coverage: is of the model's own translations; leave out {others}"),
    )  # fmt: skip

    def load(self) -> Loader:
        return partial(super().load(), confidence=self.risk_coverage)

    def scoring(self) -> Scoring:
        if not self.risk_coverage:
            return super().scoring()
        from nmt.extras.trust.risk_coverage import risk_coverage

        return replace(super().scoring(), risk_coverage=risk_coverage)
