"""Training for wait-k translation, against steps of which each is given the source words that it may see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.vocabulary import EOS
from nmt.extras.decoding.wait_k import WaitKModel, WordStarts
from nmt.extras.decoding.wait_training import WaitKTraining
from nmt.models.feed import TeacherForcing
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from nmt.training.config import WaitConfig
from tests.extras.decoding.test_wait_k import LIMIT_B, SOURCES, STARTS, WORDS, a_model, words_of
from tests.models.variants import TRANSFORMER, tree
from tests.search.plain_search import padded

TARGETS = [[5, 9, 4, 7, 8, 6, EOS], [4, EOS], [8, 9, 9, 12, 5, EOS]]
RNN = {"bidirectional": False, "size": 6}
CAUSAL = {**TRANSFORMER, "causal": True}
ZEROS = {"start": "zeros"}
MODELS: dict[str, dict[str, Any]] = {
    "all steps at once": tree(encoder=RNN, decoder={**ZEROS, "input_feeding": False}),
    "input feeding": tree(encoder=RNN, decoder={**ZEROS, "input_feeding": True}, heads=2, score="concat"),
    "transformer": tree(encoder=CAUSAL, decoder=TRANSFORMER, score="scaled_dot"),
    "transformer, other heads": tree(encoder=CAUSAL, decoder=TRANSFORMER, score="cosine", tie="all", copying={}),
    "embeddings": tree(encoder={"kind": "embeddings", "positions": "learned"}, decoder={**ZEROS, "query": "previous"}),
}
each_model = pytest.mark.parametrize("name", list(MODELS))


def training(model: Any, monkeypatch: pytest.MonkeyPatch, **config: int) -> WaitKTraining:
    monkeypatch.setattr(WordStarts, "of", lambda *_: WORDS)
    return WaitKTraining(model, WaitConfig(**config), SimpleNamespace())  # type: ignore[arg-type]


def prefix(source: list[int], words: int) -> Tensor:
    """The first words of a source, with end-of-sentence after the last of all."""
    of_source = words_of(source)
    tokens = [token for word in of_source[:words] for token in word]
    return torch.tensor([tokens + [EOS] * (words >= len(of_source))])


def logits_of_steps(model: Any, source: list[int], target: list[int], k: int) -> Tensor:
    """Each step reads the first k + b source words alone, where b words have begun before it."""
    state, token, logits, begun = None, model.first_token(1, torch.device("cpu")), [], 0
    for index, gold in enumerate(target):
        memory = model.encode(prefix(source, k + begun))
        state = model.start(memory) if state is None else state
        step = model.step(token, memory, state)
        logits.append(step.logits_NV[0])
        state, token = step.state, torch.tensor([gold])
        begun += index == 0 or gold in STARTS
    return torch.stack(logits).log_softmax(-1)


@each_model
@pytest.mark.parametrize("k", [1, 2])
@torch.no_grad()
def test_each_step_sees_its_prefix(name: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = a_model(MODELS[name])
    waits = training(model, monkeypatch, least=k, most=k)
    decoded = waits.decode(padded(TARGETS), waits.encode(padded(SOURCES)), TeacherForcing())
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        found_TV = model.output(decoded.readout_BTR[row, : len(target)])
        if decoded.copies is not None:
            rows = torch.arange(len(target)) + row * decoded.readout_BTR.shape[1]
            found_TV = decoded.copies.select(rows).mixed(found_TV).log()
        expected_TV = logits_of_steps(model, source, target, k)
        torch.testing.assert_close(found_TV.log_softmax(-1), expected_TV, atol=1e-4, rtol=1e-4)


def test_each_sentence_draws_its_own_k(monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers of source words up to that of the sentence, as often as each other."""
    waits, seen = training(a_model(MODELS["transformer"]), monkeypatch), []
    monkeypatch.setattr(waits.model, "decode", lambda target, memory, _: seen.append(memory.layers[0].unread_BTS))
    torch.manual_seed(1)
    source = waits.encode(padded(SOURCES[:1] * 4000))
    waits.decode(torch.full((4000, 1), 4), source, TeacherForcing())
    word_S = WORDS.of_source(padded(SOURCES[:1]))[0]
    read_B = torch.stack([word_S[~row][-1] for row in seen[0][:, 0]])
    words = len(words_of(SOURCES[0]))
    counts = torch.bincount(read_B, minlength=words + 1)[1:]
    assert len(counts) == words
    assert (counts / 4000 - 1 / words).abs().max() < 0.03


@each_model
@torch.no_grad()
def test_translation_goes_on_from_its_state(name: str) -> None:
    """Greedy search by the steps of training."""
    model = a_model(MODELS[name])
    for k in (1, 2):
        waits = WaitKModel(model, k, WORDS, rereads=False)
        found = greedy_search(EOS, Ranking())(waits, padded(SOURCES), LogitsProcessors(LIMIT_B, eos=EOS))
        for source, limit, (hypothesis,) in zip(SOURCES, LIMIT_B.tolist(), found, strict=True):
            tokens = [*hypothesis.tokens, EOS][: limit - 1]
            assert logits_of_steps(model, source, tokens, k).argmax(dim=-1).tolist() == tokens


def test_a_mask_tells_nothing_of_the_token_that_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step may see depends on the target before it alone, so that a model cannot read off how it goes on."""
    waits, seen = training(a_model(MODELS["transformer"]), monkeypatch, least=1, most=1), []
    monkeypatch.setattr(waits.model, "decode", lambda target, memory, _: seen.append(memory.layers[0].unread_BTS))
    source = waits.encode(padded(SOURCES[:1] * 2))
    assert STARTS[1] == 4
    waits.decode(torch.tensor([[4, 5, 6, 4], [4, 5, 6, 5]]), source, TeacherForcing())
    assert torch.equal(*seen[0])
