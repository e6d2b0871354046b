"""Learns a word aligner from text, without PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting, refuse_unwritable
from nmt.data.words import is_unspaced
from nmt.extras.aligner.aligner import LONGEST, Sentences, WordAligner, learn_aligner, load_aligner, save_aligner
from nmt.workflows.align import pairs

BLOCK_PAIRS = 60_000
BLOCK_CELLS = 4_250_000
"""Maximum number of sentence pairs that are learnt from together, and of pairs of a source and a target word in them.
Further blocks add their different words to the memory; a smaller block would make more errors."""

FEW_PAIRS = 500
"""Number of different pairs below which most rare words occur once, and many links are wrong; see
docs/measurements/aligner.md."""


def learn_from_text(source: Path, target: Path, output: Path, earlier: Path | None = None) -> WordAligner:
    """Learns an aligner from two files, line by line, and writes it to a file; with ``earlier`` it continues from the
    aligner in that file."""
    refuse_overwriting(output, source, target)
    refuse_unwritable(output, renamed=True)
    before = None if earlier is None else load_aligner(earlier)
    aligner = learn_from_files(source, target, before)
    try:
        save_aligner(aligner, output)
    except OSError as error:
        raise InputError(f"--output {output}: cannot be written: {error.strerror or error}") from None
    log.info(f"wrote {output}; use it with nmt align --aligner {output}")
    return aligner


def learn_from_files(source: Path, target: Path, before: WordAligner | None = None) -> WordAligner:
    """Learns an aligner from two parallel files in bounded memory, or continues from an earlier one. Raises InputError,
    before it learns, for files with different numbers of lines and for a file without words."""
    return _learn(pairs(source, target), _count(source, target), before)


def learn_word_aligner(sources: Sequence[str], targets: Sequence[str]) -> WordAligner:
    """Learns an aligner from lines. Raises InputError if a side has no words."""
    return _learn(zip(sources, targets, strict=True), len(sources), None)


def _learn(lines: Iterable[tuple[str, str]], count: int, aligner: WordAligner | None) -> WordAligner:
    log.info(f"aligner  learning from {count:,} pairs")
    # an aligner of an earlier version does not know the number of its pairs
    learnt, counts_pairs = False, aligner is None or len(aligner.learnt_P) > 0
    with log.progress(description="aligner", unit="iteration") as bar:
        for sources, targets in _blocks(lines):
            with suppress(ValueError):  # a block without words, or only with characters without a width
                aligner = learn_aligner(sources, targets, before=aligner, after_iteration=lambda: bar.update(1))
                learnt = True
    if aligner is None or not learnt:
        raise InputError("there is nothing to learn from: one side holds no words")
    if counts_pairs and len(aligner.learnt_P) < FEW_PAIRS:
        few = f"only {len(aligner.learnt_P):,} different pairs"
        log.warning(f"the aligner has learnt from {few}, so many links will be wrong; give it some thousand pairs")
    return aligner


def _blocks(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[Sentences, Sentences]]:
    """Yields both sides of pairs that are learnt from together."""
    sources, targets, cells = Sentences(), Sentences(), 0
    for source, target in ((one.split(), other.split()) for one, other in lines):
        # a line without spaces counts as several words of six letters
        size = math.prod(sum(1 + len(word) // 6 * is_unspaced(word) for word in side) for side in (source, target))
        cells += size
        if len(sources) and (cells > BLOCK_CELLS or len(sources) == BLOCK_PAIRS):
            yield sources, targets
            sources, targets, cells = Sentences(), Sentences(), size
        sources.append(source)
        targets.append(target)
    if len(sources):
        yield sources, targets


def lines_of(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """Yields the lines of two parallel files. Raises InputError, also if a file has no word."""
    _count(source, target)
    lines = list(pairs(source, target))
    return [one for one, _ in lines], [other for _, other in lines]


def _count(source: Path, target: Path) -> int:
    count, long, has_words = 0, 0, [False, False]
    for pair in pairs(source, target):
        count += 1
        long += max(map(len, pair)) > LONGEST and max(len(line.split()) for line in pair) > LONGEST
        has_words = [known or bool(line.strip()) for known, line in zip(has_words, pair, strict=True)]
    for path, known in zip((source, target), has_words, strict=True):
        if not known:
            raise InputError(f"{path}: holds no word to learn from")
    if long:
        log.warning(f"left out: {long:,} pairs of {source} and {target} with more than {LONGEST} words on a side")
    return count
