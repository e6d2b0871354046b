"""The length penalty that training chooses, against sacreBLEU and searches with each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu

import nmt
from nmt import experiment as experiments
from nmt.data.store import Text
from nmt.evaluation.translation import Score
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
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
    scores, errors = {}, {}
    for penalty in (1.0, *LARGER, *SMALLER):
        found = nmt.load(
            "run", precision="float32", overrides=["search.numbers=false", f"search.length_penalty={penalty}"]
        )
        texts = [each.text for each in found.translate(sources)]
        scores[penalty] = [
            metric(texts, [references]).score for metric in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf)
        ]
        errors[penalty] = sum(map(len, texts)) / sum(map(len, references)) - 1
    assert len(set(map(tuple, scores.values()))) > 1

    def is_taken(one: float, tried: list[float]) -> bool:
        gains = [scores[one][index] - max(scores[other][index] for other in tried) for index in (0, 1)]
        new, old = errors[one], errors[tried[-1]]
        most_loss = 0.5 if old < -0.05 and old + 0.01 <= new <= 0 else 0.2
        return min(gains) >= -most_loss and (sum(gains) >= 0.2 or abs(new) < abs(old))

    tried = [1.0]
    for penalty in LARGER:
        if not is_taken(penalty, tried):
            break
        tried.append(penalty)
    if tried == [1.0] and is_taken(0.5, tried):
        tried.append(0.5)
    assert chosen[0] == tried[-1]
    assert "BLEU {:.1f} and chrF {:.1f} on valid".format(*scores[tried[-1]]) in chosen[1]


@pytest.mark.parametrize(
    ("change", "seconds"), [("search.length_penalty=1", 1e9), ("search.beam=1", 1e9), ("seed=1", 1.0)]
)
def test_nothing_is_chosen_that_was_set_or_takes_too_long(validation: Validation, change: str, seconds: float) -> None:
    experiment = experiments.load(Path("config.yaml"), [change])
    assert choose_length_penalty(replace(validation, experiment=experiment), seconds) is None


@pytest.mark.parametrize(
    ("bleus", "lengths", "best"),
    [
        # the lengths decide, and 29.8 is too much below 30.1
        ([30.0, 30.1, 29.95, 29.8, 29.8], [93, 95, 97, 100, 100], 2.0),
        # and nothing is taken that is longer than the references
        ([30.0, 30.0, 30.0, 30.0, 30.0], [110, 120, 130, 140, 150], 1.0),
        # a loss that is not chance, for the right length
        ([30.0, 29.7, 31.0, 31.0, 31.0], [96, 97, 100, 100, 100], 1.0),
        # translations that are much too short have dropped something, which is worth half a point, but not more
        ([30.0, 29.6, 29.4, 31.0, 31.0], [80, 90, 94, 100, 100], 1.5),
        # nor if they then are too long, or hardly longer
        ([30.0, 29.6, 31.0, 31.0, 31.0], [94, 105, 106, 107, 108], 1.0),
        # the scores decide, whatever the length
        ([30.0, 30.5, 30.2, 31.0, 31.0], [100, 130, 131, 140, 140], 1.5),
    ],
)
def test_equal_scores_leave_it_to_the_lengths(
    validation: Validation, monkeypatch: pytest.MonkeyPatch, bleus: list[float], lengths: list[int], best: float
) -> None:
    length_of = {**dict(zip((1.0, *LARGER), lengths, strict=True)), **dict.fromkeys(SMALLER, lengths[0])}

    def translate(translator: Translator, sources: list[str]) -> list[Translation]:
        return [Translation("x" * length_of[translator.search.penalty], 0.0, 0.0) for _ in sources]

    def scores_of(texts: list[str], *_: object, **__: object) -> list[Score]:
        return [Score("", bleus[lengths.index(len(texts[0]))], ""), Score("", 40.0, "")]

    monkeypatch.setattr(choose_search.Translator, "translate", translate)
    monkeypatch.setattr(choose_search, "scores", scores_of)
    monkeypatch.setattr(type(validation.valid), "text", lambda *_: Text("", "x" * 100))
    chosen = choose_length_penalty(validation, 1e9)
    assert chosen is not None
    assert chosen[0] == best


def test_the_run_keeps_it(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(choose_search, "SHORTEST", 0.0)
    monkeypatch.setattr(choose_search, "LARGER", (2.0,))
    for _ in range(2):  # the second call of nmt train goes on from the end of the first
        usual, best = ([Score("", bleu, ""), Score("", 40.0, "")] for bleu in (30.0, 30.5))
        results = iter([usual, usual, best])
        monkeypatch.setattr(choose_search, "scores", lambda *_, results=results, **__: next(results))
        train_here()
        assert (
            "search     length_penalty 2: BLEU 30.5 and chrF 40.0 on valid; with 1, BLEU 30.0 and chrF 40.0"
            in capsys.readouterr().err
        )
        assert nmt.load("run").search.length_penalty == 2.0
    train_here("run=other", "training.validation.bleu=false")
    assert "length_penalty" not in capsys.readouterr().err
