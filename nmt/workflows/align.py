"""Alignments of sentence pairs, written as they come: what is aligned, what is written, and the way from one to the
other, whoever aligns.

`nmt.workflows.align_models` and `nmt.workflows.align_links` bring the aligners; another kind of aligner is written by

    write_alignments(one_view("name", aligner), Given(source, target), Written(output))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO, TypeAlias

from nmt.alignment.error_rate import AlignmentScore, Gold, score_pair
from nmt.alignment.formats import (
    Alignment,
    AlignmentWriter,
    Level,
    LineWriter,
    NpzWriter,
    gold_line,
    jsonl_line,
    pharaoh_line,
    read_gold,
)
from nmt.alignment.link_files import TsvWriter
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.data.corpus import open_bytes, read_lines
from nmt.data.words import text_words, white_space_words
from nmt.extras.inspect.corpus_reports import (
    CorpusReport,
    LexiconChoice,
    Nlls,
    SuspectsChoice,
    lexicon_report,
    suspects_report,
)
from nmt.extras.inspect.heatmap import HeatmapWriter
from nmt.extras.inspect.plot import PictureWriter
from nmt.extras.inspect.viewer import ViewerWriter
from nmt.translator.views import Views

if TYPE_CHECKING:
    from nmt.translator.translator import Translator

Format: TypeAlias = Literal["pharaoh", "gold", "tsv", "jsonl", "heatmap", "npz", "png", "svg", "html"]

_LINES: Mapping[str, Callable[[TextIO, int], AlignmentWriter]] = {
    "pharaoh": lambda stream, base: LineWriter(stream, lambda pair: pharaoh_line(pair.links, base)),
    "gold": lambda stream, base: LineWriter(stream, lambda pair: gold_line(pair.as_gold(), base)),
    "tsv": TsvWriter,
    "jsonl": lambda stream, _: LineWriter(stream, jsonl_line),
    "heatmap": lambda stream, _: HeatmapWriter(stream),
}
"""Formats of text; those with indices of their own choice count from a base."""

WINDOW_PAIRS = 1000
"""Pairs that are held in memory and aligned together."""


@dataclass(frozen=True)
class Given:
    """What is aligned."""

    source: Path
    target: Path | None = None
    """None: a model's own translations."""
    gold: Path | None = None
    """Links that the found ones are judged by."""
    gold_base: int = 0
    """What they call the first word."""
    text: bool = False
    """Whether the words are those of ordinary text, not white-space words."""


@dataclass(frozen=True)
class Written:
    """What is written, and where."""

    output: Path | None = None
    """None: stdout, which takes formats of text."""
    format: Format | None = "pharaoh"
    """None: no alignments, but reports."""
    base: int = 0
    """What the first word is called, where the format lets one choose."""
    level: Level = "word"
    lexicon: LexiconChoice | None = None
    suspects: SuspectsChoice | None = None


def check_files(given: Given, written: Written, *inputs: Path | None) -> None:
    """Meets before any work a file that cannot be read, and one that would be read and written; ``inputs`` are read,
    too."""
    read = (given.source, given.target, given.gold)
    meet_files(*read)
    refuse_overwriting(written.output, *read, *inputs)
    for option, choice in (("--lexicon", written.lexicon), ("--suspects", written.suspects)):
        if choice is not None:
            refuse_overwriting(choice.path, *read, *inputs, option=option)


def write_alignments(
    views: Views,
    given: Given,
    written: Written,
    *,
    pairs_in_windows: Generator[Window, None, None] | None = None,
    facts: Sequence[str] = (),
    nlls: Nlls | None = None,
) -> Mapping[str, AlignmentScore]:
    """Writes the alignments of all pairs, and what they say together: a lexicon, suspicious pairs, for which ``nlls``
    is needed. A page holds all views, and names ``facts`` about them; all else goes by the first view. The pairs are
    those of the given files, or those of ``pairs_in_windows``, whose aligner does not need a ``target``.

    With gold links prints AER, precision and recall of each view on stderr, and returns them by its name. Raises
    InputError for files that cannot be read or written, do not have the same lines, or hold links outside their
    sentences.
    """
    gold = gold_of(given)
    totals = dict.fromkeys(views.names, AlignmentScore())
    with ExitStack() as stack:
        write = _writer(stack, written, views.names, [_pair_name(given), *facts], gold)
        reports = _reports(stack, written, nlls, given)
        for window in stack.enter_context(closing(pairs_in_windows or windows(None, given.source, given.target))):
            first_line = window.first + 1
            found = views.align(window.sources, window.targets, first_line=first_line)
            for number, alignments in enumerate(zip(*found, strict=True), window.first):
                write(alignments)
                if gold is not None:
                    for name, alignment in zip(totals, alignments, strict=True):
                        totals[name] += score_pair(alignment.links, gold[number])
            for report in reports:
                report.add(window.sources, window.targets, found[0], first_line)
    if gold is None:
        return {}
    for name, total in totals.items():
        print(total.line() if len(totals) == 1 else f"{name}: {total.line()}", file=sys.stderr)
    return totals


def meet_files(*paths: Path | None) -> None:
    """Meets a file that cannot be read before any work."""
    for path in filter(None, paths):
        open_bytes(path).close()


def gold_of(given: Given) -> tuple[Gold, ...] | None:
    """The gold links of each pair of lines, checked against the sentences; None where there are none, or no given
    targets."""
    if given.gold is None or given.target is None:
        return None
    words = text_words if given.text else white_space_words
    lengths = [(len(words(one)), len(words(other))) for one, other in pairs(given.source, given.target)]
    return read_gold(given.gold, lengths, base=given.gold_base)


class Window(NamedTuple):
    """Sentence pairs that are aligned together."""

    first: int
    """How many pairs come before."""
    sources: list[str]
    targets: list[str]


def windows(
    translator: Translator | None,
    source: Path,
    target: Path | None,
    *,
    description: str = "align",
    size: int | None = None,
) -> Generator[Window, None, None]:
    """All pairs of lines, without ``target`` source lines and their translations by the model, which is not needed
    else; ``size`` of them together, None: ``WINDOW_PAIRS``. Close it, so that its progress bar goes. Raises InputError
    where there is none.
    """
    first = 0
    with log.progress(description=description, unit="pair") as bar:
        for window in _cut(pairs(source, target), size or WINDOW_PAIRS):
            sources, targets = [each for each, _ in window], [other for _, other in window]
            if target is None:
                assert translator is not None
                translations = [best for best, *_ in translator.translate_sentences(sources)]
                for warning in translator.cut_warnings(translations, first_line=first + 1):
                    log.warning(warning)
                targets = [translation.text for translation in translations]
            yield Window(first, sources, targets)
            first += len(window)
            bar.update(len(window))
    if first == 0:
        raise InputError(f"{source}: holds no line to {description}")


def pairs(source: Path, target: Path | None) -> Iterator[tuple[str, str]]:
    """The lines of both files; of one alone with blank others."""
    if target is None:
        for line in read_lines(source):
            yield line, ""
        return
    for count, (one, other) in enumerate(zip_longest(read_lines(source), read_lines(target))):
        if one is None or other is None:
            longer, shorter = (target, source) if one is None else (source, target)
            raise InputError(f"{shorter} has {count} lines, but {longer} has more: they must go together line by line")
        yield one, other


def _cut(pairs: Iterator[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    window: list[tuple[str, str]] = []
    for pair in pairs:
        window.append(pair)
        if len(window) == size:
            yield window
            window = []
    if window:
        yield window


def _pair_name(given: Given) -> str:
    return " – ".join(path.name for path in (given.source, given.target) if path is not None)


def _writer(
    stack: ExitStack, written: Written, names: Sequence[str], facts: Sequence[str], gold: Sequence[Gold] | None
) -> Callable[[Sequence[Alignment]], None]:
    """What takes the alignments of each pair, one by each view, until ``stack`` is left."""
    output, format_ = written.output, written.format
    if format_ is None:
        return lambda found: None
    if format_ in _LINES:
        stream = log.results() if output is None else stack.enter_context(text_file(output))
        writer = _LINES[format_](stream, written.base)
    else:
        assert output is not None
        if format_ == "html":
            return stack.enter_context(ViewerWriter(output, names, facts=facts, gold=gold)).write
        if format_ == "png" or format_ == "svg":
            writer = PictureWriter(output, gold, format=format_)
        else:
            writer = NpzWriter(output)
    stack.enter_context(writer)
    return lambda found: writer.write(found[0])


def _reports(stack: ExitStack, written: Written, nlls: Nlls | None, given: Given) -> list[CorpusReport]:
    reports = []
    if written.lexicon is not None:
        reports.append(stack.enter_context(lexicon_report(written.lexicon)))
    if written.suspects is not None:
        assert nlls is not None
        lines = pairs(given.source, given.target)
        reports.append(stack.enter_context(suspects_report(written.suspects, nlls, lines)))
    return reports


def text_file(path: Path) -> TextIO:
    """A file to write lines to."""
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"--output {path}: cannot be written: {error.strerror}") from None
