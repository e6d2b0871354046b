"""`nmt report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli import options
from nmt.core.errors import InputError


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="Run directories, checkpoint folders or configurations, to show side by side; default: the run under "
            "runs/ that trained last.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The HTML file. Default: report.html in the first run."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            metavar="N",
            min=1,
            help="Number of translations to show, at even distances in the validation set. Default: 20.",
        ),
    ] = None,
    translations: Annotated[
        bool,
        typer.Option(
            "--translations/--no-translations",
            help="Translate the validation sets; with --no-translations, the page shows only the training.",
        ),
    ] = True,
    pictures: Annotated[
        Path | None,
        typer.Option("--pictures", metavar="DIR", help="Also write each picture into this folder, as SVG and as PNG."),
    ] = None,
    to: options.To = None,
    beam: options.Beam = None,
    batch_tokens: options.BatchTokens = None,
    device: options.Device = "auto",
    precision: options.UsePrecision = "auto",
    overrides: options.Overrides = None,
) -> None:
    """Show runs on one HTML page: curves, corpus, model, translations, attention.

    The page is one file that needs no network. Curves of several runs share a chart, and translations of the same
    validation set are compared by the paired bootstrap."""
    changes = options.with_search(overrides, {"beam": beam, "batch_tokens": batch_tokens, "to": to})
    if not translations:
        surplus = {"--samples": samples, "--to": to, "--beam": beam, "--batch-tokens": batch_tokens}
        if named := [name for name, value in surplus.items() if value is not None]:
            raise InputError(f"{', '.join(named)}: nothing is translated with --no-translations; leave one out")
    from nmt.extras.pages.report import build as workflow

    workflow.report(
        runs or [],
        changes,
        output=output,
        pictures=pictures,
        samples=20 if samples is None else samples,
        translate=translations,
        device=device,
        precision=precision,
    )
