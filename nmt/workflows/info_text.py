"""What there is to say of a run, as text for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from nmt.core.terminal_width import printable
from nmt.translator.find_run import ALIGNER, LAYER, SHORTLIST
from nmt.workflows.info import Checkpoint, Info

BAR = 20
"""Characters that stand for all parameters of a model."""

_MADE_BY = {
    ALIGNER: "of nmt aligner",
    LAYER: "of nmt aligner, for --method trained",
    SHORTLIST: "for nmt translate --shortlist",
}


def text(info: Info) -> str:
    """A page: what it is, its parts, how it was trained, what is there, and how to go on."""
    sections = [_head(info), _model(info), _facts(info), _checkpoints(info), _files(info), _commands(info)]
    return "\n\n".join("\n".join(map(printable, section)) for section in sections if section)


def _head(info: Info) -> list[str]:
    languages = f", {' to '.join(info.corpus.languages)}" if info.corpus.languages else ""
    named = info.checkpoint.rpartition("/")[2]
    own = "" if named == info.name else f" ({named})"
    return [f"{info.run}{languages}: checkpoint {info.name}{own}"]


def _model(info: Info) -> list[str]:
    """The parts in the order in which a sentence goes through them, each with its share of the parameters."""
    names = ["source", *(part.name for part in info.parts), "target"]
    rows = [
        (
            part.name,
            part.what,
            f"{part.parameters:,}",
            f"{part.parameters / info.parameters:.0%}",
            "█" * max(1, round(BAR * part.parameters / info.parameters)),
        )
        for part in info.parts
    ]
    rows.append(("together", f"{info.format}, {info.bytes / 2**20:.1f} MiB", f"{info.parameters:,}", "", ""))
    return [f"model  {' → '.join(names)}", *_table(rows, right=(2, 3))]


def _facts(info: Info) -> list[str]:
    corpus, vocabulary, training = info.corpus, info.vocabulary, info.training
    of = f" of {corpus.pairs:,}" if corpus.pairs != corpus.kept else ""
    pairs = "" if corpus.kept is None else f"{corpus.kept:,}{of} pairs: "
    valid = "" if corpus.valid is None else f"; valid {corpus.valid:,}"
    joint = "joint" if vocabulary.joint else f"and {vocabulary.target:,} of the target"
    trained = [
        f"{training.updates:,} updates",
        "" if training.epoch is None else f"in epoch {training.epoch}",
        "" if training.target_tokens is None else f"{training.target_tokens:,} target tokens",
        "" if training.seconds is None else _duration(training.seconds),
        training.precision or "",
        f"written {datetime.fromisoformat(training.written).astimezone():%Y-%m-%d %H:%M}",
    ]
    rows = [
        ("corpus", f"{pairs}{', '.join(corpus.files)}{valid}"),
        ("subwords", f"{vocabulary.source:,} {vocabulary.kind or f'of {vocabulary.given}'}, {joint}"),
        ("training", ", ".join(filter(None, trained))),
    ]
    if info.best is not None and info.best.figures:
        shown = ", ".join(f"{name} {value:.2f}" for name, value in info.best.figures.items())
        rows.append(("best", f"{shown} ({info.best.name}, by {info.metric})"))
    return [f"{label:<9}{words}" for label, words in rows]


def _checkpoints(info: Info) -> list[str]:
    if not info.checkpoints:
        return []
    names = list(dict.fromkeys(name for each in info.checkpoints for name in each.figures))
    head = ("checkpoints", *names, "")
    return _table([head, *(_row(each, names) for each in info.checkpoints)], right=range(1, len(names) + 1), indent="")


def _row(checkpoint: Checkpoint, names: Sequence[str]) -> tuple[str, ...]:
    shown = (f"{checkpoint.figures[name]:.2f}" if name in checkpoint.figures else "-" for name in names)
    return (checkpoint.name, *shown, ", ".join(checkpoint.links))


def _files(info: Info) -> list[str]:
    rows = [(name, _MADE_BY[name]) for name in info.files]
    for each in info.exported:
        of = "" if each.checkpoint == info.name else f", of {each.checkpoint}"
        use = "for nmt translate --engine ctranslate2" if each.format == "ctranslate2" else "of nmt export"
        rows.append((f"exported/{each.format}", f"{use}{of}"))
    return ["files", *_table(rows)] if rows else []


def _commands(info: Info) -> list[str]:
    model = shlex.quote(info.run if info.name in _used(info) else info.checkpoint)
    run = shlex.quote(info.run)
    align = f"nmt align {model} --source FILE --target FILE"
    rows = [
        ("translate", f"nmt translate {model} < FILE"),
        ("measure", f"nmt evaluate {model} --source FILE --reference FILE"),
        ("align", f"{align} --method trained" if LAYER in info.files and ALIGNER in info.files else align),
        ("train on", f"nmt train {shlex.quote(f'{info.run}/config.yaml')}"),
        ("explain", f"nmt config {run} --explain KEY"),
    ]
    if not (LAYER in info.files and ALIGNER in info.files):
        rows.insert(3, ("align better", f"nmt aligner {model}"))
    return ["go on with", *_table(rows)]


def _used(info: Info) -> tuple[str, ...]:
    """The checkpoint that the run directory stands for."""
    for link in ("best", "latest"):
        for each in info.checkpoints:
            if link in each.links:
                return (each.name,)
    return (info.checkpoints[-1].name,) if info.checkpoints else ()


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "  ") -> list[str]:
    """Rows in columns; those of numbers stand to the ``right``."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        indent
        + "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
