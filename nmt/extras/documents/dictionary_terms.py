"""Entries of a bilingual dictionary as terms of the translation, for words that are rare in the training corpus.

A model invents translations of words that it has seldom read (Arthur et al. 2016, "Incorporating Discrete Translation
Lexicons into Neural Machine Translation"). So a sentence with such a word is translated with one of its translations in
the dictionary, as with a term of a glossary: see ``nmt.extras.documents.terminology``. If the dictionary lacks the form
of a word (*Kontakten*), the entry that differs from it in the fewest letters at the end stands for it (*Kontakte*), or
the word itself, as the entry may be for another word than a name (*Julia*, *Juli*).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nmt.core.errors import InputError
from nmt.data.words import text_words
from nmt.extras.aligner.model_aligner import training_corpus
from nmt.extras.corpus.augment.dictionary import count_words, read_entries
from nmt.extras.corpus.augment.word_exchange import RARE, sense_order
from nmt.extras.documents.glossary import Occurrence, Term
from nmt.extras.documents.numbers import without_addresses
from nmt.extras.documents.terminology import GlossaryTerminology, with_glossary
from nmt.translator.translator import Translator

MAX_LOSS = 0.2
"""Maximum number of nats per token that a translation with an entry may lose; see ``with_glossary``. Up to 0.3 gave the
same chrF on Tatoeba, and 1 a lower BLEU, by translations that repeat themselves."""
MOST_SENSES = 8
"""Maximum number of translations of a word, of which the search chooses one."""
ENDING, BEGINNING = 2, 4
"""Maximum number of letters at the end in which an entry differs from the form of a word, and minimum number of those
at the beginning that both share."""
MOST_PAIRS = 200_000
"""Maximum number of training pairs whose words are counted."""


@dataclass(frozen=True)
class DictionaryTerms:
    """The terms that a dictionary has for rare words."""

    senses: Mapping[str, Sequence[str]]
    """Translations of each entry in lower case."""
    counts: Sequence[Mapping[str, int]]
    """Numbers of occurrences of the words of the training corpus, of its sources and targets."""

    def find(self, text: str) -> list[Occurrence]:
        """Finds the rare words of a source text, from left to right."""
        words = [(text[slice(*span)], span) for span in text_words(without_addresses(text))]
        rare = [each for each in words if each[0].isalpha() and self.counts[0].get(each[0].lower(), 0) < RARE]
        return [Occurrence(Term(word, targets), span) for word, span in rare if (targets := self._targets(word))]

    def _targets(self, word: str) -> tuple[str, ...]:
        """Returns the translations of a word, in the order of ``sense_order``; those of another form come with the word
        itself."""
        own = self.senses.get(word.lower())
        senses = own or self.senses.get(self._nearest(word.lower()), ())
        ordered = sorted(dict.fromkeys(senses), key=lambda text: sense_order(text, self.counts[1]))[:MOST_SENSES]
        return tuple(ordered if own or not ordered else [*ordered, word])

    def _nearest(self, word: str) -> str:
        """Finds the entry that differs from a word in the fewest letters at the end; "" if there is none."""
        alike = dict[str, int]()
        for length in range(max(len(word) - ENDING, BEGINNING), len(word) + 1):
            same = word[:length]
            of_same = self._words[bisect_left(self._words, same) : bisect_left(self._words, f"{same}\U0010ffff")]
            alike |= {each: len(word) + len(each) - 2 * length for each in of_same if len(each) <= length + ENDING}
        return min(alike, key=lambda each: (alike[each], len(each)), default="")

    @cached_property
    def _words(self) -> list[str]:
        return sorted(each for each in self.senses if each.isalpha())


def with_dictionary(translator: Translator, dictionary: str | Path) -> Translator:
    """Returns the translator with the entries of a dictionary of either direction for words that occur fewer than
    ``RARE`` times in its training corpus. Raises InputError if there is no training corpus, for a file that is no
    dictionary, and as ``with_glossary`` does."""
    tokenizers = translator.trained.tokenizers
    if isinstance(translator.terminology, GlossaryTerminology):
        raise InputError("--dictionary: cannot be had together with --glossary; leave one of them out")
    try:
        train = training_corpus(translator.trained)
    except InputError as error:
        raise InputError(f"--dictionary: counts the words of the training corpus: {error}") from None
    rows, senses = range(min(len(train), MOST_PAIRS)), defaultdict[str, list[str]](list)
    counts = [
        count_words(tokenizer.detokenize_batch([read(row).tolist() for row in rows]))
        for tokenizer, read in ((tokenizers.source, train.source), (tokenizers.target, train.target))
    ]
    for entry in read_entries(Path(dictionary), counts):
        senses[entry.source.lower()].append(entry.target)
    return with_glossary(translator, DictionaryTerms(senses, counts), max_loss=MAX_LOSS)
