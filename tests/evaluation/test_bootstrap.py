"""Intervals and tests against sacreBLEU's own figures and against plain loops."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from nmt.core.errors import InputError
from nmt.evaluation import bootstrap
from nmt.evaluation.bootstrap import SEED, PairedComparison, compare, interval, sentence_counts
from tests.evaluation.systems import references, translations

SACREBLEU = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
REFERENCES = references(80)
GOOD = translations(REFERENCES, errors=0.2, seed=2)
SIMILAR = translations(REFERENCES, errors=0.22, seed=3)
BAD = translations(REFERENCES, errors=0.5, seed=4)


def compared(a: list[str], b: list[str], *, metric: str = "bleu", seed: int = SEED) -> PairedComparison:
    return compare(*(sentence_counts(lines, REFERENCES, metric=metric) for lines in (a, b)), seed=seed)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
@pytest.mark.parametrize("hypotheses", [GOOD, BAD, [""] * 80, REFERENCES], ids=["good", "bad", "empty", "perfect"])
def test_the_score_is_sacrebleus(metric: str, hypotheses: list[str]) -> None:
    counts = sentence_counts(hypotheses, REFERENCES, metric=metric)
    assert counts.score() == SACREBLEU[metric]().corpus_score(hypotheses, [REFERENCES]).score


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_each_resample_scores_as_its_lines_do(metric: str) -> None:
    draw = np.random.default_rng(7)
    expected = []
    for _ in range(20):
        rows = [int(draw.choice(80)) for _ in range(80)]
        lines = [GOOD[row] for row in rows], [[REFERENCES[row] for row in rows]]
        expected.append(SACREBLEU[metric]().corpus_score(*lines).score)
    assert len(set(expected)) == 20
    resampled = sentence_counts(GOOD, REFERENCES, metric=metric).resampled(resamples=20, seed=7)
    assert resampled == pytest.approx(expected, abs=1e-9)


def test_several_references_and_the_options_of_bleu() -> None:
    sets = [REFERENCES, SIMILAR]
    counts = sentence_counts(BAD, sets, lowercase=True, tokenize="char")
    assert counts.score() == BLEU(lowercase=True, tokenize="char").corpus_score(BAD, sets).score


def test_the_interval_is_that_of_a_bootstrap_in_plain_loops() -> None:
    bleu, draw, scores = BLEU(), random.Random(5), []
    sentences = [bleu.corpus_score([a], [[b]]) for a, b in zip(GOOD, REFERENCES, strict=True)]
    rows = [(*each.counts, *each.totals, each.sys_len, each.ref_len) for each in sentences]
    for _ in range(2000):
        sums = [sum(column) for column in zip(*draw.choices(rows, k=len(rows)), strict=True)]
        scores.append(BLEU.compute_bleu(sums[:4], sums[4:8], *sums[8:], smooth_method="exp").score)
    scores.sort()
    found = interval(sentence_counts(GOOD, REFERENCES), resamples=2000)
    # Each end is a quantile of 2,000 draws; at 2.5 % its standard error is about 0.06 of the scores' deviation.
    tolerance = 4 * 2**0.5 * 0.06 * float(np.std(scores))
    assert found.low == pytest.approx(scores[50], abs=tolerance)
    assert found.high == pytest.approx(scores[1950], abs=tolerance)
    assert found.low < found.value < found.high


def test_the_interval_covers_the_true_score_in_about_19_of_20_cases() -> None:
    everything = references(4000, seed=11)
    hypotheses = translations(everything, errors=0.3, seed=12)
    counts = sentence_counts(hypotheses, everything)
    draw, covered = np.random.default_rng(13), 0
    for _ in range(100):
        found = interval(counts.select(draw.choice(4000, size=100, replace=False)), resamples=200)
        covered += found.low <= counts.score() <= found.high
    assert 88 <= covered <= 99  # binomial: 95 expected, standard deviation 2.2


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
@pytest.mark.parametrize(("a", "b"), [(GOOD, SIMILAR), (SIMILAR, BAD), (BAD, GOOD)], ids=["near", "far", "reversed"])
def test_the_paired_test_is_sacrebleus(
    metric: str, a: list[str], b: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    test = PairedTest([("b", b), ("a", a)], {metric: SACREBLEU[metric]()}, [REFERENCES], test_type="bs", n_samples=1000)
    _, results = test()
    baseline, system = next(results[name] for name in results if name != "System")
    found = compared(a, b, metric=metric)
    assert (found.score_a, found.score_b) == (system.score, baseline.score)
    assert found.difference == pytest.approx(system.score - baseline.score)
    assert found.p_value == pytest.approx(system.p_value, abs=1.5 / 1001)  # a tie may fall either way in float32
    other_seed = compared(a, b, metric=metric, seed=1)
    assert other_seed.p_value == pytest.approx(system.p_value, abs=0.06)


def test_the_interval_of_the_difference_is_of_paired_resamples() -> None:
    a, b = sentence_counts(GOOD, REFERENCES), sentence_counts(SIMILAR, REFERENCES)
    differences = []
    draw = np.random.default_rng(3)
    for _ in range(300):
        rows = draw.choice(80, size=80)
        differences.append(a.select(rows).score() - b.select(rows).score())
    found = compare(a, b, resamples=300, seed=3)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])), abs=1e-9)


def test_what_is_significant() -> None:
    clear, unclear = (compared(GOOD, other) for other in (BAD, SIMILAR))
    assert clear.significant
    assert clear.p_value < 0.01
    assert 0 < clear.low < clear.difference < clear.high
    assert not unclear.significant
    assert unclear.low < 0 < unclear.high
    turned = compared(BAD, GOOD)
    assert turned.significant
    assert (turned.low, turned.high) == pytest.approx((-clear.high, -clear.low))
    same = compared(GOOD, GOOD)
    assert (same.difference, same.low, same.high, same.p_value, same.significant) == (0.0, 0.0, 0.0, 1.0, False)


def test_memory_is_bounded_without_changing_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = sentence_counts(GOOD, REFERENCES)
    at_once = counts.resampled(resamples=50)
    monkeypatch.setattr(bootstrap, "_MAX_ELEMENTS", 7 * 80)
    assert [len(each) for each in bootstrap._draws(80, 50, 1)] == [7] * 7 + [1]
    np.testing.assert_array_equal(counts.resampled(resamples=50), at_once)


def test_faults() -> None:
    for hypotheses, metric, message in ((["a", "b"], "bleu", "2 hypotheses but 1 ref"), (["a"], "blue", "unknown met")):
        with pytest.raises(InputError, match=message):
            sentence_counts(hypotheses, ["a"], metric=metric)
    with pytest.raises(ValueError, match="1 sentences of one system, 2 of the other"):
        compare(sentence_counts(["a"], ["a"]), sentence_counts(["a", "b"], ["a", "b"]))


def test_importing_is_light() -> None:
    """Of what prepares data, too."""
    modules = "evaluation.bootstrap, nmt.evaluation.translation, nmt.data.batching, nmt.workflows.prepare"
    heavy = "{'torch', 'sacrebleu', 'matplotlib'}"
    code = f"import sys, nmt.{modules}, nmt.workflows.evaluate; print({heavy} & sys.modules.keys())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_systems_on_the_same_references_have_the_same_tokenizer() -> None:
    """Whatever they write themselves."""
    references = ["我有一条狗。", "他没有猫。"]
    for hypotheses in (references, ["He has a dog.", "He has no cat."]):
        assert sentence_counts(hypotheses, references).metric.tokenizer_signature == "zh"  # type: ignore[attr-defined]
    counts = (sentence_counts(lines, references) for lines in (references, references[::-1]))
    assert compare(*counts).score_a == pytest.approx(100.0)
