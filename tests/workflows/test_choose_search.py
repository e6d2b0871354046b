"""The length penalty that training chooses, against sacreBLEU and a ranking by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu

import nmt
from nmt import experiment as experiments
from nmt.evaluation.translation import Score
from nmt.translator.validation import Validation
from nmt.workflows import choose_search
from nmt.workflows.choose_search import PENALTIES, choose_length_penalty
from tests.workflows.runs import lines_of, train_here


@pytest.fixture
def validation(here: Path, monkeypatch: pytest.MonkeyPatch) -> Validation:
    """That of a model which has learnt a little, so that its translations differ in length."""
    found: list[Validation] = []
    monkeypatch.setattr(choose_search, "choose_length_penalty", lambda validation, _: found.append(validation))
    train_here("training.stopping.updates=30", "training.validation.metric=chrf", "search.max_length_ratio=3")
    return found[0]


def test_it_is_the_one_that_ranks_best(validation: Validation) -> None:
    chosen = choose_length_penalty(validation, 1e9)
    assert chosen is not None
    sources, references = lines_of("valid.de"), lines_of("valid.en")
    once = ["search.repetition_margin=null", "search.numbers=false"]
    translations = nmt.load("run", precision="float32", overrides=once).translate(sources, n_best=5)
    scores = {}
    for penalty in PENALTIES:
        best = []
        for first in translations:
            ranked = [
                (each.log_prob / ((6 + len(each.tokens)) / 6) ** penalty, each.text)
                for each in [first, *first.alternatives]
            ]
            best.append(max(ranked)[1])
        scores[penalty] = [
            metric(best, [references]).score for metric in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf)
        ]
    sums = {penalty: sum(both) + 0.2 * (penalty == 1.0) for penalty, both in scores.items()}
    assert len(set(sums.values())) > 1
    assert sums[chosen[0]] == max(sums.values())
    assert "BLEU {:.1f} and chrF {:.1f} on valid".format(*scores[chosen[0]]) in chosen[1]


@pytest.mark.parametrize(
    ("change", "seconds"), [("search.length_penalty=1", 1e9), ("search.beam=1", 1e9), ("seed=1", 1.0)]
)
def test_nothing_is_chosen_that_was_set_or_takes_too_long(validation: Validation, change: str, seconds: float) -> None:
    experiment = experiments.load(Path("config.yaml"), [change])
    assert choose_length_penalty(replace(validation, experiment=experiment), seconds) is None


def test_the_run_keeps_it(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(choose_search, "SHORTEST", 0.0)
    monkeypatch.setattr(choose_search, "PENALTIES", (1.0, 2.0))
    for _ in range(2):  # the second call of nmt train goes on from the end of the first
        results = iter([[Score("", 30.0, ""), Score("", 40.0, "")], [Score("", 30.5, ""), Score("", 40.0, "")]])
        monkeypatch.setattr(choose_search, "scores", lambda *_, results=results, **__: next(results))
        train_here()
        assert (
            "search     length_penalty 2: BLEU 30.5 and chrF 40.0 on valid; with 1, BLEU 30.0 and chrF 40.0"
            in capsys.readouterr().err
        )
        assert nmt.load("run").search.length_penalty == 2.0
    train_here("run=other", "training.validation.bleu=false")
    assert "length_penalty" not in capsys.readouterr().err
