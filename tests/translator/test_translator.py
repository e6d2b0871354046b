"""The parts of a translator that a model needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import nmt as package
from nmt import plugins
from nmt.core.errors import InputError
from nmt.data.vocabulary import BOS, EOS, PAD, UNK
from nmt.evaluation.perplexity import token_log_probs
from nmt.search.config import SamplingConfig, SearchConfig
from nmt.search.hypothesis import Hypothesis
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
from tests.translator.test_scorer import stepwise
from tests.workflows.runs import searching


def test_without_plug_ins_their_parts_are_refused_in_one_line(
    trained: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "_index", lambda *_: {})
    with pytest.raises(InputError, match=r"^search.markup: needs a part of nmt that is not installed$"):
        searching(translator, markup=True)
    with pytest.raises(InputError, match=r"^--method trained: use one of attention, .*, input-x-gradient$"):
        translator.aligner.check_method("trained")
    with pytest.raises(InputError, match=r"^engine='other': use one of nmt$"):
        package.load(trained / "run", engine="other")


TEXTS = ["hund und katze", "", "eine katze"]


def searched(translator: Translator, **search: Any) -> list[tuple[Translation, ...]]:
    return searching(translator, max_length=4, length_penalty=0.0, **search).candidates(TEXTS)


@pytest.mark.parametrize(
    "search",
    [
        {"beam": 1},
        {"beam": 40, "n_best": 40},
        {"beam": 20, "n_best": 20, "groups": 4},
        {"n_best": 40, "sampling": SamplingConfig(temperature=50.0)},
        {"beam": 8, "n_best": 8, "min_length": 3, "no_repeat": 1},
    ],
    ids=str,
)
def test_padding_and_the_like_are_impossible_in_every_search_and_score(
    translator: Translator, search: dict[str, Any]
) -> None:
    trained = translator.trained
    target = trained.tokenizers.target
    assert {PAD, BOS} <= set(target.controls)
    assert not {UNK, EOS} & set(target.controls)
    never = set(target.pieces(target.controls))
    for text, of_line in zip(TEXTS, searched(translator, **search), strict=True):
        for found in of_line if text else ():
            assert not never & set(found.tokens)
            ids = [target._processor.piece_to_id(piece) for piece in found.tokens]
            source = trained.prefixed([trained.tokenizers.source.encode(text)])
            assert found.log_prob == pytest.approx(sum(stepwise(trained, text, ids)), abs=1e-3)
            (log_p_T,) = token_log_probs(trained.model, source, [ids], trained.compute, batch_tokens=100)
            assert found.log_prob == pytest.approx(float(log_p_T.sum()), abs=1e-3)


@pytest.mark.parametrize("n_best", [20, 60])
def test_a_list_has_as_many_texts_as_asked(translator: Translator, n_best: int) -> None:
    ranked = searched(translator, beam=n_best, n_best=n_best)
    for of_line in (ranked[0], ranked[2]):
        assert len({each.text for each in of_line}) == len(of_line) == n_best
        scores = [each.score for each in of_line]
        assert scores == sorted(scores, reverse=True)


@dataclass
class Scripted:
    """An engine that finds the first of these hypotheses."""

    hypotheses: Sequence[Hypothesis]
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    def translate_ids(
        self, sources: Sequence[Sequence[int]], config: SearchConfig, **_: object
    ) -> list[tuple[Hypothesis, ...]]:
        self.asked.append((len(sources), config.n_best, config.beam))
        return [tuple(self.hypotheses[: config.n_best]) for _ in sources]


def test_texts_that_repeat_each_other_make_the_search_wider(translator: Translator) -> None:
    target = translator.trained.tokenizers.target
    whole, spelt = target.encode("the"), [target._processor.piece_to_id(piece) for piece in ["▁", "t", "h", "e"]]
    assert UNK not in spelt
    assert whole != spelt
    others = [target.encode(text) for text in ("cat", "the", "dog", "a")]
    found = [Hypothesis(tuple(ids), -rank, -rank) for rank, ids in enumerate([spelt, whole, *others])]

    def listed(count: int, n_best: int, **search: Any) -> tuple[list[tuple[str, float]], list[tuple[int, int, int]]]:
        engine = Scripted(found[:count])
        scripted = replace(searching(translator, beam=5, n_best=n_best, **search), engine=engine)
        (ranked,) = scripted.candidates(["hund"])
        return [(each.text, each.score) for each in ranked], engine.asked

    assert listed(6, 1) == ([("the", 0)], [(1, 1, 5)])
    assert listed(6, 2) == ([("the", 0), ("cat", -2)], [(1, 2, 5), (1, 4, 10)])
    assert listed(6, 3) == ([("the", 0), ("cat", -2), ("dog", -4)], [(1, 3, 5), (1, 6, 10)])
    # there are no more: of what a search could not fill, another does not find more
    assert listed(3, 3) == ([("the", 0), ("cat", -2)], [(1, 3, 5), (1, 6, 10)])
    assert listed(2, 3) == ([("the", 0)], [(1, 3, 5)])
    # draws are independent of each other
    drawn = listed(6, 2, sampling=SamplingConfig())
    assert drawn == ([("the", 0), ("the", -1)], [(1, 2, 5)])
