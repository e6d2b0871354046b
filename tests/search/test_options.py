"""What searches can be asked for, each against plain loops over teacher forcing, sentence by sentence."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.extras.accel.native import expected
from nmt.extras.accel.native.compiled import compiled
from nmt.extras.accel.optimize import quantize
from nmt.extras.accel.output import Int8OutputLayer, kernel_log_normalizer, kernel_top_tokens
from nmt.models.ensemble import Ensemble
from nmt.models.seq2seq import Seq2Seq
from nmt.nn import output as output_layer
from nmt.nn.output import OutputLayer, row_parts
from nmt.ops import log_normalizer, top_tokens
from nmt.search import beam as beam_search
from nmt.search import sequential as path
from nmt.search.beam import BeamSearch
from nmt.search.constrained import ConstrainedBeamSearch
from nmt.search.hypothesis import Hypothesis
from nmt.search.logits_processors import Ban, NoRepeat, Rules, Shortest
from nmt.search.sampling import Sampling, truncated
from nmt.search.scoring import Ranking, max_lengths
from nmt.search.sequential import greedy_search
from tests.models.variants import TRANSFORMER, make, tree
from tests.search.plain_search import Tokens, forced, plain_beam

EOS = 3
SOURCES = [[4, 5, 1, 4, 3], [5, 3], [5, 5, 4, 3]]
LIMIT_B = torch.tensor([7, 4, 6])
MODELS = {"rnn": tree(), "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)}

each_model = pytest.mark.parametrize("name", list(MODELS))


def padded(sources: list[list[int]]) -> Tensor:
    longest = max(map(len, sources))
    return torch.tensor([source + [0] * (longest - len(source)) for source in sources])


def log_prob(model: Seq2Seq[Any, Any], source: list[int], tokens: Tokens) -> float:
    return sum(forced(model, source, tokens[:place]).log_prob_V[token] for place, token in enumerate((*tokens, EOS)))


def agrees(
    model: Seq2Seq[Any, Any], search: BeamSearch, bans: list[Ban], allowed: Any, limit_B: Tensor = LIMIT_B
) -> None:
    """A batch of sentences against each by itself in plain loops."""
    found = search(model, padded(SOURCES), Rules(limit_B, eos=EOS, bans=bans))
    ranking = search.ranking
    for source, limit, hypotheses in zip(SOURCES, limit_B.tolist(), found, strict=True):
        expected = plain_beam(
            model,
            source,
            eos=EOS,
            limit=limit,
            beam=search.beam,
            n_best=search.n_best,
            groups=search.groups,
            diversity=search.diversity,
            score=lambda value, length, covered: value / penalty(ranking, length) + ranking.coverage * covered,
            allowed=allowed,
            longest_score=lambda value, limit=limit: value / penalty(ranking, limit),  # type: ignore[misc]
        )
        assert [each.tokens for each in hypotheses] == [each.tokens for each in expected]
        for each, other in zip(hypotheses, expected, strict=True):
            assert each.log_prob == pytest.approx(other.log_prob, abs=1e-4)
            assert each.score == pytest.approx(other.score, abs=1e-4)


def penalty(ranking: Ranking, length: int) -> float:
    base = (5 + length) / 6 if ranking.normalization == "gnmt" else length
    return float(base**ranking.exponent)


def anything(tokens: Tokens, token: int) -> bool:
    return True


@each_model
@pytest.mark.parametrize(
    "ranking",
    [Ranking(1.0, "average"), Ranking(0.6, "gnmt", 0.4), Ranking(1.0, "average", 2.0)],
    ids=["average", "coverage", "both"],
)
def test_hypotheses_are_ranked_as_asked(name: str, ranking: Ranking) -> None:
    for seed in range(2):
        agrees(make(MODELS[name], seed=seed), BeamSearch(EOS, ranking, 4, n_best=4), [], anything)


def test_coverage_changes_what_is_found() -> None:
    plain, covering = (BeamSearch(EOS, Ranking(1.0, "gnmt", beta), 4, n_best=4) for beta in (0.0, 5.0))
    rules = Rules(LIMIT_B, eos=EOS)
    models = [make(MODELS["rnn"], seed=seed) for seed in range(5)]
    source_BS = padded(SOURCES)
    assert any(plain(model, source_BS, rules) != covering(model, source_BS, rules) for model in models)


@each_model
def test_greedy_search_counts_coverage_too(name: str) -> None:
    model, ranking = make(MODELS[name]), Ranking(1.0, "gnmt", 2.0)
    for source, (best,) in zip(
        SOURCES, greedy_search(EOS, ranking)(model, padded(SOURCES), Rules(LIMIT_B, eos=EOS)), strict=True
    ):
        attended = forced(model, source, best.tokens).attended_S
        covered = sum(math.log(min(max(each, 1e-4), 1.0)) for each in attended)
        length = len(best.tokens) + 1
        assert best.score == pytest.approx(best.log_prob / penalty(ranking, length) + 2.0 * covered, abs=1e-4)


@each_model
@pytest.mark.parametrize("order", [1, 2, 3])
def test_no_sequence_comes_twice(name: str, order: int) -> None:
    def allowed(tokens: Tokens, token: int) -> bool:
        extended = (*tokens, token)
        grams = Counter(extended[place : place + order] for place in range(len(extended) - order + 1))
        return token == EOS or max(grams.values(), default=0) < 2

    repeats = 0
    for seed in range(3):
        model = make(MODELS[name], seed=seed)
        agrees(model, BeamSearch(EOS, Ranking(1.0), 3, n_best=3), [NoRepeat(order)], allowed)
        rules = Rules(LIMIT_B, eos=EOS)
        for (best,) in greedy_search(EOS, Ranking())(model, padded(SOURCES), rules):
            repeats += not all(allowed(best.tokens[:place], token) for place, token in enumerate(best.tokens))
        rules = Rules(LIMIT_B, eos=EOS, bans=[NoRepeat(order)])
        for (best,) in greedy_search(EOS, Ranking())(model, padded(SOURCES), rules):
            assert all(allowed(best.tokens[:place], token) for place, token in enumerate(best.tokens))
    assert repeats > 0, "the test would pass without the rule"


@each_model
@pytest.mark.parametrize("least", [1, 3])
def test_nothing_ends_too_early(name: str, least: int) -> None:
    def allowed(tokens: Tokens, token: int) -> bool:
        return token != EOS or len(tokens) >= least

    for seed in range(2):
        model = make(MODELS[name], seed=seed)
        agrees(model, BeamSearch(EOS, Ranking(1.0), 3, n_best=3), [Shortest(least, eos=EOS)], allowed)


def test_the_limit_is_stronger_than_all_else() -> None:
    """A sentence that may have two tokens has two, even where five are asked for."""
    rules = Rules(torch.tensor([3, 3, 3]), eos=EOS, bans=[Shortest(5, eos=EOS), NoRepeat(1)])
    for search in (greedy_search(EOS, Ranking()), BeamSearch(EOS, Ranking(), 3)):
        for hypotheses in search(make(MODELS["rnn"]), padded(SOURCES), rules):
            assert len(hypotheses[0].tokens) == 2
            assert math.isfinite(hypotheses[0].score)
    assert max_lengths(torch.tensor([3, 10]), 1.5, 12).tolist() == [13, 13]
    assert max_lengths(torch.tensor([3, 10]), 1.5, 20).tolist() == [14, 21]


# ------------------------------------------------------------------------------------------------------------ prefixes


@each_model
def test_translations_begin_as_told(name: str) -> None:
    """Also where the prefix does what is forbidden otherwise; the score counts it."""
    prefixes = [[5, 5, 5], [], [4]]
    bans: list[Ban] = [NoRepeat(1)]
    for seed, beam in itertools.product(range(3), (1, 4)):
        model = make(MODELS[name], seed=seed)
        rules = Rules(LIMIT_B, eos=EOS, prefixes=prefixes, bans=bans)
        search = greedy_search(EOS, Ranking()) if beam == 1 else BeamSearch(EOS, Ranking(), beam, n_best=4)
        for source, prefix, hypotheses in zip(SOURCES, prefixes, search(model, padded(SOURCES), rules), strict=True):
            for each in hypotheses:
                assert list(each.tokens[: len(prefix)]) == prefix
                assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)


@each_model
def test_with_a_prefix_the_beam_is_the_beam_of_what_follows(name: str) -> None:
    ranking = Ranking(1.0)
    for seed in range(3):
        model = make(MODELS[name], seed=seed)
        search = BeamSearch(EOS, ranking, 4, n_best=4)
        (found,) = search(model, torch.tensor([SOURCES[0]]), Rules(LIMIT_B[:1], eos=EOS, prefixes=[[4, 1]]))
        expected = plain_beam(
            model, SOURCES[0], eos=EOS, limit=7, beam=4, n_best=4,
            score=lambda value, length, covered: value / penalty(ranking, length),
            allowed=lambda tokens, token: len(tokens) > 1 or token == (4, 1)[len(tokens)],
            longest_score=lambda value: value / penalty(ranking, 7),
        )  # fmt: skip
        assert [each.tokens for each in found] == [each.tokens for each in expected]


# ------------------------------------------------------------------------------------------------------- diverse beams


@each_model
@pytest.mark.parametrize(("beam", "groups", "diversity"), [(4, 2, 20.0), (6, 3, 0.7), (3, 3, 0.7), (4, 2, 0.0)])
def test_groups_keep_apart(name: str, beam: int, groups: int, diversity: float) -> None:
    for seed in range(2):
        search = BeamSearch(EOS, Ranking(1.0), beam, n_best=beam, groups=groups, diversity=diversity)
        agrees(make(MODELS[name], seed=seed), search, [], anything)


def test_diversity_brings_other_words() -> None:
    source_BS, rules = padded(SOURCES), Rules(LIMIT_B, eos=EOS)

    def begun(diversity: float) -> int:
        search = BeamSearch(EOS, Ranking(), 6, n_best=6, groups=3, diversity=diversity)
        found = [search(make(MODELS["rnn"], seed=seed), source_BS, rules) for seed in range(5)]
        return sum(len({each.tokens[:1] for each in hypotheses}) for batch in found for hypotheses in batch)

    assert begun(50.0) > begun(0.0)


# ----------------------------------------------------------------------------------------------------------- sampling


def test_draws_have_the_probabilities_of_the_model() -> None:
    """Chi-square over all short hypotheses and the rest, five standard deviations."""
    model = make(MODELS["rnn"])
    source, draws = SOURCES[1], 4000
    sampling = Sampling(EOS, Ranking(), draws, seed=3)
    (found,) = sampling(model, torch.tensor([source]), Rules(torch.tensor([30]), eos=EOS))
    counts = Counter(each.tokens for each in found)
    expected = {
        tokens: draws * math.exp(log_prob(model, source, tokens))
        for size in range(3)
        for tokens in itertools.product([0, 1, 2, 4, 5], repeat=size)
    }
    expected = {tokens: count for tokens, count in expected.items() if count >= 5}
    rest = draws - sum(expected.values())
    seen = sum(counts[tokens] for tokens in expected)
    chi_square = sum((counts[tokens] - count) ** 2 / count for tokens, count in expected.items())
    chi_square += (draws - seen - rest) ** 2 / rest
    freedom = len(expected)
    assert freedom >= 5
    assert chi_square <= freedom + 5 * (2 * freedom) ** 0.5


@each_model
def test_a_draw_depends_on_seed_and_sentence_alone(name: str) -> None:
    model = make(MODELS[name])

    def draw(sources: list[list[int]], *, count: int = 3, seed: int = 1) -> list[list[Tokens]]:
        rules = Rules(torch.full((len(sources),), 8), eos=EOS)
        found = Sampling(EOS, Ranking(), count, seed=seed, temperature=1.5)(model, padded(sources), rules)
        return [[each.tokens for each in hypotheses] for hypotheses in found]

    together = draw(SOURCES)
    assert draw(SOURCES[::-1]) == together[::-1]
    assert [draw([source])[0] for source in SOURCES] == together
    assert [each[:2] for each in draw(SOURCES, count=2)] == [each[:2] for each in together]
    assert [each[:3] for each in draw(SOURCES, count=9)] == together
    assert draw(SOURCES, seed=2) != together
    assert len({*together[0], *draw(SOURCES, count=20)[0]}) > 1


@each_model
def test_a_draw_is_scored_by_the_model_itself(name: str) -> None:
    """Not by the distribution that it was drawn from."""
    model = make(MODELS[name])
    sampling = Sampling(EOS, Ranking(0.5), 6, seed=1, temperature=0.5, top_k=3, top_p=0.9)
    for source, found in zip(SOURCES, sampling(model, padded(SOURCES), Rules(LIMIT_B, eos=EOS)), strict=True):
        for each in found:
            assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)
            assert each.score == pytest.approx(each.log_prob / ((5 + len(each.tokens) + 1) / 6) ** 0.5, abs=1e-4)


@each_model
def test_greedy_search_finds_the_same_without_scores(name: str) -> None:
    """Under bans, prefixes and coverage too."""
    model, tokens = make(MODELS[name]), set()
    for bans, prefixes in itertools.product(([], [NoRepeat(1)], [Shortest(3, eos=EOS)]), (None, [[5], [], [4, 4]])):
        rules = Rules(LIMIT_B, eos=EOS, bans=bans, prefixes=prefixes)
        scored, unscored = (
            [found for (found,) in search(model, padded(SOURCES), rules)]
            for search in (greedy_search(EOS, Ranking(1.0, coverage=0.5), scored) for scored in (True, False))
        )
        assert [each.tokens for each in unscored] == [each.tokens for each in scored]
        assert all(math.isfinite(each.score) and math.isfinite(each.log_prob) for each in scored)
        assert all(math.isnan(each.score) and math.isnan(each.log_prob) for each in unscored)
        tokens.add(tuple(each.tokens for each in scored))
    assert len(tokens) > 3


@pytest.mark.skipif(compiled() is None, reason="no C++ compiler: PyTorch's operations are used")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@torch.no_grad()
def test_searches_of_integers_find_the_same_without_logits(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit; but bans, prefixes and limits want to see them, and so do groups."""
    if not expected(torch.zeros(1)).has_product():
        pytest.skip("the CPU has no products of bytes")
    monkeypatch.setattr(log_normalizer, "implementation", kernel_log_normalizer)
    monkeypatch.setattr(top_tokens, "implementation", kernel_top_tokens)
    model = make(tree(), tokens=200).to(dtype)
    quantize(model, dtype)
    sources = [[4, 5, 1, 4, 3], [5, 3], [9, 5, 4, 3], *([token, 3] for token in range(10, 40))]
    formed: list[int] = []
    forward, best = OutputLayer.forward, Int8OutputLayer.top_tokens

    def counted(self: OutputLayer, readout_ND: Tensor) -> Tensor:
        formed.append(len(readout_ND))
        return forward(self, readout_ND)

    monkeypatch.setattr(OutputLayer, "forward", counted)
    ranking, found = Ranking(1.0), set()
    searches = {
        "greedy": greedy_search(EOS, ranking),
        "greedy without scores": greedy_search(EOS, ranking, scored=False),
        "beams": BeamSearch(EOS, ranking, beam=4, n_best=3),
        "groups": BeamSearch(EOS, ranking, beam=4, groups=2, diversity=0.5),
    }
    for (name, search), bans, prefixes in itertools.product(
        searches.items(), ([], [NoRepeat(1)]), (None, [[5], [], [4, 4]] * 11)
    ):
        rules = Rules(torch.tensor([7, 4, 6] * 11), eos=EOS, bans=bans, prefixes=prefixes)
        answers, steps_seen = [], []
        for is_known in (True, False):
            formed.clear()
            with monkeypatch.context() as patch:
                patch.setattr(Int8OutputLayer, "top_tokens", best if is_known else OutputLayer.top_tokens)
                answers.append(search(model, padded(sources), rules))
            steps_seen.append(len(formed))
        (without, through), (fewer, all_steps) = answers, steps_seen
        assert repr(without) == repr(through)
        # steps 4 to 7 may be the last of a sentence, 1 and 2 are given
        seen = all_steps if bans or name == "groups" else all_steps - (3 if prefixes is None else 1)
        assert fewer == seen, (name, bans, prefixes)
        found |= {each.tokens for several in through for each in several}
    assert len(found) > 30


def test_little_heat_and_one_choice_are_greedy_search() -> None:
    model = make(MODELS["rnn"])
    rules = Rules(LIMIT_B, eos=EOS)
    (greedy, *_), source_BS = greedy_search(EOS, Ranking())(model, padded(SOURCES), rules), padded(SOURCES)
    for settings in ({"temperature": 1e-3}, {"top_k": 1}, {"top_p": 1e-9}):
        (found, *_) = Sampling(EOS, Ranking(), 2, seed=1, **settings)(model, source_BS, rules)  # type: ignore[arg-type]
        assert {each.tokens for each in found} == {greedy[0].tokens}


def test_truncation_against_a_loop() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        logits = random.normal(size=7) * 2
        top_k, top_p = int(random.integers(1, 9)), float(random.uniform(0.05, 1.0))
        order = np.argsort(-logits)[:top_k]
        probability = np.exp(logits[order]) / np.exp(logits[order]).sum()
        kept, total = set(), 0.0
        for token, each in zip(order.tolist(), probability.tolist(), strict=True):
            if total < top_p:
                kept.add(token)
            total += each
        found = truncated(torch.tensor(logits)[None], top_k=top_k, top_p=top_p)[0]
        assert set(found.isfinite().nonzero()[:, 0].tolist()) == kept


# ----------------------------------------------------------------------------------------------------------- ensembles


def test_an_ensemble_means_probabilities() -> None:
    members = [make(MODELS["rnn"], seed=1), make(MODELS["transformer"], seed=2), make(MODELS["rnn"], seed=3)]
    ensemble = Ensemble(members)
    for search in (BeamSearch(EOS, Ranking(1.0), 4, n_best=4), greedy_search(EOS, Ranking(1.0))):
        found = search(ensemble, padded(SOURCES), Rules(LIMIT_B, eos=EOS))
        for source, hypotheses in zip(SOURCES, found, strict=True):
            for each in hypotheses:
                total = 0.0
                for place, token in enumerate((*each.tokens, EOS)):
                    probabilities = [
                        math.exp(forced(member, source, each.tokens[:place]).log_prob_V[token]) for member in members
                    ]
                    total += math.log(sum(probabilities) / len(members))
                assert each.log_prob == pytest.approx(total, abs=1e-4)


def test_an_ensemble_of_one_and_of_equals_is_the_model() -> None:
    model = make(MODELS["rnn"])
    search, rules = BeamSearch(EOS, Ranking(1.0), 4, n_best=2), Rules(LIMIT_B, eos=EOS)

    def texts(found: list[tuple[Hypothesis, ...]]) -> list[list[Tokens]]:
        return [[each.tokens for each in hypotheses] for hypotheses in found]

    alone = texts(search(model, padded(SOURCES), rules))
    assert texts(search(Ensemble([model]), padded(SOURCES), rules)) == alone
    assert texts(search(Ensemble([model, model]), padded(SOURCES), rules)) == alone


SEARCHES = {
    "greedy": greedy_search(EOS, Ranking(1.0)),
    "draws": Sampling(EOS, Ranking(1.0), count=3, seed=4),
    "beam": BeamSearch(EOS, Ranking(1.0, "gnmt", 0.3), 3, n_best=3),
    "groups": BeamSearch(EOS, Ranking(1.0), 4, n_best=2, groups=2),
    "constrained": ConstrainedBeamSearch(EOS, Ranking(1.0), 4, phrases=(((4,),), (), ((5, 4), (4,)))),
}


@pytest.mark.parametrize("kind", list(SEARCHES))
def test_it_is_the_same_how_many_rows_are_looked_at_together(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(MODELS["transformer"])
    seen: list[int] = []

    def few(rows: int, vocabulary: int, *, multiple_of: int = 1) -> list[slice]:
        found = row_parts(rows, vocabulary, multiple_of=multiple_of)
        seen.append(len(found))
        return found

    def search() -> list[tuple[Hypothesis, ...]]:
        rules = Rules(LIMIT_B, eos=EOS, prefixes=[(4,), (), (5,)], bans=[Shortest(3, eos=EOS)])
        return SEARCHES[kind](model, padded(SOURCES), rules)

    expected = search()
    monkeypatch.setitem(path.LOOK_EVERY, "cpu", 3)  # as a GPU is asked
    for module in (beam_search, path):
        monkeypatch.setattr(module, "row_parts", few)
    monkeypatch.setattr(output_layer, "MAX_LOGITS", 8)
    found = search()
    assert seen[0] >= 3  # a part for each sentence, or for each row
    for hypotheses, others in zip(found, expected, strict=True):
        assert [each.tokens for each in hypotheses] == [each.tokens for each in others]
        assert [each.score for each in hypotheses] == pytest.approx([each.score for each in others], abs=1e-5)
