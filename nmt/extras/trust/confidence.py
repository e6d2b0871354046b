"""The confidence of translations: the probability that each is right, its doubtful words, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from nmt.core.errors import InputError
from nmt.data.sentences import UNPRINTABLE
from nmt.data.words import is_punctuation, successive
from nmt.extras.trust.calibration import Calibration, check_language, load
from nmt.extras.trust.checks import one_sided, repetition
from nmt.extras.trust.logistic import sigmoid
from nmt.extras.trust.signals import PairSignals, pair_signals
from nmt.search.engine import TorchEngine
from nmt.translator.loading import TrainedModel
from nmt.translator.source_language import SUSPICIOUS
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator

DOUBTFUL = 0.5
"""Probability below which a word is doubtful, a source word untranslated, or a target word unsupported."""
IMPROBABLE = 0.1
"""Probability of being right below which a source with rare subwords may be in another language."""
MIN_COPIED = 3
"""Least number of words of a translation that is suspicious if it equals its source."""
MARK = "[?] "
"""The beginning of a translation that is rejected."""


class TargetWord(NamedTuple):
    """A word of a translation."""

    text: str
    right: float
    """Probability that a reference translation has it, too."""
    supported: float
    """Probability that something in the source supports it."""


class SourceWord(NamedTuple):
    """A word of a source."""

    text: str
    translated: float
    """Probability that it is translated."""


@dataclass(frozen=True)
class Confidence:
    """The confidence of a translation, in probabilities."""

    right: float
    """Probability that its chrF to a reference is at least 60."""
    complete: float
    """Probability that nothing of the source is left out."""
    supported: float
    """Probability that nothing is added or replaced."""
    words: tuple[TargetWord, ...]
    source_words: tuple[SourceWord, ...]
    reasons: tuple[str, ...]
    """Reasons to look at it, in English."""
    is_rejected: bool = False

    def tree(self) -> dict[str, Any]:
        """Returns the values for JSON; a word is a list of its text and its probabilities."""
        return {
            **{name: round(getattr(self, name), 4) for name in ("right", "complete", "supported")},
            "rejected": self.is_rejected,
            "reasons": self.reasons,
            "words": [[text, round(right, 3), round(supported, 3)] for text, right, supported in self.words],
            "source_words": [[text, round(translated, 3)] for text, translated in self.source_words],
        }


@dataclass(frozen=True)
class ConfidenceSelection:
    """What is done with translations by their confidence."""

    reject_below: float = 0.0
    """Probability below which a translation is rejected."""
    leaves_source: bool = False
    """A rejected line is left in the source; otherwise ``MARK`` stands before its translation."""
    chooses: bool = False
    """Of the translations of a line only the most confident is kept."""


@dataclass(frozen=True)
class ConfidenceEstimator:
    """Estimates the confidence of translations; see ``nmt.translator.confidence.Estimator``."""

    calibration: Calibration
    selection: ConfidenceSelection

    def with_confidence(
        self, trained: TrainedModel, sources: Sequence[str], ranked: Sequence[tuple[Translation, ...]]
    ) -> list[tuple[Translation, ...]]:
        """Adds the confidence to each translation, chooses and rejects. A line of several parts is as sure as the least
        sure of them. Lines without letters have no confidence, and are not rejected."""
        parts = [part for of_source in ranked for one in of_source for part in one.parts]
        found = iter(self.of_pairs(trained, [source for source, _ in parts], [target for _, target in parts]))
        judged = [
            tuple(self._applied(source, one, found) for one in of_source)
            for source, of_source in zip(sources, ranked, strict=True)
        ]
        if not self.selection.chooses:
            return judged
        return [(max(row, key=lambda one: 0.0 if one.confidence is None else one.confidence.right),) for row in judged]

    def of_pairs(
        self, trained: TrainedModel, sources: Sequence[str], targets: Sequence[str], first_line: int = 1
    ) -> list[Confidence | None]:
        """Estimates the confidence of given translations; None for a source without letters. A translation that is
        blank, or a pair that is too long, has confidence 0."""
        check_language(self.calibration, trained)  # it may have changed since
        sources = [source if any(map(str.isalpha, source)) else "" for source in sources]
        found = pair_signals(trained, self.calibration.lexicon, sources, targets, first_line)
        known = iter(self._of_signals(trained, [signals for signals in found if signals is not None]))
        return [
            next(known) if signals is not None else _unjudged(target) if source else None
            for signals, source, target in zip(found, sources, targets, strict=True)
        ]

    def _of_signals(self, trained: TrainedModel, pairs: Sequence[PairSignals]) -> Iterator[Confidence]:
        if not pairs:
            return
        calibration, words = self.calibration, self.calibration.words(pairs)
        odds = calibration.sentences(np.stack([*map(calibration.sentence_features, pairs, words)]))
        of_sentences = (sigmoid(odds_N).tolist() for odds_N in odds)
        for pair, of_words, right, complete, supported in zip(pairs, words, *of_sentences, strict=True):
            right_I, supported_I, translated_J = (sigmoid(odds).tolist() for odds in of_words)
            reasons = list(_reasons(pair, translated_J, supported_I, calibration.languages))
            if right < IMPROBABLE and trained.language_check.relative_cost_of(pair.source.text) >= SUSPICIOUS:
                reasons.insert(0, "the source may be in another language")
            target = tuple(map(TargetWord, pair.target.words, right_I, supported_I))
            source = tuple(map(SourceWord, pair.source.words, translated_J))
            yield Confidence(right, complete, supported, target, source, tuple(reasons))

    def _applied(self, source: str, one: Translation, found: Iterator[Confidence | None]) -> Translation:
        """Adds the joint confidence of the parts, which come next, and rejects a translation if this is too low."""
        known = [each for each in islice(found, len(one.parts)) if each is not None]
        if not known:
            return one
        confidence = _joint(known)
        if confidence.right >= self.selection.reject_below:
            return replace(one, confidence=confidence)
        kept = source.translate(dict.fromkeys(map(ord, UNPRINTABLE), " "))
        text = kept if self.selection.leaves_source else MARK + one.text
        return replace(one, text=text, confidence=replace(confidence, is_rejected=True))


def _joint(parts: Sequence[Confidence]) -> Confidence:
    least = (min(getattr(part, name) for part in parts) for name in ("right", "complete", "supported"))
    lists = ([getattr(part, name) for part in parts] for name in ("words", "source_words", "reasons"))
    return Confidence(*least, *(tuple(chain.from_iterable(of_parts)) for of_parts in lists))


def _reasons(
    pair: PairSignals, translated_J: Sequence[float], supported_I: Sequence[float], languages: Sequence[str]
) -> Iterator[str]:
    """Lists what is doubtful about a translation."""
    source, target = pair.source.words, pair.target.words
    for first, last in _doubtful_runs(source, translated_J):
        many = f"source words {first + 1} to {last + 1} are" if last > first else f"source word {first + 1} is"
        yield f"{many} not translated: {' '.join(source[first : last + 1])}"
    for first, last in _doubtful_runs(target, supported_I):
        yield f"no source word supports: {' '.join(target[first : last + 1])}"
    for side, facts in zip(("source", "translation"), one_sided(source, target, languages), strict=True):
        if facts:
            yield f"only in the {side}: {', '.join(facts)}"
    if (repeated := repetition(source, target)) is not None:
        yield f"repeated: {' '.join(target[index] for index in repeated)}"
    if len(target) >= MIN_COPIED and list(source) == list(target):
        yield "the translation is the source"


def _doubtful_runs(words: Sequence[str], p_I: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Finds the first and last words of runs of doubtful words, without punctuation."""
    pairs = enumerate(zip(words, p_I, strict=True))
    doubtful = (index for index, (word, p) in pairs if p < DOUBTFUL and not is_punctuation(word))
    return ((begin, end - 1) for begin, end in successive(doubtful))


def _unjudged(target: str) -> Confidence:
    reason = "a side is too long to be judged" if target.strip() else "the translation is blank"
    return Confidence(0.0, 0.0, 0.0, (), (), (reason,))


def with_confidence(translator: Translator, selection: ConfidenceSelection | bool) -> Translator:
    """Returns the translator with an estimator of confidence, which may reject translations. Raises InputError for a
    run that is not calibrated, for an ensemble, and for another engine than nmt's own."""
    trained, engine = translator.trained, translator.engine
    if not isinstance(engine, TorchEngine) or engine.model is not trained.model:
        raise InputError("--confidence: is for one model and the search of nmt; use --engine nmt without --ensemble")
    estimator = ConfidenceEstimator(load(trained), ConfidenceSelection() if isinstance(selection, bool) else selection)
    return replace(translator, estimator=estimator)
