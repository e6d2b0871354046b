"""Scores of given translations, against a plain loop over the steps, and against what the search says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from nmt.data.vocabulary import EOS
from nmt.translator.loading import TrainedModel
from nmt.translator.translator import Translator

SOURCES = ["der hund", "", "eine katze und ein hund", "xyz"]
TARGETS = ["the dog", "a", "a cat and a dog and a cat", ""]


@torch.no_grad()
def stepwise(trained: TrainedModel, source: str, target: Sequence[int]) -> list[float]:
    """The log-probability of each token and of end-of-sentence, a step at a time. Control tokens have none."""
    model, log_probs = trained.model, []
    memory = model.encode(torch.tensor([[*trained.tokenizers.source.encode(source), EOS]]))
    state, token = model.start(memory), model.first_token(1, torch.device("cpu"))
    for gold in [*target, EOS]:
        step = model.step(token, memory, state)
        log_p_V = step.logits_NV[0].double().log_softmax(dim=0)
        assert log_p_V[list(trained.tokenizers.target.controls)].exp().sum() == 0
        log_probs.append(log_p_V[gold].item())
        token, state = torch.tensor([gold]), step.state
    return log_probs


def test_each_token_is_scored_as_by_itself(translator: Translator) -> None:
    tokenizer = translator.trained.tokenizers.target
    for source, target, score in zip(SOURCES, TARGETS, translator.score(SOURCES, TARGETS), strict=True):
        ids = tokenizer.encode(target)
        expected = stepwise(translator.trained, source, ids)
        assert score.tokens == (*tokenizer.pieces(ids), "</s>")
        assert score.token_log_probs == pytest.approx(expected, abs=1e-4)
        assert score.log_prob == pytest.approx(sum(expected), abs=1e-4)
        assert score.score == pytest.approx(sum(expected) / ((5 + len(expected)) / 6), abs=1e-4)


def test_search_says_the_same_of_its_own_translations(translator: Translator) -> None:
    encode, pieces = translator.trained.tokenizers.target.encode, translator.trained.tokenizers.target.pieces
    free = replace(translator, search=translator.search.model_copy(update={"repetition_margin": None}))
    found = [each for each in free.translate(SOURCES) if each.tokens == (*pieces(encode(each.text)),) != ()]
    assert found
    scores = translator.score([each.parts[0][0] for each in found], [each.text for each in found])
    assert [each.score for each in scores] == pytest.approx([each.score for each in found], abs=1e-4)
