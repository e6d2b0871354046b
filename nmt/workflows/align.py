"""Alignments of sentence pairs, written as they come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO, TypeAlias

from nmt.alignment import Method
from nmt.alignment.directions import Join
from nmt.alignment.error_rate import AlignmentScore, Gold, score_pair
from nmt.alignment.formats import (
    AlignmentWriter,
    GoldWriter,
    JsonlWriter,
    Level,
    NpzWriter,
    PharaohWriter,
    read_gold,
)
from nmt.alignment.link_files import TsvWriter
from nmt.alignment.plot import PictureWriter
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.data.corpus import open_bytes, read_lines
from nmt.data.words import text_words, white_space_words

if TYPE_CHECKING:
    from nmt.workflows.both_directions import BothDirections
    from nmt.workflows.corpus_reports import CorpusReport, LexiconChoice, SuspectsChoice
    from nmt.workflows.translator import Translator

Format: TypeAlias = Literal["pharaoh", "gold", "tsv", "jsonl", "npz", "png", "svg"]

_LINES: Mapping[str, Callable[[TextIO, int], AlignmentWriter]] = {
    "pharaoh": PharaohWriter,
    "gold": GoldWriter,
    "tsv": TsvWriter,
    "jsonl": lambda stream, _: JsonlWriter(stream),
}
"""Formats of text; those with indices of their own choice count from a base."""

WINDOW_PAIRS = 1000
"""Pairs that are held in memory and aligned together."""


@dataclass(frozen=True)
class Reverse:
    """A model that translates the target to the source, and how its alignment is joined to the forward one's."""

    model: str
    join: Join


def align(
    model: str | None,
    overrides: Sequence[str],
    *,
    source: Path,
    target: Path | None,
    reverse: Reverse | None,
    method: Method,
    output: Path | None,
    format: Format | None,
    level: Level,
    gold: Path | None,
    lexicon: LexiconChoice | None,
    suspects: SuspectsChoice | None,
    device: str,
    precision: str,
    base: int = 0,
    gold_base: int = 0,
    text: bool = False,
) -> AlignmentScore | None:
    """Writes one alignment for each pair of lines, or for each source line and its translation by the model, unless
    ``format`` is None, and what the alignments of all say together: a lexicon, suspicious pairs.
    With ``reverse`` both models align the given pairs, at level ``word``; ``overrides`` hold for both. ``text``: the
    words are those of ordinary text, not white-space words. Indices are written from ``base`` on, where the format lets
    one choose.

    With ``gold`` prints AER, precision and recall on stderr and returns them. Raises InputError for files that cannot
    be read, do not have the same lines, or hold links outside their sentences, and for a method that the model does not
    admit.
    """
    assert reverse is None or (target is not None and level == "word")
    meet_files(source, target, gold)
    refuse_overwriting(output, source, target, gold)
    for option, choice in (("--lexicon", lexicon), ("--suspects", suspects)):
        if choice is not None:
            refuse_overwriting(choice.path, source, target, gold, option=option)
    from nmt.workflows.translator import load  # only now: torch takes a second to import

    translator = load(model, device=device, precision=precision, overrides=overrides)
    translator.check_method(method)
    both = None if reverse is None else _with(translator, reverse, overrides, device=device, precision=precision)
    if both is not None:
        both.check_method(method)
    wanted = gold_of(gold, source, target, base=gold_base, text=text)
    total = AlignmentScore()
    with ExitStack() as stack:
        writer = None if format is None else open_writer(stack, format, output, wanted, base=base)
        reports = _reports(stack, lexicon, suspects, both or translator, source, target)
        for window in stack.enter_context(closing(windows(translator, source, target))):
            first_line = window.first + 1
            if both is None:
                alignments = translator.align(
                    window.sources, window.targets, level=level, method=method, first_line=first_line, text=text
                )
            else:
                alignments = both.align(window.sources, window.targets, method=method, first_line=first_line, text=text)
            for number, alignment in enumerate(alignments, window.first):
                if writer is not None:
                    writer.write(alignment)
                if wanted is not None:
                    total += score_pair(alignment.links, wanted[number])
            for report in reports:
                report.add(window.sources, window.targets, alignments, first_line)
    if wanted is None:
        return None
    print(total.line(), file=sys.stderr)
    return total


def _with(
    forward: Translator, reverse: Reverse, overrides: Sequence[str], *, device: str, precision: str
) -> BothDirections:
    from nmt.workflows.both_directions import BothDirections
    from nmt.workflows.translator import load

    backward = load(reverse.model, device=device, precision=precision, overrides=overrides)
    return BothDirections(forward, backward, reverse.join)


def meet_files(*paths: Path | None) -> None:
    """Meets a file that cannot be read before any work."""
    for path in filter(None, paths):
        open_bytes(path).close()


def gold_of(
    gold: Path | None, source: Path, target: Path | None, *, base: int = 0, text: bool = False
) -> tuple[Gold, ...] | None:
    """The gold links of each pair of lines, which count from ``base``, checked against the sentences; None without both
    files. ``text`` as in ``align``."""
    if gold is None or target is None:
        return None
    words = text_words if text else white_space_words
    return read_gold(gold, [(len(words(one)), len(words(other))) for one, other in pairs(source, target)], base=base)


class Window(NamedTuple):
    """Sentence pairs that are aligned together."""

    first: int
    """How many pairs come before."""
    sources: list[str]
    targets: list[str]


def windows(
    translator: Translator, source: Path, target: Path | None, *, description: str = "align"
) -> Generator[Window, None, None]:
    """All pairs of lines, without ``target`` source lines and their translations by the model. Close it, so that its
    progress bar goes. Raises InputError where there is none.
    """
    first = 0
    with log.progress(description=description, unit="pair") as bar:
        for window in _cut(pairs(source, target)):
            sources, targets = [each for each, _ in window], [other for _, other in window]
            if target is None:
                translations = [best for best, *_ in translator.sentences(sources)]
                translator.warn_of_cuts(translations, first_line=first + 1)
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


def _cut(pairs: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    window: list[tuple[str, str]] = []
    for pair in pairs:
        window.append(pair)
        if len(window) == WINDOW_PAIRS:
            yield window
            window = []
    if window:
        yield window


def open_writer(
    stack: ExitStack, format: Format, output: Path | None, gold: Sequence[Gold] | None, *, base: int = 0
) -> AlignmentWriter:
    """Writes alignments in a format to ``output``, of text also to stdout, until ``stack`` is left."""
    if format in _LINES:
        stream = sys.stdout if output is None else stack.enter_context(text_file(output))
        return stack.enter_context(_LINES[format](stream, base))
    assert output is not None
    if format == "png" or format == "svg":
        return stack.enter_context(PictureWriter(output, gold, format=format))
    return stack.enter_context(NpzWriter(output))


def _reports(
    stack: ExitStack,
    lexicon: LexiconChoice | None,
    suspects: SuspectsChoice | None,
    model: Translator | BothDirections,
    source: Path,
    target: Path | None,
) -> list[CorpusReport]:
    from nmt.workflows.corpus_reports import lexicon_report, suspects_report

    reports = []
    if lexicon is not None:
        reports.append(stack.enter_context(lexicon_report(lexicon)))
    if suspects is not None:
        reports.append(stack.enter_context(suspects_report(suspects, model, pairs(source, target))))
    return reports


def text_file(path: Path) -> TextIO:
    """A file to write lines to."""
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"--output {path}: cannot be written: {error.strerror}") from None
