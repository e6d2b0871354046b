"""Search for one sentence in plain loops, by teacher forcing alone: what the searches must equal. And the searches
with the arguments that most tests need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam import BeamSearch
from nmt.search.hypothesis import Hypothesis, Search
from nmt.search.logits_processors import LogitsProcessor, LogitsProcessors
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import TRANSFORMER, tree

Tokens = tuple[int, ...]

EOS = 3
SOURCES = [[4, 5, 1, 4, 3], [5, 3], [5, 5, 4, 3]]
LIMIT_B = torch.tensor([7, 4, 6])
SOURCE = torch.tensor([[4, 5, 3], [4, 3, 0]])
"""Two sentences for models that do not look at them."""
MODELS = {"rnn": tree(), "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)}

each_model = pytest.mark.parametrize("name", list(MODELS))


def padded(sources: list[list[int]]) -> Tensor:
    longest = max(map(len, sources))
    return torch.tensor([source + [0] * (longest - len(source)) for source in sources])


def searched(
    search: Search,
    model: Seq2Seq[Any, Any],
    source_BS: Tensor = padded(SOURCES),  # noqa: B008 - is not changed
    limit_B: Tensor = LIMIT_B,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    processors: Sequence[LogitsProcessor] = (),
    eos: int = EOS,
) -> list[tuple[Hypothesis, ...]]:
    return search(model, source_BS, LogitsProcessors(limit_B, eos=eos, prefixes=prefixes, processors=processors))


def beam_search(
    model: Seq2Seq[Any, Any],
    source_BS: Tensor,
    limit_B: Tensor,
    *,
    beam: int,
    eos: int = EOS,
    exponent: float,
    n_best: int = 1,
) -> list[tuple[Hypothesis, ...]]:
    return searched(BeamSearch(eos, Ranking(exponent), beam, n_best=n_best), model, source_BS, limit_B, eos=eos)


def greedy(
    model: Seq2Seq[Any, Any], source_BS: Tensor, limit_B: Tensor, *, eos: int = EOS, exponent: float
) -> list[Hypothesis]:
    found = searched(greedy_search(eos, Ranking(exponent)), model, source_BS, limit_B, eos=eos)
    return [hypothesis for (hypothesis,) in found]


@dataclass(frozen=True)
class Forced:
    """A model's distribution of the next token, and its attention so far."""

    log_prob_V: list[float]
    attended_S: list[float]
    """Summed over the steps so far and this one, as the mean over heads."""


@torch.no_grad()
def forced(model: Seq2Seq[Any, Any], source: Sequence[int], tokens: Tokens) -> Forced:
    memory = model.encode(torch.tensor([source]))
    decoded = model.teacher_forced(torch.tensor([[*tokens, 0]]), memory)
    log_prob_TV = model.output(decoded.readout_BTR)[0].log_softmax(-1)
    return Forced(log_prob_TV[-1].tolist(), decoded.weights_BHTS[0].mean(0).sum(0).tolist())


@dataclass
class Plain:
    """A hypothesis."""

    tokens: Tokens
    log_prob: float
    score: float = 0.0


def plain_beam(
    search: BeamSearch,
    model: Seq2Seq[Any, Any],
    source: Sequence[int],
    limit: int,
    allowed: Callable[[Tokens, int], bool],
    pays: Callable[[Tokens, int], float] = lambda tokens, token: 0.0,
) -> list[Plain]:
    """The beam search of the module ``nmt.search.beam``, a sentence, a hypothesis and a token at a time. A token pays
    for itself in log-probability and score."""
    groups, width, eos = search.groups, search.beam // search.groups, search.eos

    def score(value: float, length: int, covered: float = 0.0) -> float:
        return value / penalty(search.ranking, length) + search.ranking.coverage * covered

    going_on: list[list[Plain]] = [[Plain((), 0.0)] for _ in range(groups)]
    done: list[list[Plain]] = [[] for _ in range(groups)]
    is_over = [False] * groups
    for length in range(1, limit + 1):
        taken: list[int] = []
        for group in range(groups):
            extensions: list[tuple[float, float, Tokens, int, float]] = []
            for each in going_on[group]:
                said = forced(model, source, each.tokens)
                covered = sum(math.log(min(max(x, 1e-4), 1.0)) for x in said.attended_S)
                for token, log_prob in enumerate(said.log_prob_V):
                    if token != eos if length == limit else not allowed(each.tokens, token):
                        continue
                    total = each.log_prob + log_prob - pays(each.tokens, token)
                    extensions.append(
                        (total - search.diversity * taken.count(token), total, each.tokens, token, covered)
                    )
            extensions.sort(key=lambda each: -each[0])
            for rank, (_, total, tokens, token, covered) in enumerate(extensions):
                if token == eos and rank < width and not is_over[group]:
                    done[group].append(Plain(tokens, total, score(total, len(tokens) + 1, covered)))
            going_on[group] = [
                Plain((*tokens, token), total) for _, total, tokens, token, _ in extensions if token != eos
            ][:width]
            taken += [each.tokens[-1] for each in going_on[group]]
            scores = sorted((each.score for each in done[group]), reverse=True)
            wanted = min(search.n_best, width)
            if not going_on[group]:
                is_over[group] = True
            else:
                best = max(each.log_prob for each in going_on[group])
                is_over[group] |= len(scores) >= wanted and scores[wanted - 1] >= score(best, limit)
                is_over[group] |= len(scores) >= width and scores[width - 1] >= score(best, length)
        if all(is_over):
            break
    distinct = {each.tokens: each for group in done for each in group}
    return sorted(distinct.values(), key=lambda each: -each.score)[: search.n_best]


def log_prob(model: Seq2Seq[Any, Any], source: list[int], tokens: Tokens) -> float:
    return sum(forced(model, source, tokens[:place]).log_prob_V[token] for place, token in enumerate((*tokens, EOS)))


def penalty(ranking: Ranking, length: int) -> float:
    base = (5 + length) / 6 if ranking.normalization == "gnmt" else length
    return float(base**ranking.exponent)


def agrees(
    model: Seq2Seq[Any, Any],
    search: BeamSearch,
    allowed: Callable[[Tokens, int], bool] = lambda tokens, token: True,
    **restrictions: Any,
) -> None:
    """A batch of sentences against each by itself in plain loops."""
    found = searched(search, model, **restrictions)
    for source, limit, hypotheses in zip(SOURCES, LIMIT_B.tolist(), found, strict=True):
        expected = plain_beam(search, model, source, limit, allowed)
        assert [each.tokens for each in hypotheses] == [each.tokens for each in expected]
        for each, other in zip(hypotheses, expected, strict=True):
            assert each.log_prob == pytest.approx(other.log_prob, abs=1e-4)
            assert each.score == pytest.approx(other.score, abs=1e-4)
