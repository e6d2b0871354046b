"""`nmt report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.conflicts import Excludes
from nmt.cli.options import Beam, LoadingOptions, To, with_options


@dataclass(frozen=True)
class RunReportOptions(LoadingOptions):
    """The options of `nmt report`."""

    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...")] = None
    """Run directories, checkpoint folders or configurations, to show side by side; default: the run under runs/ that
    trained last."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """The HTML file. Default: report.html in the first run."""
    samples: Annotated[int | None, typer.Option(metavar="N", min=1)] = None
    """Number of translations to show, at even distances in the validation set. Default: 20."""
    translations: Annotated[bool, typer.Option("--translations/--no-translations")] = True
    """Translate the validation sets; with --no-translations, the page shows only the training."""
    pictures: Annotated[Path | None, typer.Option(metavar="DIR")] = None
    """Also write each picture into this folder, as SVG and as PNG."""
    to: To = None
    beam: Beam = None


CONFLICTS = (
    Excludes("translations", "samples to beam batch_tokens",
        "{others}: nothing is translated with --no-translations; leave one out"),
)  # fmt: skip


@with_options(RunReportOptions, CONFLICTS)
def report(options: RunReportOptions) -> None:
    """Show runs on one HTML page: curves, corpus, model, translations, attention.

    The page is one file that needs no network. Curves of several runs share a chart, and translations of the same
    validation set are compared by the paired bootstrap."""
    from nmt.extras.pages.report import build

    build.report(options)
