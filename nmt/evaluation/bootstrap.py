"""Confidence of corpus-level scores: the paired and the plain bootstrap over sentences (Koehn 2004).

A resample draws N sentences with replacement from the N of the corpus. A score varies over many resamples as it would
over other test sets of that kind and size. BLEU, chrF and TER are functions of sums over the sentences (n-gram matches,
lengths, edits), so all resamples together take one matrix product, times_RN @ counts_NK: the times that each resample
has each sentence, by the counts of sacreBLEU in it. Counts, formula, draws and default seed are sacreBLEU's own, so the
figures are those of `sacrebleu --confidence` and `sacrebleu --paired-bs`, but in a fraction of their time; only the
interval differs (see `interval`). Any other rate that is a function of such sums, such as the alignment error rate, can
use `resampled_sums` and `percentile_interval`.

Shapes: N sentences, R resamples, K counts of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nmt.data.bleu_tokenizer import bleu_tokenizer
from nmt.evaluation.translation import prepare, sacrebleu_metric

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

RESAMPLES = 1000
SEED = 12345
"""Default seed, which is sacreBLEU's."""

_MAX_ELEMENTS = 1 << 21
"""Number of elements of times_RN in memory at a time."""


@dataclass(frozen=True)
class SentenceCounts:
    """The sufficient statistics of a corpus-level score."""

    metric: Metric
    counts_NK: npt.NDArray[np.float64]

    def select(self, rows: npt.NDArray[np.integer]) -> SentenceCounts:
        """Returns the counts of some of the sentences."""
        return SentenceCounts(self.metric, self.counts_NK[rows])

    def score(self) -> float:
        """Computes the score of the corpus like sacreBLEU's `corpus_score`."""
        return self._score(self.counts_NK.sum(axis=0).tolist())

    def resampled(self, *, resamples: int = RESAMPLES, seed: int = SEED) -> npt.NDArray[np.float64]:
        """Computes the score of each resample. Equal seeds draw equal sentences from corpora of equal size."""
        sums = resampled_sums(self.counts_NK, resamples=resamples, seed=seed)
        return np.array([self._score(sum_K) for sum_K in sums.tolist()])

    def _score(self, sum_K: list[float]) -> float:
        return float(self.metric._compute_score_from_stats(sum_K).score)


@dataclass(frozen=True)
class Estimate:
    """A score and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PairedComparison:
    """Two systems on the same sentences."""

    score_a: float
    score_b: float
    low: float
    """Lower end of the 95 % interval of the difference; ``high`` is its upper end."""
    high: float
    p_value: float
    """The p-value of the difference; see `compare`."""

    @property
    def difference(self) -> float:
        """The score of a minus the score of b."""
        return self.score_a - self.score_b

    @property
    def significant(self) -> bool:
        """Returns True if the interval does not contain 0, which is a two-sided test at 5 %."""
        return self.low > 0.0 or self.high < 0.0


def sentence_counts(
    hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]], *, metric: str = "bleu",
    lowercase: bool = False, tokenize: str | None = None,
) -> SentenceCounts:  # fmt: skip
    """Computes the counts of sacreBLEU in each sentence. Arguments and errors are the same as of
    `translation.scores`."""
    lines = prepare(hypotheses, references)
    counter = sacrebleu_metric(metric, lowercase=lowercase, tokenize=tokenize or bleu_tokenizer(lines.references))
    counts_NK = counter._extract_corpus_statistics(lines.hypotheses, lines.references)
    return SentenceCounts(counter, np.array(counts_NK, dtype=np.float64))


def interval(counts: SentenceCounts, *, resamples: int = RESAMPLES, seed: int = SEED) -> Estimate:
    """Computes the score with its percentile interval: from the 2.5th to the 97.5th percentile of the resamples'
    scores.

    Unlike sacreBLEU's mean ± half a width, it need not be symmetric, and its ends are within the range of the scores.
    """
    return Estimate(counts.score(), *percentile_interval(counts.resampled(resamples=resamples, seed=seed)))


def compare(a: SentenceCounts, b: SentenceCounts, *, resamples: int = RESAMPLES, seed: int = SEED) -> PairedComparison:
    """Compares two systems on the same resamples: the difference of their scores, with its percentile interval.

    The p-value is that of `sacrebleu --paired-bs` (which has it from Moses): with d_r the difference on resample r,

        p = (1 + #{r: |d_r| - mean|d| > |a - b|}) / (1 + R)

    except that p is 1 for systems that differ on no resample. If the difference is clear, it counts one of the two
    tails, as in Koehn's own test: p < 0.025 then corresponds to `significant`.
    """
    if len(a.counts_NK) != len(b.counts_NK):
        raise ValueError(f"{len(a.counts_NK)} sentences of one system, {len(b.counts_NK)} of the other")
    score_a, score_b = a.score(), b.score()
    difference_R = a.resampled(resamples=resamples, seed=seed) - b.resampled(resamples=resamples, seed=seed)
    low, high = percentile_interval(difference_R)
    distance_R = np.abs(difference_R)
    greater = int(np.sum(distance_R - distance_R.mean() > abs(score_a - score_b))) if distance_R.any() else resamples
    return PairedComparison(score_a, score_b, low, high, (1 + greater) / (1 + resamples))


def resampled_sums(
    counts_NK: npt.NDArray[np.float64], *, resamples: int = RESAMPLES, seed: int = SEED
) -> npt.NDArray[np.float64]:
    """Computes the sums of the counts over each resample, (R, K). There must be at least one sentence."""
    return np.concatenate([times_RN @ counts_NK for times_RN in _draws(len(counts_NK), resamples, seed)])


def percentile_interval(values_R: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Computes the interval from the 2.5th to the 97.5th percentile of a figure's values on all resamples."""
    low, high = np.percentile(values_R, (2.5, 97.5))
    return float(low), float(high)


def _draws(sentences: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yields the number of times that each resample contains each sentence, (R, N), for some resamples at a time."""
    random = np.random.default_rng(seed)
    most = max(_MAX_ELEMENTS // sentences, 1)
    for begin in range(0, resamples, most):
        rows = min(most, resamples - begin)
        drawn_RN = random.choice(sentences, size=(rows, sentences))
        drawn_RN += sentences * np.arange(rows)[:, None]
        yield np.bincount(drawn_RN.ravel(), minlength=rows * sentences).reshape(rows, sentences)
