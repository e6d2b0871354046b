"""`nmt augment`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.cli.options import Config, Device, Overrides, Precision, Ray
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused


def augment(
    config: Config,
    target_text: Annotated[
        list[Path] | None,
        typer.Option("--target-text", metavar="FILE", help="Text of the target language, plain, gz or xz; repeatable."),
    ] = None,
    source_text: Annotated[
        list[Path] | None,
        typer.Option(
            "--source-text", metavar="FILE", help="Text of the source language, for self-training; repeatable."
        ),
    ] = None,
    back_translation: Annotated[
        Literal["tagged", "beam", "noised", "sampling", "none"],
        typer.Option(
            help="Method for the target text. tagged: beam search, with <BT> before the source. beam: without <BT>. "
            "noised: with words dropped, blanked and shuffled. sampling: drawn at random."
        ),
    ] = "tagged",
    copies: Annotated[bool, typer.Option("--copies", help="Also use the target text as its own source.")] = False,
    diversify: Annotated[
        bool, typer.Option("--diversify", help="Also translate both sides of the training pairs.")
    ] = False,
    keep: Annotated[
        float,
        typer.Option(metavar="X", min=0.01, max=1, help="Share of the translations to keep; the worst are dropped."),
    ] = 1.0,
    keep_by: Annotated[
        Literal["score", "round-trip"] | None,
        typer.Option(
            help="Order of --keep. score (default): log-probability per token. round-trip: chrF after translating back."
        ),
    ] = None,
    real_share: Annotated[
        float,
        typer.Option(
            metavar="X", min=0, max=0.99, help="Repeat the real pairs until they are this share of an epoch; 0: never."
        ),
    ] = 0.5,
    reverse: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Run or configuration of the other direction; default: train CONFIG with source and target exchanged.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder; default: the run of CONFIG with -augmented."),
    ] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Train CONFIG and the new configuration, and compare them on data.valid.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="As --train, and also train a model for each kind of pairs.")
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Beam size of the translations. Default: the configuration's."),
    ] = None,
    ray: Ray = None,
    device: Device = "auto",
    precision: Precision = "auto",
    overrides: Overrides = None,
) -> None:
    """Make more training pairs from text of one language, or from existing pairs.

    Models of both directions translate the text; missing models are trained. The new pairs, and a configuration that
    also uses them, are written to one folder. Ctrl-C stops, and the same command continues."""
    for option, is_given, needs, is_there in (
        ("--back-translation", back_translation != "tagged", "--target-text", bool(target_text)),
        ("--copies", copies, "--target-text", bool(target_text)),
        ("--keep-by", keep_by is not None, "--keep, the share to keep", keep < 1),
    ):
        if is_given and not is_there:
            raise InputError(f"{option}: needs {needs}")
    if back_translation == "none" and not (copies or source_text or diversify):
        raise InputError("--back-translation none: leaves nothing to make; add --copies, --source-text or --diversify")
    if not (target_text or source_text or diversify):
        raise InputError("there is nothing to make pairs of; give --target-text, --source-text or --diversify")
    if back_translation == "sampling" and beam is not None and not (source_text or diversify):
        raise InputError("--beam: --back-translation sampling draws and has no beam; leave one out")
    from nmt import experiment

    settings = experiment.load(config, overrides or [], with_corpora=True)
    if ray is not None:
        from nmt.extras.cluster.cluster import check_installed

        check_installed()
    with gc_paused():
        from nmt.extras.corpus.augment import augment as workflow

    workflow.augment(
        config,
        settings,
        workflow.Options(
            source_text=source_text or (),
            target_text=target_text or (),
            back_translation=back_translation,
            copies=copies,
            diversify=diversify,
            keep=keep,
            keep_by=keep_by or "score",
            real_share=real_share,
            reverse=reverse,
            beam=beam,
            device=device,
            precision=precision,
            ray=ray,
        ),
        output=output,
        trains=train,
        compares=compare,
    )
