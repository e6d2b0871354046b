"""The questions that the comparison is made for, answered in words from its numbers.

Two systems differ where the paired bootstrap over sentences says so: where the 95 % interval of their difference leaves
0 out. Otherwise the difference is called noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comparison.results import Corpus, Result, longer
from nmt.evaluation.bootstrap import SEED, PairedComparison, SentenceCounts, compare

LONG = 15
"""Source words beyond which a sentence is called long."""

HARD = ("hard", "hard_drawn", "hard_marginal", "gumbel", "argmax", "glimpse")
"""Weights that look at one place."""


def answers(results: Sequence[Result], corpus: Corpus) -> list[str]:
    """Markdown, a heading and paragraphs for each question that the results can answer."""
    baseline = next((each for each in results if each.is_baseline), None)
    if baseline is None:
        return ["Without the baseline among the systems nothing is compared."]
    groups = {name: [each for each in results if each.system.group == name] for name in ("context", "feeding")}
    lines = []
    if groups["context"]:
        lines += [
            "### Does attention help, and more on long sentences?",
            "",
            *_attention(baseline, groups["context"], corpus),
            "",
        ]
    scores = [baseline, *(each for each in results if each.system.group == "scores")]
    if len(scores) > 1:
        lines += ["### Which score is best per second?", "", *_scores(scores), ""]
    if hard := [each for each in results if each.system.group == "weights" and each.system.name in HARD]:
        lines += ["### What does hard attention cost?", "", *_hard(baseline, hard), ""]
    lines += ["### How far apart are teacher forcing and free running?", "", *_feeding(baseline, groups["feeding"]), ""]
    lines += ["### What is noise?", "", *_noise(baseline, results)]
    return lines


def verdict(difference: PairedComparison) -> str:
    """``3.1 BLEU better (95 % interval 2.2 to 4.0)``."""
    span = f"95 % interval {number(difference.low)} to {number(difference.high)}"
    if not difference.significant:
        return f"within noise ({signed(difference.difference)} BLEU, {span})"
    word = "better" if difference.difference > 0 else "worse"
    return f"{abs(difference.difference):.1f} BLEU {word} ({span})"


def number(value: float) -> str:
    """One decimal, with a minus sign where one is due; never minus nought."""
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")


def signed(value: float) -> str:
    """As ``number``, with a sign in any case but nought."""
    return number(value) if round(value, 1) <= 0 else f"+{value:.1f}"


def name(result: Result) -> str:
    """In a sentence."""
    return f"`{result.system.name}`"


def _attention(baseline: Result, without: Sequence[Result], corpus: Corpus) -> list[str]:
    best = max(without, key=_bleu)
    is_long_N = longer(corpus, LONG)
    overall = (
        f"Of the systems without attention {name(best)} is the best, with {_bleu(best):.1f} BLEU; with attention it is "
        f"{_bleu(baseline):.1f}: {verdict(compare(baseline.bleu, best.bleu))}."
    )
    if not is_long_N.any() or is_long_N.all():
        return [overall]
    gains = []
    for is_chosen_N, what in ((~is_long_N, f"up to {LONG} words"), (is_long_N, f"more than {LONG} words")):
        rows = np.flatnonzero(is_chosen_N)
        gain = compare(baseline.bleu.select(rows), best.bleu.select(rows))
        gains.append((gain, f"on the {len(rows):,} sentences of {what} attention is {verdict(gain)}"))
    (short, about_short), (long, about_long) = gains
    low, high = _difference_of_gains(baseline.bleu, best.bleu, is_long_N)
    more = long.difference - short.difference
    span = f"{signed(more)} BLEU, 95 % interval {number(low)} to {number(high)}"
    if low > 0:
        so = f"So attention helps more on long sentences: its gain there is the larger one ({span})."
    elif high < 0:
        so = f"So attention helps less on long sentences: its gain there is the smaller one ({span})."
    else:
        so = f"Whether it helps more on long sentences than on short ones is within noise here ({span})."
    return [overall, "", f"{about_short[0].upper()}{about_short[1:]}, {about_long}. {so}"]


def _difference_of_gains(a: SentenceCounts, b: SentenceCounts, is_long_N: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the gain on long sentences less that on the others, which are drawn independently."""
    gains = []
    for seed, is_chosen_N in ((SEED, is_long_N), (SEED + 1, ~is_long_N)):
        rows = np.flatnonzero(is_chosen_N)
        gains.append(a.select(rows).resampled(seed=seed) - b.select(rows).resampled(seed=seed))
    low, high = np.percentile(gains[0] - gains[1], (2.5, 97.5))
    return float(low), float(high)


def _scores(scores: Sequence[Result]) -> list[str]:
    best = max(scores, key=_bleu)
    others = [(each, compare(each.bleu, best.bleu)) for each in scores if each is not best]
    near = [
        f"{_score(each)} ({signed(difference.difference)})" for each, difference in others if not difference.significant
    ]
    far = [f"{_score(each)} ({signed(difference.difference)})" for each, difference in others if difference.significant]
    fast, slow = max(scores, key=_speed), min(scores, key=_speed)
    text = f"All had the same budget, so BLEU is quality for time: {_score(best)} is highest, with {_bleu(best):.1f}."
    text += f" Within noise of it: {', '.join(near)}." if near else " None of the others is within noise of it."
    text += f" Behind it: {', '.join(far)}." if far else " None is clearly behind it."
    speeds = (
        f"{_score(fast)} trains fastest, {_speed(fast):,.0f} target tokens for each CPU second, {_score(slow)} "
        f"slowest, {_speed(slow):,.0f}."
    )
    return [text, "", speeds]


def _hard(baseline: Result, hard: Sequence[Result]) -> list[str]:
    lines = [f"Against `{baseline.name('weights')}`, on the same score:", ""]
    for each in hard:
        speed = _speed(each) / _speed(baseline)
        line = f"- {name(each)} is {_against_baseline(each)}, at {speed:.2f} times its training speed"
        rates = [result.error_rates.get("attention", {}).get("argmax") for result in (each, baseline)]
        if None not in rates:
            line += f"; its alignments err by {rates[0]:.1f} % against {rates[1]:.1f} % (argmax)"
        lines.append(f"{line}.")
    return lines


def _feeding(baseline: Result, others: Sequence[Result]) -> list[str]:
    what = (
        "Perplexity of the references, while the model reads the reference and while it reads its own most probable "
        "words; the second counts every other way to say it as an error from there on."
    )
    lines = [what, ""]
    for each in (baseline, *others):
        forced, free = each.perplexity.forced, each.perplexity.free
        label = "trained by teacher forcing (the baseline)" if each is baseline else f"trained by {name(each)}"
        line = f"- {label}: {forced:.1f} and {free:.1f}, a factor of {free / forced:.1f}"
        if each is not baseline:
            line += f"; its translations are {_against_baseline(each)}"
        lines.append(f"{line}.")
    return lines


def _noise(baseline: Result, results: Sequence[Result]) -> list[str]:
    others = [each for each in results if each is not baseline]
    same = [each for each in others if each.to_baseline is not None and not each.to_baseline.significant]
    listed = ", ".join(f"`{each.system.key}`" for each in same) or "none"
    seeds = len(baseline.seeds)
    shown = "one seed does not show" if seeds == 1 else f"{seeds} seeds show but roughly"
    text = (
        f"By the paired bootstrap over sentences, {len(same)} of {len(others)} systems cannot be told from the "
        f"baseline: {listed}. Of twenty systems that were all alike, one would be expected to be told from it by "
        f"chance. The intervals are about the choice of sentences; how much training varies by the seed, {shown}."
    )
    return [text]


def _against_baseline(result: Result) -> str:
    assert result.to_baseline is not None
    return verdict(result.to_baseline)


def _bleu(result: Result) -> float:
    return result.bleu_estimate.value


def _speed(result: Result) -> float:
    return result.speed.tokens_per_second


def _score(result: Result) -> str:
    return f"`{result.name('scores')}`"
