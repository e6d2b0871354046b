"""The report of prepare: `report.json`."""

from __future__ import annotations

from pydantic import Field

from nmt.config.structure import Structure

FIRST_LINES = 10


class LineCount(Structure):
    """A number of pairs, with the lines of the first few."""

    pairs: int = 0
    first_lines: tuple[int, ...] = Field((), description="line numbers of the first 10")


class CorpusReport(Structure):
    """Counts of a training corpus. `pairs` is `kept` plus all of `dropped`."""

    name: str
    weight: float
    pairs: int
    kept: int
    dropped: dict[str, LineCount]
    near_duplicates: LineCount = Field(
        LineCount(), description="pairs that were kept and that filters.near_duplicates would have dropped"
    )


class ValidReport(Structure):
    """Counts of the validation corpus, of which nothing is dropped."""

    name: str
    pairs: int
    blank: LineCount = Field(description="pairs with a blank side")
    too_long: LineCount = Field(description="pairs that filters.max_length would have dropped from training")
    unknown: tuple[float, float] = Field(description="share of unknown tokens, source and target")


class SideReport(Structure):
    """Counts of one language of the training pairs that were kept."""

    vocabulary: int
    tokens: int
    words: int
    unknown: float = Field(description="share of tokens that are unknown")
    tokens_per_word: float
    rare: int = Field(0, description="different words that are unknown by subwords.min_frequency")
    lengths: dict[str, int] = Field(description="percentiles of tokens per sentence")


class Report(Structure):
    """All figures that `nmt prepare` reports."""

    corpora: tuple[CorpusReport, ...]
    valid: ValidReport | None
    source: SideReport
    target: SideReport
    several: float | None = Field(None, description="share of source lines with a sentence end inside, by a sample")
    letterless: float | None = Field(None, description="share of source lines without a letter, by the same sample")

    @property
    def pairs(self) -> int:
        """Number of training pairs that were read."""
        return sum(corpus.pairs for corpus in self.corpora)

    @property
    def kept(self) -> int:
        """Number of training pairs that were kept."""
        return sum(corpus.kept for corpus in self.corpora)
