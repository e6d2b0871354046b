"""Probabilities of given translations under one model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.batching import TokenIds
from nmt.data.context import BREAK, rows_of_sentences
from nmt.data.file_kinds import once
from nmt.data.vocabulary import EOS
from nmt.evaluation.perplexity import Prediction, predict, token_log_probs
from nmt.models.feed import Feed, TeacherForcing
from nmt.search.scoring import ranking_of
from nmt.translator.loading import TOO_LONG, TrainedModel
from nmt.translator.translation import Results


@dataclass(frozen=True)
class PairScore:
    """The probability of a translation under a model."""

    score: float
    """``log_prob`` divided by the length penalty."""
    log_prob: float
    """Natural logarithm of the probability, end-of-sentence included."""
    tokens: tuple[str, ...]
    """The subwords of the translation, end-of-sentence included."""
    token_log_probs: tuple[float, ...]
    """The log-probability of each subword, given the preceding ones."""

    def __repr__(self) -> str:
        return f"PairScore({self.score:.3f}, log_prob={self.log_prob:.3f}, {len(self.tokens)} tokens)"

    def _repr_html_(self) -> str:
        """Returns HTML for a notebook: the score, and the subwords, which are redder the less probable they are."""
        from nmt.core import notebook

        shares = [1 - math.exp(log_prob) for log_prob in self.token_log_probs]
        notes = [f"log-probability {notebook.figure(log_prob)}" for log_prob in self.token_log_probs]
        figures = [("score", notebook.figure(self.score)), ("log-probability", notebook.figure(self.log_prob))]
        return notebook.table([*figures, ("subwords", notebook.tinted(self.tokens, shares, notes))])


@dataclass(frozen=True)
class Scorer:
    """Scores given translations with one model."""

    trained: TrainedModel

    def score(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int = 1) -> Results[PairScore]:
        """Computes the probability of each target given its source, under teacher forcing. A pair that is too long
        (``TrainedModel.encode_pairs``) has NaN, without tokens. ``first_line`` is the number of the first pair. Raises
        InputError for different numbers of sources and targets."""
        pairs = self.trained.encode_pairs(sources, targets, first_line)
        trained, search = self.trained, self.trained.experiment.search
        rows = [row for row, pair in enumerate(pairs) if pair is not TOO_LONG]
        source_ids = trained.prefixed((pairs[row][0].ids for row in rows), (sources[row] for row in rows))
        ids = source_ids, [pairs[row][1].ids for row in rows]
        log_probs = token_log_probs(trained.model, *ids, trained.compute, batch_tokens=search.batch_tokens)
        ranking, scores = ranking_of(search), Results([PairScore(math.nan, math.nan, (), ())] * len(pairs))
        for row, log_p_T in zip(rows, log_probs, strict=True):
            target = pairs[row][1]
            log_prob = float(log_p_T.sum(dtype=np.float64))
            tokens = tuple(self.trained.tokenizers.target.pieces([*target.ids, EOS]))
            score = log_prob / ranking.penalty(len(tokens))
            scores[row] = PairScore(score, log_prob, tokens, tuple(log_p_T.tolist()))
        return scores

    def predict(self, sources: Sequence[str], targets: Sequence[str], feed: Feed | None = None) -> Prediction:
        """Computes loss, perplexity and accuracy of the model on given translations; pairs that are too long
        (``predict_ids``) do not count, nor blank ones if it was trained with context. The decoder reads the inputs that
        ``feed`` chooses; None means teacher forcing."""
        tokenizers, rows = self.trained.tokenizers, list(range(len(sources)))
        if tokenizers.source.control(BREAK) is not None:
            rows = rows_of_sentences(sources, targets)
            sources, targets = [sources[row] for row in rows], [targets[row] for row in rows]
        source_ids = self.trained.prefixed(map(tokenizers.source.encode, sources), sources)
        target_ids = [tokenizers.target.encode(text) for text in targets]
        return self.predict_ids(source_ids, target_ids, [f"line {row + 1}" for row in rows], feed)

    def predict_ids(
        self, sources: TokenIds, targets: TokenIds, names: Sequence[str], feed: Feed | None = None
    ) -> Prediction:
        """Computes the same of sentences as the model reads them: their prefixes and tokens. Pairs with more subwords
        on a side than training and search read, whose memory would grow with the square of the length, are left out,
        with a warning that has their ``names``. Raises InputError if no other is left."""
        trained, feed = self.trained, feed or TeacherForcing()
        data, search = trained.experiment.data, trained.experiment.search
        limit = max(data.filters.max_length, search.max_source_tokens)
        lengths = [max(map(len, sides)) for sides in zip(sources, targets, strict=True)]
        if long := [name for name, length in zip(names, lengths, strict=True) if length > limit]:
            more = f" and {len(long) - 10} more" if len(long) > 10 else ""
            text = f"{', '.join(long[:10])}{more}: left out of loss and accuracy: more than {limit} subwords on a side"
            if len(long) == len(lengths):
                raise InputError(f"{text}, and no other pair is left; split them")
            once(text, log.warning)
            rows = [row for row, length in enumerate(lengths) if length <= limit]
            sources, targets = [sources[row] for row in rows], [targets[row] for row in rows]
        return predict(trained.model, sources, targets, feed, trained.compute, batch_tokens=search.batch_tokens)
