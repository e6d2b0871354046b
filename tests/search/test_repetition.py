"""Repetitions, against their definition in plain loops and against models whose every probability is written down."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from nmt.core.device import Compute
from nmt.search.beam import BeamSearch
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.repetition import Repetitions, payments, repetitions
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make
from tests.search.plain_search import LIMIT_B, MODELS, SOURCES, Tokens, each_model, forced, padded, penalty, plain_beam
from tests.search.scripted import scripted

EOS = 3
MARGIN = 0.7
CPU = Compute(torch.device("cpu"), "float32")


def in_a_row(tokens: Tokens) -> bool:
    """Whether the tokens end in a word or two that stand twice."""
    return any(len(tokens) >= 2 * size and tokens[-size:] == tokens[-2 * size : -size] for size in (1, 2))


def again(tokens: Tokens) -> bool:
    """Whether the tokens end in three that stand before."""
    return any(tokens[end - 3 : end] == tokens[-3:] for end in range(3, len(tokens)))


def counts(tokens: Tokens) -> tuple[int, int]:
    parts = [tokens[:end] for end in range(1, len(tokens) + 1)]
    return sum(map(in_a_row, parts)), sum(map(again, parts))


def pays(source: Tokens, tokens: Tokens, token: int) -> float:
    new = (*tokens, token)
    is_more = [before >= free for before, free in zip(counts(tokens), counts(source), strict=True)]
    return MARGIN * ((in_a_row(new) and is_more[0]) or (again(new) and is_more[1]))


@pytest.mark.parametrize("fast", [True, False])
@torch.inference_mode()
def test_repetitions_are_counted_and_recognised(fast: bool) -> None:
    """By the kernel and without; the rows are part of a wider tensor."""
    texts, candidates = list(product((7, 8), repeat=9)), (7, 8, 9)
    free = [(number % 3 - 1, number % 2) for number in range(len(texts))]
    for size in range(9):
        inputs = (torch.tensor([candidates] * len(texts)), torch.tensor(texts)[:, :size], torch.tensor(free), MARGIN)
        penalty_NK, free_NK2 = (payments if fast else payments.body)(*inputs)
        for text, (row, phrase), penalties, after in zip(
            texts, free, penalty_NK.tolist(), free_NK2.tolist(), strict=True
        ):
            new = [(*text[:size], token) for token in candidates]
            assert after == [[row - in_a_row(each), phrase - again(each)] for each in new]
            paid = [(in_a_row(each) and row <= 0) or (again(each) and phrase <= 0) for each in new]
            assert penalties == pytest.approx([MARGIN * each for each in paid])
    assert all(repetitions(text) == counts(text) for text in texts)


@each_model
@pytest.mark.parametrize("unconstrained", [True, False])
def test_searches_agree_with_plain_loops(name: str, unconstrained: bool) -> None:
    """The third source says something twice in a row. Prefixes pay as well, and a search that reads all logits does."""
    paid, prefixes = 0.0, None if unconstrained else [[4, 4], [], [5]]
    limit_B = LIMIT_B + 4
    for seed in range(4):
        model = make(MODELS[name], seed=seed)
        for search in (BeamSearch(EOS, Ranking(1.0), 3, n_best=3), greedy_search(EOS, Ranking(1.0))):
            processors = LogitsProcessors(
                limit_B, eos=EOS, prefixes=prefixes, repetitions=Repetitions.of(SOURCES, MARGIN, torch.device("cpu"))
            )
            found = search(model, padded(SOURCES), processors)
            for row, (source, limit) in enumerate(zip(SOURCES, limit_B.tolist(), strict=True)):
                begun = prefixes[row] if prefixes else []
                expected = plain_beam(
                    search if isinstance(search, BeamSearch) else BeamSearch(EOS, Ranking(1.0), 1),
                    model, source, limit,
                    lambda tokens, token, begun=begun: len(tokens) >= len(begun) or token == begun[len(tokens)],  # type: ignore[misc]
                    lambda tokens, token, source=tuple(source): pays(source, tokens, token),  # type: ignore[misc]
                )  # fmt: skip
                assert [each.tokens for each in found[row]] == [each.tokens for each in expected]
                for each, other in zip(found[row], expected, strict=True):
                    # scores are those of the model
                    log_prob = sum(
                        forced(model, source, each.tokens[:place]).log_prob_V[token]
                        for place, token in enumerate((*each.tokens, EOS))
                    )
                    assert each.log_prob == pytest.approx(log_prob, abs=1e-4)
                    assert each.score == pytest.approx(log_prob / penalty(Ranking(1.0), len(each.tokens) + 1), abs=1e-4)
                    paid += log_prob - other.log_prob
    assert paid > 0.0, "nothing was said again"


TINY = 1e-9
STAYS_OR_NOT = [[TINY] * 4 + [0.9, 0.1], [TINY] * 4 + [0.6, 0.4], [TINY] * 3 + [1.0, TINY, TINY]]
"""4 4 has the probability 0.9 x 0.6 and 4 5 has 0.9 x 0.4."""


@pytest.mark.parametrize("beam", [1, 2])
def test_a_repetition_stays_if_it_is_more_probable_by_the_margin_or_its_source_has_one(beam: int) -> None:
    engine = TorchEngine(scripted(STAYS_OR_NOT), CPU)
    for source, margin, expected in (
        ([4], None, (4, 4)),
        ([4], math.log(1.5) - 0.01, (4, 4)),
        ([4], math.log(1.5) + 0.01, (4, 5)),
        ([5, 5], 9.0, (4, 4)),
    ):
        config = SearchConfig(beam=beam, length_penalty=0.0, repetition_margin=margin)
        found = engine.translate_ids([[5, 5], source, [5, 5]], config)
        assert [best.tokens for best, *_ in found] == [(4, 4), expected, (4, 4)]
        assert found[1][0].log_prob == pytest.approx(math.log(0.9 * (0.6 if expected == (4, 4) else 0.4)), abs=1e-5)


@pytest.mark.parametrize("groups", [1, 3])
def test_of_several_translations_the_first_says_nothing_twice(groups: int) -> None:
    engine = TorchEngine(scripted(STAYS_OR_NOT), CPU)
    config = SearchConfig(
        beam=3, n_best=3, groups=groups, diversity=0.0, length_penalty=0.0, repetition_margin=1.0
    )  # fmt: skip
    (found,) = engine.translate_ids([[4]], config)
    best = [hypothesis.tokens for hypothesis in found]
    assert best == ([(4, 5), (4, 4), (5, 4)] if groups == 1 else [(4, 5)])


def test_characters_may_repeat() -> None:
    engine = TorchEngine(scripted(STAYS_OR_NOT), CPU, of_characters=True)
    ((best,),) = engine.translate_ids([[4]], SearchConfig(beam=1, repetition_margin=9.0))
    assert best.tokens == (4, 4)
