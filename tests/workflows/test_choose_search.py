"""The length penalty that training chooses, against sacreBLEU and searches with each."""

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
from nmt.workflows.choose_search import LARGER, SMALLER, choose_length_penalty
from tests.workflows.runs import lines_of, train_here


@pytest.fixture
def validation(here: Path, monkeypatch: pytest.MonkeyPatch) -> Validation:
    """That of a model which has learnt a little, so that its translations differ in length."""
    found: list[Validation] = []
    monkeypatch.setattr(choose_search, "choose_length_penalty", lambda validation, _: found.append(validation))
    train_here("training.stopping.updates=30", "training.validation.metric=chrf", "search.max_length_ratio=3")
    return found[0]


def test_it_is_the_best_of_those_that_are_tried(validation: Validation) -> None:
    chosen = choose_length_penalty(validation, 1e9)
    assert chosen is not None
    sources, references = lines_of("valid.de"), lines_of("valid.en")
    once = ["search.repetition_margin=null", "search.numbers=false"]
    scores = {}
    for penalty in (1.0, *LARGER, *SMALLER):
        found = nmt.load("run", precision="float32", overrides=[*once, f"search.length_penalty={penalty}"])
        texts = [each.text for each in found.translate(sources)]
        scores[penalty] = [
            metric(texts, [references]).score for metric in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf)
        ]
    assert len(set(map(tuple, scores.values()))) > 1

    def is_better(one: float, other: float) -> bool:
        bleu, chrf = (scores[one][index] - scores[other][index] for index in (0, 1))
        return bleu + chrf >= 0.2 and bleu >= -0.2 and chrf >= -0.2

    best = 1.0
    for penalty in LARGER:
        if not is_better(penalty, best):
            break
        best = penalty
    if best == 1.0 and is_better(0.5, 1.0):
        best = 0.5
    assert chosen[0] == best
    assert "BLEU {:.1f} and chrF {:.1f} on valid".format(*scores[best]) in chosen[1]


@pytest.mark.parametrize(
    ("change", "seconds"), [("search.length_penalty=1", 1e9), ("search.beam=1", 1e9), ("seed=1", 1.0)]
)
def test_nothing_is_chosen_that_was_set_or_takes_too_long(validation: Validation, change: str, seconds: float) -> None:
    experiment = experiments.load(Path("config.yaml"), [change])
    assert choose_length_penalty(replace(validation, experiment=experiment), seconds) is None


def test_the_run_keeps_it(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(choose_search, "SHORTEST", 0.0)
    monkeypatch.setattr(choose_search, "LARGER", (2.0,))
    for _ in range(2):  # the second call of nmt train goes on from the end of the first
        usual, best = ([Score("", bleu, ""), Score("", 40.0, "")] for bleu in (30.0, 30.5))
        results = iter([usual, best, usual])
        monkeypatch.setattr(choose_search, "scores", lambda *_, results=results, **__: next(results))
        train_here()
        assert (
            "search     length_penalty 2: BLEU 30.5 and chrF 40.0 on valid; with 1, BLEU 30.0 and chrF 40.0"
            in capsys.readouterr().err
        )
        assert nmt.load("run").search.length_penalty == 2.0
    train_here("run=other", "training.validation.bleu=false")
    assert "length_penalty" not in capsys.readouterr().err
