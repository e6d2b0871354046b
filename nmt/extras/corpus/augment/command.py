"""`nmt augment`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import Config, TrainingOptions, with_options
from nmt.core.memory import gc_paused
from nmt.extras.cluster.options import Ray


@dataclass(frozen=True)
class AugmentOptions(TrainingOptions):
    """The options of `nmt augment`."""

    config: Config
    target_text: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """Text of the target language, plain, gz or xz; repeatable."""
    source_text: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """Text of the source language, for self-training; repeatable."""
    dictionary: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Bilingual dictionary, for rare words: TSV (source TAB target), FreeDict's TEI, or Ding."""
    back_translation: Annotated[Literal["tagged", "beam", "noised", "sampling", "none"], typer.Option()] = "tagged"
    """Method for the target text. tagged: beam search, with <BT> before the source. beam: without <BT>. noised: with
    words dropped, blanked and shuffled. sampling: drawn at random."""
    copies: Annotated[bool, typer.Option("--copies")] = False
    """Also use the target text as its own source."""
    diversify: Annotated[bool, typer.Option("--diversify")] = False
    """Also translate both sides of the training pairs."""
    keep: Annotated[float, typer.Option(metavar="X", min=0.01, max=1)] = 1.0
    """Share of the translations to keep; the worst are dropped."""
    keep_by: Annotated[Literal["score", "round-trip"] | None, typer.Option()] = None
    """Order of --keep. score (default): log-probability per token. round-trip: chrF after translating back."""
    min_confidence: Annotated[float | None, typer.Option(metavar="P", min=0, max=1)] = None
    """Leave out translations that are right with a lower probability, by models that nmt calibrate has calibrated."""
    real_share: Annotated[float, typer.Option(metavar="X", min=0, max=0.99)] = 0.5
    """Repeat the real pairs until they are this share of an epoch; 0: never."""
    reverse: Annotated[str | None, typer.Option(metavar="MODEL")] = None
    """Run or configuration of the other direction; default: train CONFIG with source and target exchanged."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FOLDER")] = None
    """Folder; default: the run of CONFIG with -augmented."""
    train: Annotated[bool, typer.Option("--train")] = False
    """Train CONFIG and the new configuration, and compare them on data.valid."""
    compare: Annotated[bool, typer.Option("--compare")] = False
    """As --train, and also train a model for each kind of pairs."""
    beam: Annotated[int | None, typer.Option(metavar="N", min=1)] = None
    """Beam size of the translations. Default: the configuration's."""
    ray: Ray = None


CONFLICTS = (
    Needs("", "target_text source_text dictionary diversify",
        "there is nothing to make pairs of; give --target-text, --source-text, --dictionary or --diversify"),
    Needs("keep min_confidence reverse beam", "target_text source_text diversify",
        "{option}: is for translations; add --target-text, --source-text or --diversify, or leave it out"),
    Needs("beam", "source_text diversify",
        "--beam: --back-translation sampling draws and has no beam; leave one out", where="back_translation=sampling"),
    Needs("back_translation copies", "target_text", "{option}: needs --target-text"),
    Needs("keep_by", "keep", "--keep-by: needs --keep, the share to keep"),
    Excludes("min_confidence", "ray", "--min-confidence: is estimated in this process; leave out {others}"),
    Needs("back_translation=none", "copies source_text diversify dictionary",
        "--back-translation none: leaves nothing to make; add --copies, --source-text, --diversify or --dictionary"),
)  # fmt: skip


@with_options(AugmentOptions, CONFLICTS)
def augment(options: AugmentOptions) -> None:
    """Make more training pairs from text of one language, a dictionary, or existing pairs.

    Models of both directions translate the text; missing models are trained. The new pairs, and a configuration that
    also uses them, are written to one folder. Ctrl-C stops, and the same command continues."""
    from nmt import experiment

    settings = experiment.load(options.config, options.overrides or [], with_corpora=True)
    if options.ray is not None:
        from nmt.extras.cluster.cluster import check_installed

        check_installed()
    with gc_paused():
        from nmt.extras.corpus.augment import augment as workflow

    workflow.augment(settings, options)
