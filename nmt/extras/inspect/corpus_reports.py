"""What the alignments of a corpus tell about it, beside the links: a bilingual lexicon, and pairs that are probably no
translations of each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nmt.alignment.formats import Alignment, json_line
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.extras.inspect.bilingual_lexicon import Glossary
from nmt.extras.inspect.corpus_filter import MIN_SCORE, Suspect, length, suspect, usual_lengths

if TYPE_CHECKING:
    from nmt.translator.translator import Translator

Row = Mapping[str, object]

Nlls: TypeAlias = Callable[[Sequence[str], Sequence[str], int], list[float]]
"""How improbable the words of sentence pairs are, the first of which has that number: see ``pair_nlls``."""

LEXICON = ("source", "target", "count", "p_target_given_source", "p_source_given_target", "lines")
SUSPECTS = ("line", "score", "kinds", "nll", "z", "source_words", "target_words", "source", "target")
"""The columns of each table."""


class CorpusReport(ABC):
    """Takes the alignments of a corpus as they come; what it makes of them is written at the end."""

    @abstractmethod
    def add(self, sources: Sequence[str], targets: Sequence[str], alignments: Sequence[Alignment], first: int) -> None:
        """Of the next sentence pairs; ``first`` is the first one's number."""

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """The finished table."""


@dataclass(frozen=True)
class LexiconChoice:
    """Which lexicon is wanted, and where."""

    path: Path
    min_count: int = 1
    lowercase: bool = False
    examples: int = 3


@dataclass(frozen=True)
class SuspectsChoice:
    """Which suspicious pairs are wanted, and where."""

    path: Path
    min_score: float = MIN_SCORE


class _Lexicon(CorpusReport):
    def __init__(self, choice: LexiconChoice) -> None:
        self._min_count = choice.min_count
        self._glossary = Glossary(lowercase=choice.lowercase, examples=choice.examples)

    def add(self, sources: Sequence[str], targets: Sequence[str], alignments: Sequence[Alignment], first: int) -> None:
        for line, alignment in enumerate(alignments, first):
            self._glossary.add(alignment, line)

    def rows(self) -> Iterator[Row]:
        for entry in self._glossary.entries(min_count=self._min_count):
            yield {
                "source": entry.source,
                "target": entry.target,
                "count": entry.count,
                "p_target_given_source": _rounded(entry.target_given_source),
                "p_source_given_target": _rounded(entry.source_given_target),
                "lines": entry.lines,
            }


class _Suspects(CorpusReport):
    def __init__(self, choice: SuspectsChoice, nlls: Nlls, pairs: Iterable[tuple[str, str]]) -> None:
        self._min_score = choice.min_score
        self._nlls = nlls
        self._lengths = usual_lengths((length(source), length(target)) for source, target in pairs)
        self._found: list[Suspect] = []

    def add(self, sources: Sequence[str], targets: Sequence[str], alignments: Sequence[Alignment], first: int) -> None:
        nlls = self._nlls(sources, targets, first)
        pairs = zip(sources, targets, alignments, nlls, strict=True)
        for line, (source, target, alignment, nll) in enumerate(pairs, first):
            found = suspect(line, source, target, alignment, nll=nll, lengths=self._lengths, min_score=self._min_score)
            self._found += [] if found is None else [found]

    def rows(self) -> Iterator[Row]:
        for each in sorted(self._found, key=lambda each: (-each.score, each.line)):
            yield {
                "line": each.line,
                "score": _rounded(each.score),
                "kinds": each.kinds,
                "nll": _rounded(each.nll),
                "z": _rounded(each.z),
                "source_words": each.source_words,
                "target_words": each.target_words,
                "source": each.source,
                "target": each.target,
            }


def pair_nlls(
    forward: Translator,
    backward: Translator | None,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    first_line: int = 1,
) -> list[float]:
    """The negative log-probability per token of each target given its source; with a model that translates the other
    way, the mean of that and of the source given the target."""
    found = [forward.score(sources, targets, first_line=first_line)]
    if backward is not None:
        found.append(backward.score(targets, sources, first_line=first_line))
    means = [[-each.log_prob / len(each.tokens) for each in scores] for scores in found]
    return [sum(each) / len(each) for each in zip(*means, strict=True)]


@contextmanager
def lexicon_report(choice: LexiconChoice) -> Iterator[CorpusReport]:
    """Fills the lexicon of a corpus; leaving the block without an error writes it."""
    with _written(choice.path, LEXICON, "--lexicon", "entries", _Lexicon(choice)) as report:
        yield report


@contextmanager
def suspects_report(choice: SuspectsChoice, nlls: Nlls, pairs: Iterable[tuple[str, str]]) -> Iterator[CorpusReport]:
    """Finds the suspicious ones of ``pairs``, all of which are looked at before, for their lengths; leaving the block
    without an error writes them, worst first."""
    report = _Suspects(choice, nlls, pairs)
    with _written(choice.path, SUSPECTS, "--suspects", "suspicious pairs", report):
        yield report


@contextmanager
def _written(
    path: Path, columns: Sequence[str], option: str, what: str, report: CorpusReport
) -> Iterator[CorpusReport]:
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {path}: is no regular file; give the name of a file to write")
    with ExitStack() as stack:
        try:
            partial = stack.enter_context(whole_file(path))
        except OSError as error:
            raise InputError(f"{option} {path}: cannot be written: {error.strerror}") from None
        yield report
        count = _write(partial, columns, report.rows(), as_json=path.suffix == ".jsonl")
    log.info(f"{count:,} {what}: {path}")


def _write(path: Path, columns: Sequence[str], rows: Iterable[Row], *, as_json: bool) -> int:
    """JSON lines, or values between tabs under the names of the columns; how many rows there were."""
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if not as_json:
            file.write("\t".join(columns) + "\n")
        for row in rows:
            file.write((json_line(row) if as_json else "\t".join(_cell(row[name]) for name in columns)) + "\n")
            count += 1
    return count


def _cell(value: object) -> str:
    # Words hold no white space, and sentences single spaces, so no cell holds a tab.
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
