"""The options of `nmt align` and `nmt links` for reports on a corpus, and of `nmt evaluate` for a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from nmt.cli.conflicts import Excludes, Needs, Rule
from nmt.core.errors import InputError
from nmt.core.files import refuse_unwritable

if TYPE_CHECKING:
    from nmt.cli.align_options import AlignmentOptions
    from nmt.cli.evaluate import EvaluateOptions
    from nmt.workflows.align import CorpusTable
    from nmt.workflows.evaluate import Plot
else:
    AlignmentOptions = EvaluateOptions = object

_reports = partial(typer.Option, rich_help_panel="Corpus reports")


@dataclass(frozen=True)
class LinkReports(AlignmentOptions):
    """Has `nmt links` write tables of a corpus."""

    lexicon: Annotated[Path | None, _reports(metavar="FILE")] = None
    """Write which words and phrases were linked, and how often: TSV, or JSON lines as FILE.jsonl."""
    terms: Annotated[Path | None, _reports(metavar="FILE")] = None
    """Write frequent terms and the variants of their translations, as nmt translate --glossary reads them."""
    min_count: Annotated[int | None, _reports(metavar="N", min=1)] = None
    """Lowest count in --lexicon and --terms. Default: 1, of --terms 5."""
    lowercase: Annotated[bool, _reports("--lowercase")] = False
    """Ignore case in --lexicon and --terms."""
    examples: Annotated[int | None, _reports(metavar="N", min=0)] = None
    """Line numbers for each entry of --lexicon. Default: 3."""
    after: ClassVar[str] = "gold_base"
    more_help: ClassVar[dict[str, str]] = {
        "": " With --lexicon or --terms the links themselves are written only with --output or --format."
    }
    conflicts: ClassVar[tuple[Rule, ...]] = (
        Needs("min_count lowercase", "lexicon terms",
            "--min-count and --lowercase say what is in a lexicon or glossary; give --lexicon or --terms as well"),
        Needs("examples", "lexicon", "--examples says what is in a lexicon; give --lexicon as well"),
        Needs("base", "output format_",
            "--base is of links, which only reports do not show; add --output or --format", where="lexicon terms"),
    )  # fmt: skip

    def reports(self) -> list[CorpusTable]:
        found = [*super().reports(), *self.tables()]
        files = {"--output": self.output, **{report.option: report.path for report in found}}
        named = {option: path.resolve() for option, path in files.items() if path is not None}
        if len(set(named.values())) < len(named):
            raise InputError(f"{', '.join(named)}: two of them are the same file; give each its own")
        return found

    def tables(self) -> list[CorpusTable]:
        """Lists the tables that are asked for."""
        found: list[CorpusTable] = []
        if self.lexicon is not None:
            from nmt.extras.pages.corpus_reports import LexiconOptions

            examples = 3 if self.examples is None else self.examples
            found.append(LexiconOptions(self.lexicon, self.min_count or 1, self.lowercase, examples))
        if self.terms is not None:
            from nmt.extras.pages.corpus_reports import TermsOptions

            found.append(TermsOptions(self.terms, self.min_count or TermsOptions.min_count, self.lowercase))
        return found


@dataclass(frozen=True)
class AlignReports(LinkReports):
    """Has `nmt align` write tables of a corpus."""

    suspects: Annotated[Path | None, _reports(metavar="FILE")] = None
    """Write which pairs of --target are probably mistranslations, worst first: TSV, or JSON lines as FILE.jsonl. Needs
    a model."""
    min_score: Annotated[float | None, _reports(metavar="X")] = None
    """Score from which a pair is listed as unlikely. Default: 4."""
    more_help: ClassVar[dict[str, str]] = {
        "": " With --lexicon, --terms or --suspects the links themselves are written only with --output or --format."
    }
    conflicts: ClassVar = (
        *LinkReports.conflicts[:2],
        Needs("min_score", "suspects", "--min-score says which pairs are suspicious; give --suspects as well"),
        Needs("suspects", "target", "--suspects looks for mistranslations in given pairs; give --target as well"),
        Excludes("level=subword", "format_=html",
            "--level subword: --format html shows words; leave it out, or use --format png"),
        Needs("base level", "output format_",
            "--base and --level are of links, which only reports do not show; add --output or --format",
            where="lexicon terms suspects"),
        Excludes("compare", "lexicon terms suspects",
            "--compare prints a report on all methods, between words; leave out {others}"),
    )  # fmt: skip

    def tables(self) -> list[CorpusTable]:
        found = super().tables()
        if self.suspects is None:
            return found
        from nmt.extras.pages.corpus_filter import MIN_SCORE
        from nmt.extras.pages.corpus_reports import SuspectsOptions

        min_score = MIN_SCORE if self.min_score is None else self.min_score
        if not isfinite(min_score):
            raise InputError(f"--min-score {min_score}: give a finite number")
        return [*found, SuspectsOptions(self.suspects, min_score)]


@dataclass(frozen=True)
class EvaluatePlot(EvaluateOptions):
    """Has `nmt evaluate` draw the scores by length."""

    plot: Annotated[Path | None, typer.Option(metavar="FILE", rich_help_panel="Scores")] = None
    """Draw BLEU by source length into this .png or .svg file."""
    after: ClassVar[str] = "length_edges"
    conflicts: ClassVar = (
        Excludes("alignment", "plot", "--alignment scores links against --gold alone; leave out {others}"),
        Needs("plot", "by_length", "--plot belongs to the scores by length; give --by-length as well"),
    )  # fmt: skip

    def plotter(self) -> Plot | None:
        if self.plot is None:
            return super().plotter()
        if self.plot.suffix.lower() not in (".png", ".svg"):
            raise InputError(f"--plot {self.plot}: a picture is a file that ends in .png or .svg; name it so")
        refuse_unwritable(self.plot, option="--plot")
        from nmt.extras.pages.draw import plot_by_length

        return partial(plot_by_length, path=self.plot)
