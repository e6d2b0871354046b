"""Every search against the interface, and the probabilities of its hypotheses against the model's."""

from __future__ import annotations

import pytest
import torch

from nmt.core.device import SYNC_INTERVAL
from nmt.extras.decoding.constrained_search import ConstrainedBeamSearch
from nmt.nn import output
from nmt.search.beam import BeamSearch
from nmt.search.hypothesis import Hypothesis, Search
from nmt.search.logits_processors import Suppress
from nmt.search.sampling import Sampling
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, SOURCES, each_model, log_prob, penalty, searched

SEARCHES: dict[str, Search] = {
    "greedy": greedy_search(EOS, Ranking(1.0)),
    "draws": Sampling(EOS, Ranking(1.0), count=3, seed=4),
    "beam": BeamSearch(EOS, Ranking(1.0, "gnmt", 0.3), 3, n_best=3),
    "groups": BeamSearch(EOS, Ranking(1.0), 4, n_best=2, groups=2),
    "constrained": ConstrainedBeamSearch(EOS, Ranking(1.0), 4, phrases=((((4,),),), (), (((5, 4), (1,)), ((4,),)))),
}

RANKING = Ranking(0.5)


@each_model
@pytest.mark.parametrize(
    ("search", "count"),
    [
        (greedy_search(EOS, RANKING), 1),
        (Sampling(EOS, RANKING, 6, seed=1, temperature=0.5, top_k=3, top_p=0.9), 6),
        (BeamSearch(EOS, RANKING, 3, n_best=3), 3),
    ],
    ids=["greedy", "draws", "beam"],
)
def test_hypotheses_have_the_probability_of_the_model_and_the_score_of_the_ranking(
    name: str, search: Search, count: int
) -> None:
    """Draws not that of the distribution that they were drawn from."""
    model = make(MODELS[name])
    for source, found in zip(SOURCES, searched(search, model), strict=True):
        assert 0 < len(found) <= count
        for each in found:
            assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)
            assert each.score == pytest.approx(each.log_prob / penalty(RANKING, len(each.tokens) + 1), abs=1e-4)
        if isinstance(search, Sampling):
            assert len(found) == count
        else:
            assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@pytest.mark.parametrize("kind", list(SEARCHES))
def test_results_do_not_depend_on_the_rows_whose_logits_exist_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(MODELS["transformer"])

    def search() -> list[tuple[Hypothesis, ...]]:
        return searched(SEARCHES[kind], model, prefixes=[(4,), (), (5,)], processors=[Suppress(EOS, before=3)])

    expected = search()
    monkeypatch.setitem(SYNC_INTERVAL, "cpu", 3)  # fewer checks, as on a GPU
    monkeypatch.setattr(output, "MAX_LOGITS", 8)
    assert len(output.row_parts(torch.zeros(3), 6)) == 3  # one row, or one sentence, at a time
    for hypotheses, others in zip(search(), expected, strict=True):
        assert [each.tokens for each in hypotheses] == [each.tokens for each in others]
        assert [each.score for each in hypotheses] == pytest.approx([each.score for each in others], abs=1e-5)
