"""Ensembles, against plain loops over teacher forcing."""

from __future__ import annotations

import math

import pytest

from nmt.models.ensemble import Ensemble
from nmt.search.beam import BeamSearch
from nmt.search.hypothesis import Hypothesis
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make, tree
from tests.search.plain_search import EOS, LIMIT_B, MODELS, SOURCES, Tokens, forced, padded


def test_an_ensemble_means_probabilities() -> None:
    members = [make(MODELS["rnn"], seed=1), make(MODELS["transformer"], seed=2), make(MODELS["rnn"], seed=3)]
    members += [make(tree(score="none", decoder={"kind": kind})) for kind in ("reencoding", "glimpses")]
    ensemble = Ensemble(members)
    for search in (BeamSearch(EOS, Ranking(1.0), 4, n_best=4), greedy_search(EOS, Ranking(1.0))):
        found = search(ensemble, padded(SOURCES), LogitsProcessors(LIMIT_B, eos=EOS))
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
    search, processors = BeamSearch(EOS, Ranking(1.0), 4, n_best=2), LogitsProcessors(LIMIT_B, eos=EOS)

    def texts(found: list[tuple[Hypothesis, ...]]) -> list[list[Tokens]]:
        return [[each.tokens for each in hypotheses] for hypotheses in found]

    alone = texts(search(model, padded(SOURCES), processors))
    assert texts(search(Ensemble([model]), padded(SOURCES), processors)) == alone
    assert texts(search(Ensemble([model, model]), padded(SOURCES), processors)) == alone
