"""What was measured of each system, read back, with the seeds of a system put together.

Seeds are pooled: of each sentence BLEU's and chrF's counts are added up over the seeds' translations, so the score is
that of all translations as one corpus, and a bootstrap over sentences stays one over sentences. Perplexities are
averaged as losses are, all else as it stands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from comparison.measure import METHODS
from comparison.systems import BASELINE, Resolved, System
from comparison.work import Case, Comparison
from nmt.data.corpus import read_lines
from nmt.evaluation.bootstrap import Estimate, PairedComparison, SentenceCounts, compare, interval, sentence_counts
from nmt.evaluation.by_length import LengthScores, as_tree, by_length
from nmt.training import metrics

EDGES = (10, 15, 20)
"""Source words: where the buckets end."""


@dataclass(frozen=True)
class Corpus:
    """What was translated."""

    sources: Sequence[str]
    references: Sequence[str]


@dataclass(frozen=True)
class Speed:
    """What training took of one CPU thread."""

    updates: float
    cpu_minutes: float
    """Import, reading and validation included."""
    is_whole: bool
    """Whether ``cpu_minutes`` is all: a start that was killed together with this program is not counted."""
    tokens_per_second: float
    """Target tokens for each CPU second of updates."""


@dataclass(frozen=True)
class Perplexity:
    """Of the references."""

    forced: float
    """While the model reads the reference."""
    free: float
    """While it reads its own most probable words."""


@dataclass(frozen=True)
class Result:
    """One system, all its seeds together."""

    system: System
    seeds: tuple[int, ...]
    bleu: SentenceCounts
    chrf: SentenceCounts
    bleu_estimate: Estimate
    chrf_estimate: Estimate
    bleu_of_seeds: tuple[float, ...]
    greedy_bleu: float
    perplexity: Perplexity
    entropy: float | None
    """Bits; None: it has no attention."""
    error_rates: Mapping[str, Mapping[str, float]]
    """AER in per cent by the source of the soft alignment, then by the rule that reads links off it."""
    speed: Speed
    parameters: int
    precision: str
    """Of the matrix products, in training and in use."""
    signatures: tuple[str, ...]
    """sacreBLEU's, of BLEU and chrF2."""
    lengths: tuple[LengthScores, ...]
    curve: tuple[tuple[float, float], ...]
    """CPU minutes and perplexity in training, of the first seed."""
    to_baseline: PairedComparison | None = None
    """Its BLEU against the baseline's; None: it is the baseline, or there is none."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Of the baseline: what it is called in each group, the ``softmax`` of the weights."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is the base configuration itself."""
        return self.system.group == BASELINE

    def name(self, group: str) -> str:
        """What it is called among the systems of a group."""
        return self.names.get(group, self.system.name)

    def tree(self) -> dict[str, Any]:
        """For JSON, not rounded."""
        return {
            "system": self.system.key,
            "overrides": self.system.overrides,
            "seeds": self.seeds,
            "BLEU": vars(self.bleu_estimate),
            "BLEU_to_baseline": None if self.to_baseline is None else vars(self.to_baseline),
            "BLEU_of_seeds": self.bleu_of_seeds,
            "BLEU_greedy": self.greedy_bleu,
            "chrF2": vars(self.chrf_estimate),
            "perplexity": {"teacher_forcing": self.perplexity.forced, "free_running": self.perplexity.free},
            "entropy_bits": self.entropy,
            "alignment_error_rate": self.error_rates,
            "updates": self.speed.updates,
            "cpu_minutes": self.speed.cpu_minutes,
            "cpu_minutes_are_whole": self.speed.is_whole,
            "target_tokens_per_cpu_second": self.speed.tokens_per_second,
            "parameters": self.parameters,
            "precision": self.precision,
            "signatures": self.signatures,
            "by_length": as_tree(self.lengths),
        }


@dataclass(frozen=True)
class Missing:
    """A system without figures, and why."""

    system: System
    reason: str


def gather(
    comparison: Comparison, resolved: Sequence[Resolved], seeds: Sequence[int], names: Mapping[str, str], corpus: Corpus
) -> tuple[list[Result], list[Missing]]:
    """The results of all systems that have all their seeds measured, in order, and the others; ``names`` are the
    baseline's in the groups."""
    results, missing = [], []
    for each in resolved:
        if each.fault is not None:
            missing.append(Missing(each.system, f"not available: {each.fault}"))
        elif each.trainable:
            cases = [comparison.case(each.system, seed) for seed in seeds]
            if all(case.is_measured() for case in cases):
                results.append(pool(cases, corpus))
            else:
                missing.append(Missing(each.system, "; ".join(_why(case) for case in cases if not case.is_measured())))
    return against_baseline(results, names), missing


def pool(cases: Sequence[Case], corpus: Corpus) -> Result:
    """The result of one system's seeds."""
    folders = [case.training.folder / case.comparison.split for case in cases]
    figures = [json.loads((folder / "figures.json").read_text(encoding="utf-8")) for folder in folders]
    translations = [list(read_lines(folder / "translations.txt")) for folder in folders]
    bleu = pooled([sentence_counts(each, corpus.references, metric="bleu") for each in translations])
    chrf = pooled([sentence_counts(each, corpus.references, metric="chrf") for each in translations])
    return Result(
        system=cases[0].system,
        seeds=tuple(case.seed for case in cases),
        bleu=bleu,
        chrf=chrf,
        bleu_estimate=interval(bleu),
        chrf_estimate=interval(chrf),
        bleu_of_seeds=tuple(each["bleu"] for each in figures),
        greedy_bleu=_mean([each["bleu_greedy"] for each in figures]),
        perplexity=Perplexity(*(_perplexity(figures, feed) for feed in ("teacher_forcing", "free_running"))),
        entropy=_mean([each["entropy"] for each in figures]) if "entropy" in figures[0] else None,
        error_rates={
            method: {rule: _mean([each["error_rates"][method][rule] for each in figures]) for rule in rules}
            for method, rules in figures[0].get("error_rates", {}).items()
        },
        speed=_speed(cases, figures),
        parameters=figures[0]["parameters"],
        precision=figures[0]["precision"],
        signatures=tuple(figures[0]["signatures"]),
        lengths=length_scores(corpus, translations[0], bleu, chrf),
        curve=_curve(cases[0]),
    )


def against_baseline(results: Sequence[Result], names: Mapping[str, str]) -> list[Result]:
    """The results with each one's difference to the baseline, and the baseline with its names in the groups."""
    baseline = next((each for each in results if each.is_baseline), None)
    if baseline is None:
        return list(results)
    return [
        replace(each, names=names) if each is baseline else replace(each, to_baseline=compare(each.bleu, baseline.bleu))
        for each in results
    ]


def longer(corpus: Corpus, words: int) -> np.ndarray:
    """True for the sentences whose source has more words."""
    return np.array([len(source.split()) > words for source in corpus.sources])


def soft_alignments(case: Case) -> tuple[str, Path] | None:
    """By what method, and the file of the gold pairs' alignments: attention where there is some, else gradients. None
    where no gold pairs were given."""
    folder = case.training.folder / case.comparison.split
    files = [(method, folder / f"{method}.jsonl") for method in METHODS]
    return next(((method, file) for method, file in files if file.exists()), None)


def _why(case: Case) -> str:
    reason = case.failure.read_text(encoding="utf-8").strip() if case.failure.exists() else case.state
    return f"seed {case.seed}: {reason}"


def pooled(seeds: Sequence[SentenceCounts]) -> SentenceCounts:
    """Of the translations of several seeds: each sentence's counts added up."""
    return SentenceCounts(seeds[0].metric, np.sum([each.counts_NK for each in seeds], axis=0))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _perplexity(figures: Sequence[Mapping[str, Any]], feed: str) -> float:
    return math.exp(_mean([math.log(each[feed]["perplexity"]) for each in figures]))


def _speed(cases: Sequence[Case], figures: Sequence[Mapping[str, Any]]) -> Speed:
    costs = [cost for case in cases if (cost := case.training.cost()) is not None]
    speeds = []
    for cost, each in zip(costs, figures, strict=True):
        seconds = cost.seconds - len(cost.starts) * (cost.fixed_seconds or 0.0)
        if not cost.complete and cost.seconds_per_update is not None:  # what was calibrated is the best that is known
            seconds = cost.updates * cost.seconds_per_update
        speeds.append(each["tokens"] / seconds)
    return Speed(
        updates=_mean([cost.updates for cost in costs]),
        cpu_minutes=_mean([cost.seconds / 60 for cost in costs]),
        is_whole=all(cost.complete for cost in costs),
        tokens_per_second=_mean(speeds),
    )


def length_scores(
    corpus: Corpus, translations: Sequence[str], bleu: SentenceCounts, chrf: SentenceCounts
) -> tuple[LengthScores, ...]:
    """The buckets of one seed, with the scores of all."""
    words_N = np.array([len(source.split()) for source in corpus.sources])
    buckets = []
    for bucket in by_length(corpus.sources, translations, corpus.references, edges=EDGES, resamples=1):
        last = words_N.max() if bucket.last is None else bucket.last
        rows = np.flatnonzero((words_N >= bucket.first) & (words_N <= last))
        estimates = interval(bleu.select(rows)), interval(chrf.select(rows))
        buckets.append(LengthScores(bucket.first, bucket.last, bucket.sentences, *estimates))
    return tuple(buckets)


def _curve(case: Case) -> tuple[tuple[float, float], ...]:
    cost = case.training.cost()
    assert cost is not None
    per_update = cost.seconds / cost.updates / 60  # start and validation spread evenly
    lines = metrics.read(case.training.run)
    return tuple((each["update"] * per_update, each["perplexity"]) for each in lines if each["kind"] == "train")
