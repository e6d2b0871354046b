"""Alignments of sentence pairs, written window by window, by any kind of aligner.

`nmt.workflows.align_models` and `nmt.workflows.links` bring the aligners; the alignments of another `PairAligner` are
written by

    write_alignments(align, [AlignmentRequest("name")], AlignmentInputs(source, target), AlignmentOutputs(path))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TextIO, TypeAlias

from nmt.alignment.error_rate import AlignmentScore, Gold, score_pair
from nmt.alignment.formats import Alignment, AlignmentWriter, LineWriter, pharaoh_line, read_gold
from nmt.alignment.request import AlignmentRequest, PairAligner
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.data.config import CorpusConfig
from nmt.data.context import DocumentContext
from nmt.data.corpus import open_bytes, read_blocks, read_lines
from nmt.data.words import lacks_spaces, text_words, white_space_words
from nmt.workflows.output_files import text_file

if TYPE_CHECKING:
    from nmt.translator.translator import Translator

WINDOW_PAIRS = 1000
"""Number of pairs that are held in memory and aligned together."""


@dataclass(frozen=True)
class AlignmentInputs:
    """The sentence pairs, and the gold links that judge their alignments."""

    source: Path
    target: Path | None = None
    """The target text; None for a model's own translations."""
    gold: Path | None = None
    gold_base: int = 0
    """Index of the first word in ``gold``."""
    text: bool = False
    """If True, the words are those of ordinary text, which are not only separated by white space."""


@dataclass(frozen=True)
class Header:
    """Facts about all pairs that a file of alignments may begin with."""

    views: Sequence[str]
    facts: Sequence[str] = ()
    """The files, and the models that aligned them."""
    gold: Sequence[Gold] | None = None
    """The gold links of each pair."""
    explanations: Mapping[str, str] = field(default_factory=dict)
    """The rule that gives the links, in a sentence, by the name of the view."""
    languages: tuple[str, str] | None = None
    """Languages of source and target, if the names of the files contain them."""


WritePair: TypeAlias = Callable[[Sequence[Alignment]], None]
"""Function that writes the alignments of the next sentence pair, one by each view."""

OpenWriter: TypeAlias = Callable[[Path | None, Header], AbstractContextManager[WritePair]]
"""Function that opens a file, or stdout for None, for alignments in some format. Leaving the context completes the
file."""

Nlls: TypeAlias = Callable[[Sequence[str], Sequence[str], int], list[float]]
"""Function that returns the negative log-probability per token of sentence pairs, the first of which has the given
number."""


Confidences: TypeAlias = Callable[[Sequence[str], Sequence[str], int], Sequence[object]]
"""Function that returns the confidence of the targets of sentence pairs, or None, with the same arguments."""


class AlignmentReport(Protocol):
    """Collects a table from the alignments of all pairs."""

    def add(self, sources: Sequence[str], targets: Sequence[str], alignments: Sequence[Alignment], first: int) -> None:
        """Adds the next sentence pairs; ``first`` is the number of the first one."""


class CorpusTable(Protocol):
    """A table of all pairs, its file, and the option that names the file."""

    @property
    def option(self) -> str: ...

    @property
    def path(self) -> Path: ...

    def open(self, pairs: Iterable[tuple[str, str]], nlls: Nlls | None) -> AbstractContextManager[AlignmentReport]:
        """Begins the table; leaving the context without an error writes it."""


@contextmanager
def first_view(writer: AlignmentWriter) -> Iterator[WritePair]:
    """Writes the alignments of the first view only."""
    with writer:
        yield lambda alignments: writer.write(alignments[0])


def lines(writer: Callable[[TextIO], AlignmentWriter]) -> OpenWriter:
    """Creates a format of text, which may go to stdout."""

    @contextmanager
    def open_lines(path: Path | None, _: Header) -> Iterator[WritePair]:
        with text_file(path) as stream, first_view(writer(stream)) as write:
            yield write

    return open_lines


PHARAOH = lines(lambda stream: LineWriter(stream, lambda pair: pharaoh_line(pair.links, 0)))


@dataclass(frozen=True)
class AlignmentOutputs:
    """The files to which alignments and reports are written."""

    path: Path | None = None
    """The file to write; None means stdout, for formats of text."""
    writer: OpenWriter | None = PHARAOH
    """The format; None means that only reports are written."""
    reports: Sequence[CorpusTable] = ()
    pictures: bool = False
    """If True, ``path`` is a folder, which is created if it is missing."""

    @property
    def files(self) -> dict[str, Path]:
        """The files by the options that name them."""
        files = {report.option: report.path for report in self.reports}
        return files if self.path is None else {"--output": self.path, **files}


def check_files(inputs: AlignmentInputs, outputs: AlignmentOutputs, *others: Path | None) -> None:
    """Raises InputError, before any work, for a file that cannot be read, and for one that would be both read and
    written; ``others`` are read, too."""
    read = (inputs.source, inputs.target, inputs.gold)
    check_readable(*read)
    for path in read[:2]:
        if path and not inputs.text and lacks_spaces(list(islice(read_lines(path, longest=None), 100))):
            log.warning(f"{path}: white space separates few of its words, and whole sentences are aligned; give --text")
    for option, path in outputs.files.items():
        refuse_overwriting(path, *read, *others, option=option)


def write_alignments(
    align: PairAligner, requests: Sequence[AlignmentRequest], inputs: AlignmentInputs, outputs: AlignmentOutputs, *,
    pairs_in_windows: Generator[PairWindow, None, None] | None = None, facts: Sequence[str] = (),
    explanations: Mapping[str, str] | None = None, nlls: Nlls | None = None, confidences: Confidences | None = None,
) -> Mapping[str, AlignmentScore]:  # fmt: skip
    """Writes the alignments of all pairs, and the reports on them, some of which need ``nlls``. A page shows those of
    all ``requests``, ``facts`` about them, and ``explanations`` of the links by the names of requests; everything else
    uses the first request, to whose alignments ``confidences`` are added. The pairs are those of the input files, or
    those of ``pairs_in_windows``, whose aligner does not need a ``target``.

    With gold links it prints AER, precision and recall for each request on stderr, and returns the scores by the names
    of requests. Raises InputError for files that cannot be read or written, do not have the same lines, or hold links
    outside their sentences.
    """
    gold = gold_of(inputs)
    totals = {request.name: AlignmentScore() for request in requests}
    name = " – ".join(path.name for path in dict.fromkeys((inputs.source, inputs.target)) if path is not None)
    languages = corpus_of(inputs.source, inputs.target).language_names if inputs.target else None
    with ExitStack() as stack:
        write: WritePair | None = None
        if outputs.writer is not None:
            header = Header([*totals], [name, *facts], gold, explanations or {}, languages)
            write = stack.enter_context(outputs.writer(outputs.path, header))
        opened = (report.open(pairs(inputs.source, inputs.target), nlls) for report in outputs.reports)
        reports = [stack.enter_context(report) for report in opened]
        for window in stack.enter_context(closing(pairs_in_windows or windows(None, inputs.source, inputs.target))):
            first_line = window.first + 1
            by_request = align(requests, window.sources, window.targets, first_line=first_line)
            found = [by_request[request] for request in requests]
            if confidences is not None:
                judged = zip(found[0], confidences(window.sources, window.targets, first_line), strict=True)
                found[0] = [replace(alignment, confidence=confidence) for alignment, confidence in judged]
            for number, alignments in enumerate(zip(*found, strict=True), window.first):
                if write is not None:
                    write(alignments)
                if gold is not None:
                    for view, alignment in zip(totals, alignments, strict=True):
                        totals[view] += score_pair(alignment.links, gold[number])
            for report in reports:
                report.add(window.sources, window.targets, found[0], first_line)
    if gold is None:
        return {}
    for view, total in totals.items():
        print(total.line() if len(totals) == 1 else f"{view}: {total.line()}", file=sys.stderr)
    return totals


def check_readable(*paths: Path | None) -> None:
    """Raises InputError, before any work, for a file that cannot be read."""
    for path in filter(None, paths):
        open_bytes(path).close()


def gold_of(inputs: AlignmentInputs) -> tuple[Gold, ...] | None:
    """Reads the gold links of each pair of lines and checks them against the sentences; returns None without gold
    links, or without target sentences."""
    if inputs.gold is None or inputs.target is None:
        return None
    words = text_words if inputs.text else white_space_words
    lengths = [(len(words(source)), len(words(target))) for source, target in pairs(inputs.source, inputs.target)]
    return read_gold(inputs.gold, lengths, base=inputs.gold_base)


class PairWindow(NamedTuple):
    """Sentence pairs that are aligned together."""

    first: int
    """Number of preceding pairs."""
    sources: list[str]
    targets: list[str]


def windows(
    translator: Translator | None, source: Path, target: Path | None, *, description: str = "align",
    size: int | None = None,
) -> Generator[PairWindow, None, None]:  # fmt: skip
    """Divides all pairs of lines into windows of ``size`` pairs; None means ``WINDOW_PAIRS``. Without ``target`` the
    pairs are source lines and their translations by the model, which is not needed otherwise. The generator must be
    closed, so that its progress bar disappears. Raises InputError if there is no pair."""
    first, in_source, in_target = 0, DocumentContext(), DocumentContext()  # a model may read previous sentences
    with log.progress(description=description, unit="pair") as bar:
        all_pairs = pairs(source, target)
        while window := list(islice(all_pairs, size or WINDOW_PAIRS)):
            sources, targets = map(list, zip(*window, strict=True))
            if translator is not None:
                translator.trained.warn_of_language(sources)
            sources = [*in_source.sentences(sources)]
            if target is None:
                assert translator is not None
                translations = [best for best, *_ in translator.translate_sentences(sources)]
                for warning in translator.cut_warnings(translations, first_line=first + 1):
                    log.warning(warning)
                targets = [translation.text for translation in translations]
            yield PairWindow(first, sources, [*in_target.sentences(targets)])
            first += len(window)
            bar.update(len(window))
    if first == 0:
        raise InputError(f"{source}: holds no line to {description}")


def pairs(source: Path, target: Path | None) -> Iterator[tuple[str, str]]:
    """Reads the lines of both files, which may be one file of pairs; without ``target`` it reads the lines of the
    source, with blank targets."""
    if source is target:
        for block in read_blocks(corpus_of(source, target)):
            yield from zip(block.sources, block.targets, strict=True)
        return
    if target is None:
        for line in read_lines(source, longest=None):
            yield line, ""
        return
    both = (read_lines(path, longest=None) for path in (source, target))  # pairs that are too long are left blank later
    for count, (one, other) in enumerate(zip_longest(*both)):
        if one is None or other is None:
            longer, shorter = (target, source) if one is None else (source, target)
            raise InputError(f"{shorter} has {count} lines, but {longer} has more: they must agree line by line")
        yield one, other


def corpus_of(source: Path, target: Path) -> CorpusConfig:
    """Creates the corpus of two files. If both are the same object, it is a file of pairs; two equal paths are a file
    that is its own translation."""
    # constructed without validation, because these paths contain no variables
    if source is target:
        return CorpusConfig.model_construct(pairs=source)
    return CorpusConfig.model_construct(source=source, target=target)
