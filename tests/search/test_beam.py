"""Beam search against plain loops over teacher forcing, and over models whose every probability is written down."""

from __future__ import annotations

import pytest
import torch

from nmt.ops import TopTokens, top_tokens
from nmt.search.beam import Beams, BeamSearch, Extensions, advance
from nmt.search.scoring import Ranking
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, SOURCE, agrees, beam_search, each_model, greedy, searched
from tests.search.scripted import scripted


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_a_sure_model_is_not_cut_short_by_early_ends(beam: int) -> None:
    """At each step the end is the second best token: K early ends are found long before the sentence is over."""
    sure = [[0.001, 0.001, 0.001, 0.02, 0.975, 0.002]] * 8 + [[0.001, 0.001, 0.001, 0.99, 0.005, 0.002]]
    for hypotheses in beam_search(scripted(sure), SOURCE, torch.tensor([30, 30]), beam=beam, exponent=1.0):
        assert hypotheses[0].tokens == (4,) * 8


def test_a_beam_finds_what_greedy_search_misses() -> None:
    # Greedy takes 4 (0.5) and then nothing better than 0.4: 0.2. After 5 the best is the same table here, so make the
    # difference at the end: an early end at 0.45 beats 0.5 * 0.4.
    table = [[0.01, 0.01, 0.01, 0.45, 0.5, 0.02], [0.1, 0.1, 0.1, 0.4, 0.2, 0.1]]
    limits = torch.tensor([9, 9])
    assert greedy(scripted(table), SOURCE, limits, exponent=0.0)[0].tokens == (4,)
    best = beam_search(scripted(table), SOURCE, limits, beam=2, exponent=0.0)[0][0]
    assert best.tokens == ()
    assert best.score == pytest.approx(torch.tensor(0.45).log().item(), abs=1e-5)


def test_search_goes_on_while_a_longer_hypothesis_may_still_win() -> None:
    """An early end is found at once, and the one unfinished hypothesis stands below it: as long as it is. By the length
    penalty of six tokens it is the better one."""
    sure = [0.004, 0.004, 0.004, 0.004, 0.98, 0.004]
    table = [[0.01, 0.01, 0.01, 0.5, 0.45, 0.02], *[sure] * 4, [0.006, 0.006, 0.006, 0.97, 0.006, 0.006]]
    limits = torch.tensor([9, 9])
    for best, *_ in beam_search(scripted(table), SOURCE, limits, beam=2, exponent=1.0):
        assert best.tokens == (4,) * 5


def test_equal_extensions_are_ranked_as_the_operation_ranks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 many are equal: a search with groups must choose among them as one without does."""

    def first_of_equal(logits_NV: torch.Tensor, count: int, normalized: bool) -> TopTokens:
        logit_NK, token_NK = (x_NV[:, :count].contiguous() for x_NV in logits_NV.sort(stable=True, descending=True))
        return TopTokens(logit_NK, token_NK, logits_NV.logsumexp(dim=1) if normalized else None)

    monkeypatch.setattr(top_tokens, "implementation", first_of_equal)
    beams, equal_NV = Beams(torch.empty(6, 0, dtype=torch.int64), torch.zeros(6)), torch.zeros(6, 40)
    for extensions in (
        Extensions.from_top_tokens(beams, top_tokens(equal_NV, 6, True), beam=3),
        Extensions.with_penalty(beams, equal_NV, torch.zeros(2, 40), beam=3),
    ):
        assert extensions.parent_BW.tolist() == [[0] * 6, [3] * 6]
        assert extensions.token_BW.tolist() == [list(range(6))] * 2


def test_advance_keeps_the_best_and_names_their_parents() -> None:
    beams = Beams(torch.tensor([[7], [8], [7], [8]]), torch.tensor([-1.0, -2.0, -1.0, -torch.inf]))
    log_probs = torch.tensor([[-0.1, -9.0, -9.0, -3.0], [-0.5, -0.2, -9.0, -0.3], [-2.0, -1.0, -9.0, -0.1], [0.0] * 4])
    unpenalized = Extensions.with_penalty(beams, log_probs, torch.zeros(2, 4), beam=2)
    step = advance(beams, unpenalized, beam=2, eos=3)
    # sentence 0: -1.1 (row 0, token 0), -2.2 (row 1, token 1), then the end at -2.3 is third: not among the first two
    # sentence 1: the end at -1.1 is first, then -2.0 (token 1) and -3.0 (token 0)
    assert step.parents_N.tolist() == [0, 1, 2, 2]
    assert step.beams.tokens_NT.tolist() == [[7, 0], [8, 1], [7, 1], [7, 0]]
    assert step.beams.log_prob_N.tolist() == pytest.approx([-1.1, -2.2, -2.0, -3.0])
    assert step.ended_BW.flatten().tolist() == pytest.approx([-torch.inf, -torch.inf, -1.1, -torch.inf])
    assert step.ended_parent_BW[1, 0] == 2
    # the same from the top tokens of each row, with logits that are not normalized
    more_N = torch.tensor([3.0, -2.0, 0.5, 7.0])
    top = TopTokens(*(log_probs + more_N[:, None]).topk(4, dim=1), more_N)
    extensions = Extensions.from_top_tokens(beams, top, beam=2)
    torch.testing.assert_close(extensions.log_prob_BW, unpenalized.log_prob_BW)
    assert torch.equal(extensions.parent_BW, unpenalized.parent_BW)
    assert torch.equal(extensions.token_BW, unpenalized.token_BW)


@each_model
@pytest.mark.parametrize(
    "ranking",
    [Ranking(1.0, "average"), Ranking(0.6, "gnmt", 0.4), Ranking(1.0, "average", 2.0)],
    ids=["average", "coverage", "both"],
)
def test_hypotheses_are_ranked_as_asked(name: str, ranking: Ranking) -> None:
    for seed in range(2):
        agrees(make(MODELS[name], seed=seed), BeamSearch(EOS, ranking, 4, n_best=4))


def test_coverage_changes_what_is_found() -> None:
    plain, covering = (BeamSearch(EOS, Ranking(1.0, "gnmt", beta), 4, n_best=4) for beta in (0.0, 5.0))
    models = [make(MODELS["rnn"], seed=seed) for seed in range(5)]
    assert any(searched(plain, model) != searched(covering, model) for model in models)


@each_model
@pytest.mark.parametrize(("beam", "groups", "diversity"), [(4, 2, 20.0), (6, 3, 0.7), (3, 3, 0.7), (4, 2, 0.0)])
def test_groups_keep_apart(name: str, beam: int, groups: int, diversity: float) -> None:
    for seed in range(2):
        search = BeamSearch(EOS, Ranking(1.0), beam, n_best=beam, groups=groups, diversity=diversity)
        agrees(make(MODELS[name], seed=seed), search)


def test_diversity_brings_other_words() -> None:
    def begun(diversity: float) -> int:
        search = BeamSearch(EOS, Ranking(), 6, n_best=6, groups=3, diversity=diversity)
        found = [searched(search, make(MODELS["rnn"], seed=seed)) for seed in range(5)]
        return sum(len({each.tokens[:1] for each in hypotheses}) for batch in found for hypotheses in batch)

    assert begun(50.0) > begun(0.0)
