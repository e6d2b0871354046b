"""The comparison of the aligner's settings: the probability of a sentence, and that the settings reach the models."""

from __future__ import annotations

import math
from itertools import product

import compare_aligner_settings as script
import pytest

from nmt.alignment.error_rate import Gold
from nmt.extras.aligner import hmm
from tests.scripts.conftest import figures

LINES = ["a b c", "b a", "c c a", "b c"] * 5, ["x y z", "y x", "z z x", "y z"] * 5


def test_the_probability_of_a_sentence_is_the_sum_over_all_alignments() -> None:
    member = script.learnt(*LINES)
    models, direction = member.models, member.models.forward
    source = member.source.numbered(script.sentences(["c a b"])).tokens_B[0]
    target = member.target.numbered(script.sentences(["z new x"])).tokens_B[0]
    pairs = models.pair_E.tolist()
    centre, total = hmm.FARTHEST_JUMP, 0.0

    def share(position: int, last: int | None) -> float:
        weights = [
            float(direction.first_W1[i] if last is None else direction.jump_J[centre + i - last]) for i in range(3)
        ]
        return weights[position] / sum(weights)

    for alignment in product([None, 0, 1, 2], repeat=3):
        p, last = 1.0, None
        for t, i in zip(target.tolist(), alignment, strict=True):
            if i is None:
                p *= hmm.EMPTY_PROBABILITY * float(direction.empty_V1[min(t, 3)])
                continue
            s = source.tolist()[i]
            rest = direction.unseen_U1 if t < 3 else direction.unknown_U1
            pair = 3 * s + t
            link = direction.link_E[pairs.index(pair)] if t < 3 and pair in pairs else rest[s]
            p *= (1 - hmm.EMPTY_PROBABILITY) * share(i, last) * float(link)
            last = i
        total += p
    index_ST = script.pair_indices({pair: at for at, pair in enumerate(pairs)}, models, source, target)
    assert script.log_likelihood(direction, index_ST, source, target) == pytest.approx(math.log(total), rel=1e-5)


def test_means_of_kinds_are_those_of_members_learnt_apart(capsys: pytest.CaptureFixture[str]) -> None:
    text, gold_text = [list(side) for side in LINES], (["a b c", "b a"], ["x y z", "y x"])
    gold = [Gold(frozenset(pairs), frozenset()) for pairs in ({(0, 0), (1, 1)}, {(0, 1)})]
    script.compare_units([["w"], ["4", "p.5"]], text, gold_text, gold)
    values = figures(capsys.readouterr().out)
    members = [script.learnt(*LINES, letters=4), script.learnt(*LINES, share=0.5)]
    for name, used in (("w", [script.learnt(*LINES)]), ("4 p.5", members)):
        found = script.text_aligner(used, text).align(*gold_text)
        expected = 100 * script.score([each.links for each in found], gold).aer
        assert values[f"{name}: AER"] == pytest.approx(expected, rel=1e-3)
        assert values[f"{name}: learning"] > 0


def test_a_share_is_that_of_pieces() -> None:
    member = script.learnt(*LINES, share=0.5)
    assert isinstance(member.source.word_units, script.Subwords)
    assert isinstance(member.target.word_units, script.Subwords)


@pytest.mark.parametrize("changes", [each for each in script.SETTINGS[1:] if "share" not in each], ids=str)
def test_every_setting_changes_the_models(changes: dict[str, float]) -> None:
    usual = script.learnt(*LINES).models
    small = {"MOST_PAIRS": 2, "FARTHEST_JUMP": 1}
    with script.changed({key: small.get(key, value) for key, value in changes.items()}) as options:
        other = script.learnt(*LINES, **options).models
    assert (
        other.forward.empty_probability != usual.forward.empty_probability
        or len(other.forward.jump_J) != len(usual.forward.jump_J)
        or len(other.pair_E) != len(usual.pair_E)
        or (other.forward.link_E != usual.forward.link_E).any()
    )
    assert hmm.PRIOR == 1e-3
