"""Searches that choose among the tokens of a list, against searches that rule out all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nmt
from nmt.core.device import Compute
from nmt.data.vocabulary import EOS
from nmt.extras.accel import native
from nmt.extras.accel.compiled import compiled
from nmt.extras.accel.optimize import quantize
from nmt.extras.accel.shortlist import Shortlist
from nmt.models.ensemble import Ensemble
from nmt.search.config import SamplingConfig, SearchConfig
from nmt.search.engine import OwnEngine
from tests.models.variants import TRANSFORMER, make, tree

COMPUTE = Compute(torch.device("cpu"), "float32")
SOURCES = [[4, 5, 7, 4], [5], [6, 6, 5, 8], [4, 4]]
TOKENS = 12
MODELS = {
    "rnn": lambda: make(tree(), tokens=TOKENS),
    "transformer": lambda: make(tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER), tokens=TOKENS),
    "bytes": lambda: in_bytes(make(tree(), tokens=TOKENS)),
    "both": lambda: Ensemble([make(tree(), seed=1, tokens=TOKENS), make(tree(), seed=2, tokens=TOKENS)]),
}
SEARCHES = {
    "greedy": SearchConfig(beam=1),
    "beam": SearchConfig(beam=3, n_best=3),
    "groups": SearchConfig(beam=4, groups=2),
    "no repeat": SearchConfig(beam=2, no_repeat=1, min_length=2),
    "draws": SearchConfig(n_best=3, sampling=SamplingConfig(seed=3)),
}


def in_bytes(model: nn.Module) -> nn.Module:
    quantize(model, torch.float32)
    return model


@pytest.fixture(params=["looked up", "together"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels, and without any; the logits of few rows at a time."""
    monkeypatch.setattr("nmt.nn.output.MAX_LOGITS", 16)
    if request.param == "together":
        monkeypatch.setattr(native, "_kernels", lambda _: None)
    elif compiled() is None:
        pytest.skip("no C++ compiler")


each_model = pytest.mark.parametrize("name", list(MODELS))
each_case = pytest.mark.parametrize(
    ("name", "search"),
    [*((name, "beam") for name in MODELS), *(("rnn", search) for search in SEARCHES if search != "beam")],
)
"""Each model with a beam, and each search with a model."""


def shortlist(targets: dict[int, list[int]], always: tuple[int, ...] = ()) -> Shortlist:
    offsets = np.cumsum([0, *(len(targets.get(token, ())) for token in range(TOKENS))])
    flat = [each for token in range(TOKENS) for each in targets.get(token, ())]
    special = np.array([*range(EOS + 1), *always], dtype=np.int64)
    return Shortlist(TOKENS, special, offsets.astype(np.int64), np.array(flat, dtype=np.int64))


NARROW = shortlist({4: [6, 4], 5: [11, 9], 7: [5], 6: [4, 9, 10]}, always=(8,))
ALLOWED = [{6, 4, 11, 9, 5, 8}, {11, 9, 8}, {4, 9, 10, 11, 8}, {6, 4, 8}]
"""Of each of the sources, special tokens aside."""


@each_case
def test_a_list_of_all_changes_nothing(name: str, search: str) -> None:
    model, everything = MODELS[name](), shortlist({}, always=tuple(range(EOS + 1, TOKENS)))
    expected = OwnEngine(model, COMPUTE).translate_ids(SOURCES, SEARCHES[search])
    found = OwnEngine(model, COMPUTE, everything).translate_ids(SOURCES, SEARCHES[search])
    same(found, expected)


@each_case
def test_a_sentence_has_the_tokens_of_its_own_list(name: str, search: str) -> None:
    model = MODELS[name]()
    together = OwnEngine(model, COMPUTE, NARROW).translate_ids(SOURCES, SEARCHES[search])
    for source, allowed, hypotheses in zip(SOURCES, ALLOWED, together, strict=True):
        assert {token for each in hypotheses for token in each.tokens} <= allowed | set(range(EOS + 1))
        (alone,) = OwnEngine(model, COMPUTE, NARROW).translate_ids([source], SEARCHES[search])
        same([hypotheses], [alone])


def test_greedy_choice_and_probability_are_those_among_the_list() -> None:
    """By plain loops over the model's own steps, what is not on the list struck out."""
    changed = 0
    for seed in range(4):
        model = make(tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER), seed=seed, tokens=TOKENS)
        found = OwnEngine(model, COMPUTE, NARROW).translate_ids(SOURCES, SearchConfig(beam=1))
        for source, allowed, (hypothesis,) in zip(SOURCES, ALLOWED, found, strict=True):
            memory = model.encode(torch.tensor([[*source, EOS]]))
            state, token, total = model.start(memory), model.first_token(1, COMPUTE.device), 0.0
            for expected in (*hypothesis.tokens, EOS):
                step = model.step(token, memory, state)
                logits = step.logits_NV[0].tolist()
                kept = {each: logits[each] for each in allowed | set(range(EOS + 1))}
                if len(hypothesis.tokens) < 2 * (len(source) + 1) + 9:  # else the limit of length ends it
                    assert max(kept, key=kept.__getitem__) == expected
                changed += max(range(TOKENS), key=logits.__getitem__) != expected
                total += float(torch.tensor(logits)[expected] - torch.tensor(list(kept.values())).logsumexp(0))
                state, token = step.state, torch.tensor([expected])
            assert hypothesis.log_prob == pytest.approx(total, abs=1e-4)
    assert changed


@each_model
def test_prefixes_and_constraints_are_on_the_list(name: str) -> None:
    model, search = MODELS[name](), SearchConfig(beam=4)
    prefixes = [[10, 5], [], [7], []]
    found = OwnEngine(model, COMPUTE, NARROW).translate_ids(SOURCES, search, prefixes=prefixes)
    for prefix, (first, *_) in zip(prefixes, found, strict=True):
        assert list(first.tokens[: len(prefix)]) == prefix
    phrases = [(((10, 7), (10, 11, 7)),), (), (((5,),), ((7,),)), ()]
    found = OwnEngine(model, COMPUTE, NARROW, nmt.constrained_search).translate_ids(
        SOURCES, search, constraints=phrases
    )
    assert (10, 7) in list(zip(found[0][0].tokens, found[0][0].tokens[1:], strict=False))
    assert {5, 7} <= set(found[2][0].tokens)


def test_where_nothing_is_allowed_a_short_list_has_an_answer_too() -> None:
    """Two subwords, none of them twice, and no end before nine: of a draw among nothing some number comes out."""
    search = SearchConfig(n_best=2, sampling=SamplingConfig(seed=3), min_length=9, no_repeat=1)
    found = OwnEngine(MODELS["rnn"](), COMPUTE, shortlist({4: [4], 5: [5], 6: [6, 7, 8]})).translate_ids(
        SOURCES, search
    )
    assert [len(each) for each in found] == [2] * len(SOURCES)
    assert all(0 <= token < TOKENS for each in found for one in each for token in one.tokens)


def test_what_is_no_shortlist_does_not_fit() -> None:
    assert NARROW.fits(TOKENS)
    assert not NARROW.fits(TOKENS + 1)
    for broken in (
        Shortlist(9, NARROW.always_A, NARROW.offsets_X1, NARROW.targets_T),  # 11 is not a token
        Shortlist(TOKENS, NARROW.always_A[1:], NARROW.offsets_X1, NARROW.targets_T),  # padding is missing
        Shortlist(TOKENS, NARROW.always_A, NARROW.offsets_X1[::-1].copy(), NARROW.targets_T),
        Shortlist(TOKENS, NARROW.always_A, NARROW.offsets_X1, NARROW.targets_T[:-1]),
        Shortlist(TOKENS, NARROW.always_A, NARROW.offsets_X1.astype(np.float64), NARROW.targets_T),  # type: ignore[arg-type]
        Shortlist(TOKENS, NARROW.always_A, NARROW.offsets_X1, NARROW.targets_T - 5),
    ):
        assert not broken.fits(TOKENS)


def same(found: Any, expected: Any) -> None:
    for hypotheses, others in zip(found, expected, strict=True):
        assert [each.tokens for each in hypotheses] == [each.tokens for each in others]
        for each, other in zip(hypotheses, others, strict=True):
            assert each.score == pytest.approx(other.score, abs=1e-5)
