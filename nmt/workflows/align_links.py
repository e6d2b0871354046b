"""Links that are there already, of any aligner: joined, written in another format, drawn and judged, without a model.

It does what fast_align's `atools` does, but knows the sentences, so that a link outside of them is noticed.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np

from nmt.alignment.directions import Join, JoinLinks
from nmt.alignment.error_rate import AlignmentScore, score_pair
from nmt.alignment.formats import Alignment
from nmt.alignment.link_files import PairLinks, read_links
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.data.words import text_words, white_space_words
from nmt.workflows.align import Format, gold_of, meet_files, open_writer, pairs


@dataclass(frozen=True)
class LinkFile:
    """A file of links, in any format."""

    path: Path
    base: int | None = None
    """The index of the first word; None: 0."""
    target_first: bool = False
    """Whether it puts the target first, as a model of the other direction does."""


@dataclass(frozen=True)
class ReverseLinks:
    """Links of the other direction, and how both are joined."""

    file: LinkFile
    join: Join


def align_links(
    links: LinkFile,
    *,
    source: Path,
    target: Path,
    reverse: ReverseLinks | None,
    output: Path | None,
    format: Format,
    base: int,
    gold: Path | None,
    gold_base: int,
    text: bool,
) -> AlignmentScore | None:
    """Writes one alignment for each pair of lines, of links that are there; the rest as in ``nmt.workflows.align``.

    Raises InputError for files that cannot be read, do not have the same lines, are not of these sentences or hold
    links outside of them, and where matrices are to be joined of which a file has none.
    """
    meet_files(source, target, gold)
    refuse_overwriting(output, source, target, links.path, reverse.file.path if reverse else None, gold)
    wanted = gold_of(gold, source, target, base=gold_base, text=text)
    total = AlignmentScore()
    with ExitStack() as stack:
        alignments = stack.enter_context(closing(_alignments(links, reverse, source, target, text=text)))
        first = next(alignments)  # meets what is wrong with a file before another one is written
        writer = open_writer(stack, format, output, wanted, base=base)
        for number, alignment in enumerate(chain([first], alignments)):
            writer.write(alignment)
            if wanted is not None:
                total += score_pair(alignment.links, wanted[number])
    if wanted is None:
        return None
    print(total.line(), file=sys.stderr)
    return total


def _alignments(
    links: LinkFile, reverse: ReverseLinks | None, source: Path, target: Path, *, text: bool
) -> Generator[Alignment, None, None]:
    """At least one."""
    files = [links] if reverse is None else [links, reverse.file]
    words = text_words if text else white_space_words
    with log.progress(description="align", unit="pair") as bar:
        for (one, other), found in _together(files, source, target):
            source_spans, target_spans = words(one), words(other)
            sentences = Alignment(
                tuple(one[begin:end] for begin, end in source_spans),
                tuple(other[begin:end] for begin, end in target_spans),
                (),
                np.zeros((len(target_spans), len(source_spans))),
                source_spans=tuple(source_spans),
                target_spans=tuple(target_spans),
            )
            if reverse is not None and not isinstance(reverse.join, JoinLinks):
                _check_matrices(found)
            aligned = [_linked(sentences, each, file) for each, file in zip(found, files, strict=True)]
            yield aligned[0] if reverse is None else reverse.join(aligned[0], aligned[1].turned())
            bar.update(1)


def _together(
    files: Sequence[LinkFile], source: Path, target: Path
) -> Iterator[tuple[tuple[str, str], tuple[PairLinks, ...]]]:
    """Each pair of lines with what each file says of it. Raises InputError where there is none, or not as many."""
    count = 0
    readers = [read_links(file.path, base=file.base) for file in files]
    lines = pairs(source, target)
    while True:
        pair, found = next(lines, None), [next(reader, None) for reader in readers]
        for file, each in zip(files, found, strict=True):
            if (pair is None) != (each is None):
                fewer, more = (source, file.path) if pair is None else (file.path, source)
                raise InputError(f"{fewer} has {count} pairs, but {more} has more: they must go together one by one")
        if pair is None:
            break
        count += 1
        yield pair, tuple(each for each in found if each is not None)
    if count == 0:
        raise InputError(f"{source}: holds no line to align")


def _check_matrices(found: Sequence[PairLinks]) -> None:
    for each in found:
        if each.alignment is None or each.alignment.level != "word":
            raise InputError(
                f"{each.place}: holds no matrix between words, as soft-mean and soft-product need; "
                "choose another --symmetrize"
            )


def _linked(sentences: Alignment, found: PairLinks, file: LinkFile) -> Alignment:
    """The sentences with the links of a file, and its matrix. Where it has none: the score of each link, 1 where there
    is none either, and 0 elsewhere."""
    found = found.turned() if file.target_first else found
    _check(sentences, found, file)
    if found.alignment is not None and found.alignment.level == "word":
        weights_TS = np.asarray(found.alignment.weights_TS)
    else:
        weights_TS = np.zeros_like(sentences.weights_TS)
        for source, target in found.links:
            weights_TS[target, source] = found.scores.get((source, target), 1.0)
    return replace(sentences, links=found.links, weights_TS=weights_TS, sure=found.gold.sure)


def _check(sentences: Alignment, found: PairLinks, file: LinkFile) -> None:
    """Raises InputError for links outside of the sentences, and for words that are not theirs."""
    words = (sentences.source_words, sentences.target_words)
    if found.alignment is not None and (found.alignment.source_words, found.alignment.target_words) != words:
        _refuse_words(found.place)
    for link in found.links:
        place = found.places.get(link, found.place)
        for side, index, own in zip(("source", "target"), link, words, strict=True):
            if index >= len(own):
                base = file.base or 0
                one, other = reversed(link) if file.target_first else link
                raise InputError(
                    f"{place}: link '{one + base}-{other + base}' points at {side} word {index + base}, "
                    f"but that sentence has {len(own)} words, counted from {base}"
                )
        if found.words.get(link, own_words := (words[0][link[0]], words[1][link[1]])) != own_words:
            _refuse_words(place)


def _refuse_words(place: str) -> NoReturn:
    raise InputError(
        f"{place}: names other words than the two sentences have; "
        "give the files that were aligned, and --text, --links-base and --target-first as they were"
    )
