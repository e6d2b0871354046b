"""The grammar: all sentence patterns with their shares, and the drawing of whole sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corpus_de_en.drawing import Record, Sides
from corpus_de_en.patterns.descriptions import Descriptions
from corpus_de_en.patterns.infinitives import Infinitives
from corpus_de_en.patterns.long_sentences import LongSentences
from corpus_de_en.patterns.main_clauses import MainClauses
from corpus_de_en.patterns.questions import Questions
from corpus_de_en.phrases import Rejected
from corpus_de_en.sampling import Sampler
from corpus_de_en.selection import repeats_word
from corpus_de_en.tokens import COMMA, PUNCTUATION, Link, Token, align, anchor, finish
from corpus_de_en.tokens import words as tokens_of

COORDINATORS = {"und": "and", "aber": "but", "denn": "because"}


@dataclass(frozen=True)
class Sentence:
    """A finished sentence pair."""

    german: str
    english: str
    links: tuple[Link, ...]
    lemmas: frozenset[str]
    patterns: frozenset[str]
    cells: frozenset[str]


class Grammar(MainClauses, Questions, LongSentences, Infinitives, Descriptions):
    """Draws sentences."""

    def __init__(self, sampler: Sampler) -> None:
        super().__init__(sampler)
        self.patterns: list[tuple[Callable[[], tuple[Sides, str]], float]] = [
            (self.statement, 21.0),
            (self.liking, 1.5),
            (self.question_yes_no, 5.0),
            (self.question_wh, 7.0),
            (self.content_clause, 8.0),
            (self.reported_complex, 6.0),
            (self.temporal, 9.0),
            (self.reason, 6.0),
            (self.condition, 5.0),
            (self.relative_sentence, 13.0),
            (self.infinitive_clause, 6.0),
            (self.purpose, 5.0),
            (self.description, 5.0),
            (self.comparison, 3.5),
            (self.order, 4.0),
            (self.existence, 2.5),
            (self.coordination, 9.0),
            (self.passive_statement, 6.0),
            (self.since, 2.0),
            (self.possession, 5.0),
            (self.small_facts, 2.0),
            (self.long_sentence, 12.0),
        ]

    def sentence(self) -> Sentence:
        """One sentence, with its alignment and its record."""
        pattern = self.rng.weighted(self.patterns)
        while True:
            (german, english), mark = self._derivation(pattern)
            source, target = finish(german, mark), finish(english, mark)
            if "repetition" in self.record.patterns or not repeats_word(source, target):
                return self._finished(source, target)

    def coordinated(self, words: int) -> Sentence:
        """Statements joined by und, aber and denn, whose clauses have the order of main clauses, until the German has
        at least ``words`` words."""
        german: list[Token] = []
        english: list[Token] = []
        while sum(token.text not in PUNCTUATION for token in german) < words:
            (more_german, more_english), mark = self._derivation(self.rng.weighted(self.patterns))
            if mark != ".":
                continue
            if german:
                link, conjunction = anchor(), self.rng.choice(("und", "aber", "denn"))
                german += [COMMA, *tokens_of(conjunction, link)]
                english += [COMMA, *tokens_of(COORDINATORS[conjunction], link)]
            german += more_german
            english += more_english
        return self._finished(finish(german, "."), finish(english, "."))

    def _derivation(self, pattern: Callable[[], tuple[Sides, str]]) -> tuple[Sides, str]:
        """The words of both sides and the mark at the end."""
        while True:
            self.record = Record()
            try:
                return pattern()
            except Rejected:
                continue

    def _finished(self, source: Sequence[Token], target: Sequence[Token]) -> Sentence:
        record = self.record
        for note in (note for token in source for note in token.notes):
            (record.cells if ":" in note else record.lemmas).add(note)
        return Sentence(
            " ".join(t.text for t in source),
            " ".join(t.text for t in target),
            tuple(align(source, target)),
            frozenset(record.lemmas),
            frozenset(record.patterns),
            frozenset(record.cells),
        )
