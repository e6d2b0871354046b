"""Links from files of any aligner, which are joined, written in another format, drawn and scored without a model.

This does the work of fast_align's `atools`, but with the sentences, so that a link outside of them is noticed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NoReturn

import numpy as np

from nmt.alignment.directions import Join
from nmt.alignment.error_rate import AlignmentScore
from nmt.alignment.formats import Alignment
from nmt.alignment.link_files import PairLinks, read_links
from nmt.alignment.request import LINKS, AlignmentRequest, PairAligner, align_both
from nmt.core.errors import InputError
from nmt.data.words import text_words, white_space_words
from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, PairWindow, check_files, windows, write_alignments

WINDOW_PAIRS = 20
"""Number of pairs that are read together. With 1000, Python's garbage collector takes a quarter of the time."""


@dataclass(frozen=True)
class LinkFile:
    """A file of links, in any format."""

    path: Path
    base: int | None = None
    """Index of the first word; None means 0."""
    target_first: bool = False
    """If True, each link has the target first, as from a model of the other direction."""


@dataclass(frozen=True)
class ReverseLinks:
    """Links of the other direction, and the rule that joins both."""

    file: LinkFile
    join: Join


def write_links(
    links: LinkFile,
    reverse: ReverseLinks | None,
    requests: Sequence[AlignmentRequest],
    inputs: AlignmentInputs,
    outputs: AlignmentOutputs,
) -> Mapping[str, AlignmentScore]:
    """Writes one alignment for each pair of lines and each of ``requests``, of links from files.

    Raises InputError for what ``nmt.workflows.align.write_alignments`` raises it for, for a file that is not of these
    sentences or holds links outside of them, and if matrices should be joined but a file has none.
    """
    assert inputs.target is not None
    join = None if reverse is None else reverse.join
    check_files(inputs, outputs, links.path, reverse.file.path if reverse else None)
    needs_matrices = join is not None and join.is_soft
    readers = [LinkReader(links, inputs, needs_matrices)]
    align: PairAligner = readers[0]
    if reverse is not None:
        readers.append(LinkReader(reverse.file, inputs, needs_matrices, backward=True))
        align = partial(align_both, readers[0], readers[1])

    def pairs_in_windows() -> Generator[PairWindow, None, None]:
        """Yields the windows; raises InputError for a file that continues after the last pair."""
        yield from windows(None, inputs.source, inputs.target, size=WINDOW_PAIRS)
        for reader in readers:
            reader.end()

    requests = [replace(request, symmetrization=join) for request in dict.fromkeys(requests)]
    facts = [str(reader.file.path) for reader in readers]
    explanations = {} if join is None else {LINKS: join.explanation}
    return write_alignments(
        align, requests, inputs, outputs, pairs_in_windows=pairs_in_windows(), facts=facts, explanations=explanations
    )


@dataclass
class LinkReader:
    """The links of a file as a `PairAligner` of its pairs; a backward reader aligns target to source."""

    file: LinkFile
    inputs: AlignmentInputs
    needs_matrices: bool
    backward: bool = False

    def __post_init__(self) -> None:
        """Reads the beginning of the file, so that a fault there is found before another file is written."""
        self._count = 0
        self._words = text_words if self.inputs.text else white_space_words
        records = read_links(self.file.path, base=self.file.base)
        self._records = chain(list(islice(records, 1)), records)

    def __call__(
        self, requests: Sequence[AlignmentRequest], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> dict[AlignmentRequest, list[Alignment]]:
        alignments = self._next(targets, sources) if self.backward else self._next(sources, targets)
        if self.backward:
            alignments = [alignment.turned() for alignment in alignments]
        return dict.fromkeys(requests, alignments)

    def end(self) -> None:
        """Raises InputError if the file continues after the last pair."""
        if self._count and next(self._records, None) is not None:
            self._refuse_count(self.inputs.source, self.file.path)

    def _next(self, sources: Sequence[str], targets: Sequence[str]) -> list[Alignment]:
        """Reads the alignments of the next pairs, source to target."""
        records = list(islice(self._records, len(sources)))
        alignments = [self._linked(*pair) for pair in zip(sources, targets, records, strict=False)]
        self._count += len(records)
        if len(records) < len(sources):
            self._refuse_count(self.file.path, self.inputs.source)
        return alignments

    def _refuse_count(self, fewer: Path, more: Path) -> NoReturn:
        raise InputError(f"{fewer} has {self._count} pairs, but {more} has more: they must go together one by one")

    def _linked(self, source: str, target: str, found: PairLinks) -> Alignment:
        """Joins the sentences with the links and the matrix of a file. Without a matrix, a link has its score as
        weight, or 1 if it has no score, and other cells have 0."""
        if self.needs_matrices and (found.alignment is None or found.alignment.level != "word"):
            raise InputError(
                f"{found.place}: holds no matrix between words, as soft-mean and soft-product need; "
                "choose another --symmetrize"
            )
        found = found.turned() if self.file.target_first else found
        source_spans, target_spans = tuple(self._words(source)), tuple(self._words(target))
        source_words = tuple(source[begin:end] for begin, end in source_spans)
        target_words = tuple(target[begin:end] for begin, end in target_spans)
        none_TS = np.zeros((len(target_spans), len(source_spans)))
        pair = Alignment(source_words, target_words, (), none_TS, source_spans=source_spans, target_spans=target_spans)
        if found.alignment is not None and not (found.alignment.source_words or found.alignment.target_words):
            return pair  # a pair that was too long to be aligned
        _check(pair, found, self.file)
        if found.alignment is not None and found.alignment.level == "word":
            weights_TS = np.asarray(found.alignment.weights_TS)
        else:
            weights_TS = np.zeros_like(pair.weights_TS)
            for one, other in found.links:
                weights_TS[other, one] = found.scores.get((one, other), 1.0)
        return replace(pair, links=found.links, weights_TS=weights_TS, sure=found.gold.sure)


def _check(sentences: Alignment, found: PairLinks, file: LinkFile) -> None:
    """Raises InputError for links outside of the sentences, and for words that differ from those of the sentences."""
    words = (sentences.source_words, sentences.target_words)
    if found.alignment is not None and (found.alignment.source_words, found.alignment.target_words) != words:
        _refuse_words(found.place)
    for link in found.links:
        place = found.places.get(link, found.place)
        for side, index, own in zip(("source", "target"), link, words, strict=True):
            if index >= len(own):
                base = file.base or 0
                one, other = reversed(link) if file.target_first else link
                advice = "" if base or index > len(own) else "; if the file counts from 1, give --links-base 1"
                raise InputError(
                    f"{place}: link '{one + base}-{other + base}' points at {side} word {index + base}, "
                    f"but that sentence has {len(own)} words, counted from {base}{advice}"
                )
        if found.words.get(link, own_words := (words[0][link[0]], words[1][link[1]])) != own_words:
            _refuse_words(place)


def _refuse_words(place: str) -> NoReturn:
    raise InputError(
        f"{place}: names other words than the two sentences have; "
        "give the files that were aligned, and --text, --links-base and --target-first as they were"
    )
