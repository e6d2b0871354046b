"""Learns a word aligner from text, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from sys import intern

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting, refuse_unwritable
from nmt.data.corpus import open_bytes
from nmt.extras.word_aligner.aligner import WordAligner, learn_aligner, save_aligner
from nmt.workflows.align import pairs


def learn_from_text(source: Path, target: Path, output: Path) -> WordAligner:
    """Learns an aligner from two files, line by line, and writes it to a file."""
    for path in (source, target):
        open_bytes(path).close()
    refuse_overwriting(output, source, target)
    refuse_unwritable(output)
    aligner = learn_word_aligner(*lines_of(source, target))
    try:
        save_aligner(aligner, output)
    except OSError as error:
        raise InputError(f"--output {output}: cannot be written: {error.strerror or error}") from None
    log.info(f"wrote {output}; use it with nmt align --aligner {output}")
    return aligner


def learn_word_aligner(sources: Sequence[str], targets: Sequence[str]) -> WordAligner:
    """Learns an aligner from lines. Raises InputError where a side has no words."""
    log.info(f"aligner  learning from {len(sources):,} pairs")
    with log.progress(description="aligner", unit="iteration") as bar:
        try:
            return learn_aligner(
                # Interned: a text has many words, but few different ones.
                *([list(map(intern, line.split())) for line in side] for side in (sources, targets)),
                after_iteration=lambda: bar.update(1),
            )
        except ValueError:
            raise InputError("there is nothing to learn from: one side holds no words") from None


def lines_of(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """The lines of two parallel files. Raises InputError, also where a file holds no word."""
    lines = list(pairs(source, target))
    for path, side in ((source, 0), (target, 1)):
        if not any(pair[side].strip() for pair in lines):
            raise InputError(f"{path}: holds no word to learn from")
    return [one for one, _ in lines], [other for _, other in lines]
