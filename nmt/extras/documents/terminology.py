"""Translations that use the terms of a glossary, and keep the numbers of their sources.

Each sentence is translated freely first. Where that translation lacks a term of its source, the terms become
constraints of a second search: one variant of each, once for each time that it occurs (Post & Vilar 2018; see
``nmt.extras.decoding``). Another candidate is the free translation, in which the words that are aligned with a
missing term are replaced by it. The candidate with the best score is taken; a constrained one that costs too much is
left out. Numbers and addresses that were lost come from translations with digits in their place: see
``nmt.extras.documents.stand_ins``.

>>> import nmt
>>> from nmt.extras.documents.glossary import Glossary, Term
>>> from nmt.extras.documents.terminology import with_glossary
>>> translator = with_glossary(nmt.load("runs/de-en"), Glossary((Term("hund", ("hound", "hounds")),)))
>>> translator.translate("Der Hund bellt oft.").text  # such as "The hound often barks."
'...'
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby, repeat
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from nmt.alignment.request import AlignmentRequest
from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.number_words import WORDS, without_country
from nmt.data.tokenizer import MARK, Tokenizer
from nmt.data.vocabulary import UNK
from nmt.evaluation.perplexity import token_log_probs
from nmt.extras.decoding.phrases import shortest
from nmt.extras.documents.glossary import Glossary, Occurrence, Words, find_variants, read_glossary
from nmt.extras.documents.number_formats import read_formats, rewritten
from nmt.extras.documents.numbers import lost_items, may_count
from nmt.extras.documents.replacement import with_terms
from nmt.extras.documents.stand_ins import BEAM, searched, with_stand_ins
from nmt.search.config import SearchConfig, constrains
from nmt.search.engine import TorchEngine, has_given_words
from nmt.search.hypothesis import WORD_END, Constraint, Hypothesis
from nmt.search.scoring import ranking_of
from nmt.translator.translator import KEPT, Candidate, EncodedSentences, Translator, distinct

MAX_LOSS = 1.0
"""Maximum number of nats by which the log-probability per token of a constrained translation may be below that of the
free one."""

MAX_BEAM = 40
"""Maximum number of beams of a constrained search."""


class Terms(Protocol):
    """A glossary, or another source of terms."""

    def find(self, text: str) -> list[Occurrence]:
        """Finds the terms in a source text, from left to right and without overlap."""


def keep_numbers(
    translator: Translator, sentences: EncodedSentences, found: Sequence[list[Candidate]]
) -> list[list[Candidate]]:
    """Revises translations without a glossary; see ``Terminology``."""
    return GlossaryTerminology(Glossary(())).revised(translator, sentences, found)


def with_glossary(translator: Translator, glossary: Terms | str | Path, *, max_loss: float = MAX_LOSS) -> Translator:
    """Returns the translator with the terms of a glossary, or of a file with a glossary; ``max_loss`` is in nats per
    token. Raises InputError for an engine or a search that does not support constraints."""
    if not isinstance(translator.engine, TorchEngine):
        raise InputError("--glossary: needs a search with constraints; use --engine nmt")
    if (key := constrains(translator.search)) is not None:
        raise InputError(f"search.{key}: cannot be had together with a glossary; leave it at its default")
    if isinstance(glossary, str | Path):
        glossary = read_glossary(Path(glossary))
    return replace(translator, terminology=GlossaryTerminology(glossary, max_loss))


@lru_cache(maxsize=8)
def follow_words(tokenizer: Tokenizer, device: torch.device, last: str) -> Tensor:
    """Returns a mask of the tokens, in the order of ids, that may follow a word whose last character is ``last``:
    tokens with the mark U+2581, tokens of a vocabulary of whole words, and tokens that cannot be in one word with
    it, such as letters after a digit."""
    pieces = tokenizer.pieces(range(tokenizer.size))
    is_any = MARK not in pieces
    follows = [is_any or piece.startswith(MARK) or Words.of(last + piece).spans[0] == (0, 1) for piece in pieces]
    return torch.tensor(follows, device=device)


@dataclass(frozen=True)
class GlossaryTerminology:
    """Puts the terms of a glossary into translations; see ``nmt.translator.translator.Terminology``."""

    glossary: Terms
    max_loss: float = MAX_LOSS

    def revised(
        self, translator: Translator, sentences: EncodedSentences, found: Sequence[list[Candidate]]
    ) -> list[list[Candidate]]:
        """See ``Terminology``. All translations of a sentence have the terms: free ones, constrained ones and free ones
        with replaced words, best first. If only numbers were lost, translations that have them come before the free
        ones. Numbers get the format of the training pairs. Other engines and searches without constraints leave numbers
        as they are."""
        if not isinstance(translator.engine, TorchEngine) or constrains(translator.search) is not None:
            return list(found)
        formats = read_formats(translator.trained.run)
        found = self._with_terms(translator, sentences, found, formats)
        if not translator.search.numbers:
            return found
        changed: list[tuple[int, str]] = []
        has_given = has_given_words(len(found), sentences.prefixes, sentences.constraints)
        for row, source in enumerate(sentences.texts):
            if not KEPT.search(source) or has_given[row]:
                continue
            terms, free = self.glossary.find(source), [each.text for each in found[row]]
            # max gives the first of equals
            texts = [max(rewritten(source, text, formats), text, key=lambda each: _count(each, terms)) for text in free]
            if texts != free:
                changed += [(row, text) for text in texts]
        for row, candidates in _rescored(translator, sentences, changed).items():
            found[row] = distinct(candidates)
        return found

    def _with_terms(
        self, translator: Translator, sentences: EncodedSentences, found: Sequence[list[Candidate]],
        formats: Mapping[str, str],
    ) -> list[list[Candidate]]:  # fmt: skip
        """Finds translations with the terms and numbers; see ``revised``."""
        trained, engine = translator.trained, translator.engine
        assert isinstance(engine, TorchEngine)
        terms = [self.glossary.find(text) for text in sentences.texts]
        languages = trained.experiment.language_names or (None, translator.search.to)
        lost = partial(_lost, translator.search, languages, formats)
        has_given = has_given_words(len(found), sentences.prefixes, sentences.constraints)
        numbers = list(map(lost, sentences.texts, found, terms, repeat(False), has_given))
        occurrences = [[*of_glossary, *(lost or ())] for of_glossary, lost in zip(terms, numbers, strict=True)]
        lacking = {
            row: of_sentence
            for row, of_sentence in enumerate(occurrences)
            if numbers[row] is not None or not all(_has_all(text, of_sentence) for text, _ in found[row])
        }
        if not lacking:
            return list(found)
        last = "a" if any(terms[row] for row in lacking) else "1"
        follows_word_V = follow_words(trained.tokenizers.target, trained.compute.device, last)
        translator = replace(translator, engine=replace(engine, follows_word_V=follows_word_V))
        found = list(found)
        rows = [
            row for row in lacking if not has_given[row]
        ]  # a replacement could remove words of a prefix or constraint
        spelt = {row: of_row for row, of_row in lacking.items() if terms[row] or row not in rows}
        constrained = self._constrained(translator, sentences, spelt)
        rejected = [(row, each) for row in rows for each in found[row] if not _has_all(each.text, lacking[row])]
        replaced = _replaced(translator, sentences, rejected, occurrences)
        standing = defaultdict[int, list[Candidate]](list)
        for forced in (None, "digits", "words"):
            left = {
                row: lost(sentences.texts[row], found[row], terms[row], forced is not None) or []
                for row in rows
                if numbers[row] is not None
                and all(_wrong(sentences.texts[row], text, languages) for text, _ in standing[row])
            }
            through_digits = dict.fromkeys(with_stand_ins(translator, sentences, left, languages[1], forced))
            for row, candidates in _rescored(translator, sentences, list(through_digits)).items():
                standing[row] += candidates
        for row, of_row in lacking.items():
            free, others = found[row], [*constrained.get(row, ()), *replaced[row]]
            if all(_has_all(text, terms[row]) for text, _ in free):
                others += standing[row]
                found[row] = _with_numbers(sentences.texts[row], languages, terms[row], free, others)
            else:
                found[row] = self._best(free, constrained[row], replaced[row], of_row)
            found[row] = found[row][: translator.search.n_best]
            if not _has_all(found[row][0].text, of_row):
                log.detail(f"a term or number has no place: {found[row][0].text}")
        return found

    def _constrained(
        self, translator: Translator, sentences: EncodedSentences, occurrences: Mapping[int, Sequence[Occurrence]]
    ) -> dict[int, list[Candidate]]:
        """Finds translations with the terms that the vocabulary can spell, and with the constraints of the sentences,
        by the indices of the sentences; as many as there are beams."""
        own = [()] * len(sentences.ids) if sentences.constraints is None else sentences.constraints
        constraints = {row: _constraints(translator, of_row, own[row]) for row, of_row in occurrences.items()}
        found: dict[int, list[Candidate]] = {row: [] for row in occurrences}
        ranking, capped = map(ranking_of, (translator.search, translator.search.with_given_words()))
        beams = {row: _beam(of_row, translator.search.beam) for row, of_row in constraints.items() if of_row}
        for beam, group in groupby(sorted(beams, key=lambda row: (beams[row], row)), key=beams.__getitem__):
            rows = list(group)
            part = replace(sentences.only(rows), constraints=[(*own[row], *constraints[row]) for row in rows])
            search = translator.search.model_copy(update={"beam": beam, "n_best": beam})
            for row, ranked in zip(rows, searched(translator, part, search), strict=True):
                for text, each in ranked:  # with a smaller length penalty than free ones
                    log_prob, length = each.log_prob, len(each.tokens) + 1
                    more = ranking.score(log_prob, length) - capped.score(log_prob, length)
                    found[row].append(Candidate(text, replace(each, score=each.score + more)))
        return found

    def _best(
        self,
        free: Sequence[Candidate],
        constrained: Sequence[Candidate],
        replaced: Sequence[Candidate],
        occurrences: Sequence[Occurrence],
    ) -> list[Candidate]:
        """Selects the translations with all terms that do not cost too much, best first; if there are none, of those
        within twice ``MAX_LOSS`` the one with the most terms."""

        def within(loss: float) -> list[Candidate]:
            return [each for each in constrained if _per_token(each[1]) >= _per_token(free[0][1]) - loss]

        ranked = sorted([*free, *within(self.max_loss), *replaced], key=lambda each: -each.hypothesis.score)
        best = distinct(each for each in ranked if _has_all(each.text, occurrences))
        # max gives the first of equals
        return best or [max([free[0], *within(2 * MAX_LOSS)], key=lambda each: _count(each.text, occurrences))]


def _lost(
    search: SearchConfig, languages: Sequence[str | None], formats: Mapping[str, str], source: str,
    ranked: Sequence[Candidate], terms: Sequence[Occurrence], is_all: bool = False, has_given: bool = False,
) -> list[Occurrence] | None:  # fmt: skip
    """Finds what the best translation of a source has lost, outside of terms; or all that it should have, if ``is_all``
    or it has no given words, but a number that is not in the source, nor one of its words; nothing if it should have
    none, and None if all is right. Markup has its own way of keeping it."""
    if not search.numbers or search.markup or not ranked:
        return None
    lost, spans = lost_items(source, ranked[0].text, languages, formats), [span for _, span in terms]
    has_words = without_country(languages[0]) in WORDS
    invented = _invented(source, ranked[0].text, languages) if has_words and not (has_given or lost) else []
    if is_all or invented:
        lost = lost_items(source, "", languages, formats, articles=True)
    outside = [each for each in lost if not any(begin < each.span[1] and each.span[0] < end for begin, end in spans)]
    # a code, such as DEC2BIN, may be the name of something
    has_number = not lost and not all(each.term.source[0].isalpha() for each in invented)
    return outside if outside or (has_number and not may_count(source, languages[0])) else None


def _with_numbers(
    source: str, languages: tuple[str | None, ...], terms: Sequence[Occurrence],
    free: Sequence[Candidate], others: Sequence[Candidate],
) -> list[Candidate]:  # fmt: skip
    """Puts those other translations first that have the terms and fewer wrong numbers than the best free one, sorted by
    how many, by how many may be wrong, and by their scores."""

    def wrong(each: Candidate) -> int:
        return _wrong(source, each.text, languages)

    def rank(each: Candidate) -> tuple[int, int, float]:  # a 1 that may translate an article comes second
        return wrong(each), len(_invented(source, each.text, languages, articles=True)), -each.hypothesis.score

    kept = [each for each in others if wrong(each) < wrong(free[0]) and _has_all(each.text, terms)]
    return distinct([*sorted(kept, key=rank), *free])


@lru_cache(maxsize=1 << 10)
def _wrong(source: str, text: str, languages: tuple[str | None, ...]) -> int:
    """Counts what a translation has lost, and what its source does not have."""
    return len(lost_items(source, text, languages)) + len(_invented(source, text, languages))


def _invented(source: str, text: str, languages: Sequence[str | None], *, articles: bool = False) -> list[Occurrence]:
    """Finds what a translation has and its source does not, with ``articles`` also a 1 that may translate one."""
    return lost_items(text, source, languages[::-1], said=True, articles=articles)


def _constraints(
    translator: Translator, occurrences: Sequence[Occurrence], others: Sequence[Constraint]
) -> tuple[Constraint, ...]:
    """Encodes the variants of each term for which the model's subwords can spell any. The end of a word follows them,
    unless a phrase, including ``others``, begins within a word for the vocabulary."""
    encode = translator.trained.tokenizers.target.encode
    spelt = [[tuple(encode(text)) for text in occurrence.term.spellings] for occurrence in occurrences]
    known = (tuple(dict.fromkeys(ids for ids in of_term if ids and UNK not in ids)) for of_term in spelt)
    constraints = tuple(constraint for constraint in known if constraint)
    assert isinstance(translator.engine, TorchEngine)
    follows_word_V = translator.engine.follows_word_V
    assert follows_word_V is not None
    begins = [phrase[0] for constraint in (*constraints, *others) for phrase in constraint]
    if not follows_word_V[begins].all():
        return constraints
    return tuple(tuple((*phrase, WORD_END) for phrase in constraint) for constraint in constraints)


def _beam(constraints: Sequence[Constraint], beam: int) -> int:
    """Computes a number of beams with a share for each count of met subwords."""
    subwords = sum(map(shortest, constraints))
    return max(beam, min(BEAM * (1 + subwords // BEAM), MAX_BEAM))


def _per_token(hypothesis: Hypothesis) -> float:
    """Computes the mean log-probability of a token, end-of-sentence included."""
    return hypothesis.log_prob / (len(hypothesis.tokens) + 1)


def _count(text: str, occurrences: Sequence[Occurrence]) -> int:
    """Counts the terms that a translation contains."""
    return sum(span is not None for span in find_variants(text, [occurrence.term for occurrence in occurrences]))


def _has_all(text: str, occurrences: Sequence[Occurrence]) -> bool:
    return _count(text, occurrences) == len(occurrences)


def _replaced(
    translator: Translator,
    sentences: EncodedSentences,
    rejected: Sequence[tuple[int, Candidate]],
    occurrences: Sequence[Sequence[Occurrence]],
) -> dict[int, list[Candidate]]:
    """Replaces the words aligned with a term by the term in free translations of sentences, which are given by their
    indices. Returns the results by these indices, with their scores under the model, or the first model of an ensemble;
    none for a translation in which a term is aligned with no word."""
    trained, limit = translator.trained, translator.search.max_source_tokens
    encode = trained.tokenizers.target.encode
    aligned = [
        (row, text)
        for row, (text, hypothesis) in rejected
        if max(len(sentences.ids[row]), len(hypothesis.tokens), len(encode(text))) < limit  # not cut
    ]
    request = AlignmentRequest(translator.aligner.methods[0])
    sources, targets = [sentences.texts[row] for row, _ in aligned], [text for _, text in aligned]
    alignments = translator.aligner.align([request], sources, targets, text=True)[request]
    texts = [
        (row, changed)
        for (row, text), alignment in zip(aligned, alignments, strict=True)
        if (changed := with_terms(text, occurrences[row], alignment)) is not None
    ]
    return _rescored(translator, sentences, texts)


def _rescored(
    translator: Translator, sentences: EncodedSentences, texts: Sequence[tuple[int, str]]
) -> dict[int, list[Candidate]]:
    """Gives translations of sentences, which have the indices of these, their scores under the model, or the first
    model of an ensemble."""
    trained, rescored = translator.trained, defaultdict[int, list[Candidate]](list)
    encode = trained.tokenizers.target.encode
    source_ids, ids = [sentences.ids[row] for row, _ in texts], [encode(text) for _, text in texts]
    batch_tokens = translator.search.batch_tokens
    log_probs = token_log_probs(trained.model, source_ids, ids, trained.compute, batch_tokens=batch_tokens)
    ranking = ranking_of(translator.search)
    for (row, text), tokens, log_p_T in zip(texts, ids, log_probs, strict=True):
        log_prob = float(log_p_T.sum(dtype=np.float64))
        hypothesis = Hypothesis(tuple(tokens), log_prob, ranking.score(log_prob, len(log_p_T)))
        rescored[row].append(Candidate(text, hypothesis))
    return rescored
