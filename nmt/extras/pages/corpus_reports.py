"""Reports on the alignments of a corpus: a bilingual lexicon, a glossary of its terms, and pairs that are probably not
translations of each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from itertools import groupby
from pathlib import Path
from typing import ClassVar, TypeAlias

from nmt.alignment.formats import Alignment, json_line
from nmt.core import log
from nmt.core.files import refuse_unwritable, whole_file, writing
from nmt.extras.documents.glossary import LONGEST, Words
from nmt.extras.pages.bilingual_lexicon import GAP, BilingualLexicon
from nmt.extras.pages.corpus_filter import MIN_SCORE, Suspect, length, suspect, usual_lengths
from nmt.workflows.align import AlignmentReport, Nlls

Row: TypeAlias = Sequence[object]

MIN_VARIANT = 0.2
"""Smallest p(target | source) and p(source | target) of a variant of a term: words that are linked with everything,
such as articles, are not terms."""

MIN_KNOWN = 0.5
"""Smallest sum of p(target | source) over the variants of a term."""

_SHARES = ("p_target_given_source", "p_source_given_target")


@dataclass
class _Table(AlignmentReport, ABC):
    """A table of a corpus, which is collected pair by pair and written at the end."""

    path: Path
    option: ClassVar[str]
    columns: ClassVar[Sequence[str]]
    rows_name: ClassVar[str]
    """The plural of a row's name."""

    @contextmanager
    def open(self, pairs: Iterable[tuple[str, str]], nlls: Nlls | None) -> Iterator[AlignmentReport]:
        """Begins the table; leaving the context without an error writes it, as JSON lines, or as tab-separated values
        below the names of the columns."""
        refuse_unwritable(self.path, option=self.option)
        self.begin(pairs, nlls)
        as_json = self.path.suffix == ".jsonl" and self.option != TermsOptions.option
        count = 0
        with ExitStack() as stack:
            with writing(f"{self.option} {self.path}"):
                partial = stack.enter_context(whole_file(self.path))
            yield self
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                if not as_json:
                    file.write("\t".join(self.columns) + "\n")
                for cells in self.rows():
                    row = [round(cell, 4) if isinstance(cell, float) else cell for cell in cells]
                    tree = dict(zip(self.columns, row, strict=True))
                    file.write((json_line(tree) if as_json else "\t".join(map(_cell, row))) + "\n")
                    count += 1
        log.info(f"{count:,} {self.rows_name}: {self.path}")

    @abstractmethod
    def begin(self, pairs: Iterable[tuple[str, str]], nlls: Nlls | None) -> None:
        """Prepares for all ``pairs``, which may be read for this."""

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """Lists the rows of the finished table, with a cell for each column."""


@dataclass
class LexiconOptions(_Table):
    """The lexicon of a corpus, and its file."""

    min_count: int = 1
    lowercase: bool = False
    examples: int = 3
    option: ClassVar[str] = "--lexicon"
    columns: ClassVar[Sequence[str]] = ("source", "target", "count", *_SHARES, "lines")
    rows_name = "entries"

    def begin(self, pairs: Iterable[tuple[str, str]], nlls: Nlls | None) -> None:
        self._lexicon = BilingualLexicon(lowercase=self.lowercase, examples=self.examples)

    def add(self, sources: Sequence[str], targets: Sequence[str], alignments: Sequence[Alignment], first: int) -> None:
        for line, alignment in enumerate(alignments, first):
            self._lexicon.add(alignment, line)

    def rows(self) -> Iterator[Row]:
        return map(astuple, self._lexicon.entries(min_count=self.min_count))  # in the order of the columns


@dataclass
class TermsOptions(LexiconOptions):
    """The glossary of a corpus, and its file, which `nmt.extras.documents.glossary.read_glossary` reads."""

    min_count: int = 5
    examples: int = 0
    option = "--terms"
    columns = ("# source", "target")  # a comment to readers of glossaries
    rows_name = "terms"

    def rows(self) -> Iterator[Row]:
        seen: set[tuple[str, ...]] = set()
        for source, entries in groupby(self._lexicon.entries(min_count=self.min_count), lambda entry: entry.source):
            variants = [
                entry
                for entry in entries
                if min(entry.target_given_source or 0, entry.source_given_target or 0) >= MIN_VARIANT
                and _is_term(source)
                and _is_term(entry.target)
            ]
            spelling = Words.of(source).written
            if spelling not in seen and sum(entry.target_given_source or 0 for entry in variants) >= MIN_KNOWN:
                seen.add(spelling)
                yield source, "|".join(entry.target for entry in variants)


def _is_term(unit: str) -> bool:
    return any(map(str.isalpha, unit)) and not {GAP, "|"} & set(unit) and unit[0] != "#" and len(unit) <= LONGEST


@dataclass
class SuspectsOptions(_Table):
    """The suspicious pairs of a corpus, worst first, and their file."""

    min_score: float = MIN_SCORE
    option = "--suspects"
    columns = ("line", "score", "kinds", "nll", "z", "source_words", "target_words", "source", "target")
    rows_name = "suspicious pairs"

    def begin(self, pairs: Iterable[tuple[str, str]], nlls: Nlls | None) -> None:
        assert nlls is not None
        self._nlls = nlls
        self._lengths = usual_lengths((length(source), length(target)) for source, target in pairs)
        self._found: list[Suspect] = []

    def add(self, sources: Sequence[str], targets: Sequence[str], alignments: Sequence[Alignment], first: int) -> None:
        pairs = zip(sources, targets, alignments, self._nlls(sources, targets, first), strict=True)
        for line, (source, target, alignment, nll) in enumerate(pairs, first):
            found = suspect(line, source, target, alignment, nll=nll, lengths=self._lengths, min_score=self.min_score)
            self._found += [] if found is None else [found]

    def rows(self) -> Iterator[Row]:
        return map(astuple, sorted(self._found, key=lambda pair: (-pair.score, pair.line)))  # in the columns' order


def _cell(value: object) -> str:
    # words contain no white space and sentences only single spaces, so no cell contains a tab
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
