"""Every weighting against its formula, written out for one query at a time; draws against their distribution."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameter, Sizes, Weighting
from nmt.attention.registry import WEIGHTS
from nmt.models.position_losses import reinforce_loss
from tests.attention.oracles import (
    WEIGHT_ORACLES,
    WEIGHTINGS,
    Asking,
    attention_config,
    one_hot,
    predicted_centre,
    simplex_projection,
    softmax,
    window,
)

B, T, S, Q = 4, 7, 6, 3
LENGTH_B = torch.tensor([6, 4, 1, 2])

every_normalizer = pytest.mark.parametrize("text", WEIGHTINGS)


def normalizer(text: str) -> Weighting:
    return attention_config(weights=text).weights


def parameters_of(rule: Weighting, *, seed: int = 4) -> dict[str, Tensor]:
    """What it asks for, drawn so that no two queries get the same of it."""
    draw = torch.Generator().manual_seed(seed)

    def made(parameter: Parameter) -> Tensor:
        return 2.0 * torch.randn(parameter.shape, generator=draw)

    return {name: made(each) for name, each in rule.parameters(Sizes(query=Q, key=Q)).items()}


def batch(*, training: bool = False, update: int = 0, spread: float = 2.0) -> tuple[Tensor, AttentionContext]:
    """Scores of sentences of 6, 4, 1 and 2 words, queried from positions within them and past their ends."""
    draw = torch.Generator().manual_seed(8)
    scores_BHTS = spread * torch.randn(B, 1, T, S, generator=draw)
    scores_BHTS = scores_BHTS.masked_fill(torch.arange(S) >= LENGTH_B[:, None, None, None], -torch.inf)
    position_BT = torch.stack([torch.arange(T) + start for start in (0, 0, 2, 9)])
    return scores_BHTS, AttentionContext(torch.randn(B, T, Q, generator=draw), position_BT, training, update)


def weigh(text: str, scores_BHTS: Tensor, context: AttentionContext) -> AttentionWeights:
    rule = normalizer(text)
    return rule(scores_BHTS, context, parameters_of(rule))


@pytest.mark.parametrize("name", list(WEIGHTS))
def test_every_normalizer_has_an_oracle(name: str) -> None:
    assert name in WEIGHT_ORACLES, f"write an oracle for {name} from its paper"
    assert any(normalizer(text).kind == name for text in WEIGHTINGS), f"try {name}"


@every_normalizer
@pytest.mark.parametrize("spread", [0.3, 2.0, 8.0])
def test_weights_in_decoding_equal_plain_loops(text: str, spread: float) -> None:
    rule, (scores_BHTS, context) = normalizer(text), batch(spread=spread)
    parameters = parameters_of(rule)
    weights_BHTS, sampled, _ = rule(scores_BHTS, context, parameters)
    assert sampled is None
    assert weights_BHTS.shape == (B, rule.heads, T, S)
    assert weights_BHTS.dtype == torch.float32
    for b, length in enumerate(LENGTH_B.tolist()):
        for t in range(T):
            asking = Asking(context.query_BTQ[b, t].double().tolist(), int(context.position_BT[b, t]))
            scores = scores_BHTS[b, 0, t, :length].double().tolist()
            heads = WEIGHT_ORACLES[rule.kind](rule, parameters, scores, asking)
            assert len(heads) == rule.heads
            for head, expected in enumerate(heads):
                assert weights_BHTS[b, head, t, :length].tolist() == pytest.approx(expected, abs=1e-5)


@every_normalizer
@pytest.mark.parametrize("training", [True, False], ids=["training", "decoding"])
def test_padding_gets_exactly_nothing_and_the_rest_sums_to_one(text: str, training: bool) -> None:
    torch.manual_seed(0)
    for update in (0, 10_000):
        scores_BHTS, context = batch(training=training, update=update)
        weights_BHTS = weigh(text, scores_BHTS, context).weights_BHTS
        assert weights_BHTS.dtype == torch.float32
        is_pad_BS = torch.arange(S) >= LENGTH_B[:, None]
        assert (weights_BHTS[is_pad_BS[:, None, None].expand_as(weights_BHTS)] == 0).all()
        assert (weights_BHTS >= 0).all()
        torch.testing.assert_close(weights_BHTS.sum(-1), torch.ones(weights_BHTS.shape[:-1]))


@every_normalizer
@pytest.mark.parametrize("training", [True, False], ids=["training", "decoding"])
def test_gradients_are_finite_where_scores_are_not(text: str, training: bool) -> None:
    """Padding at -inf, and scores so far apart that probabilities are rounded to 0."""
    torch.manual_seed(0)
    scores_BHTS, context = batch(training=training)
    scores_BHTS[0, 0, 0] = torch.tensor([0.0, -300.0, 5.0, -1e4, 4.0, -30.0])
    scores_BHTS.requires_grad_()
    weights_BHTS, sampled, _ = weigh(text, scores_BHTS, context)
    outcome = (weights_BHTS * torch.randn_like(weights_BHTS)).sum()
    if sampled is not None:
        outcome = outcome + reinforce_loss([sampled], -torch.rand(B, T), torch.zeros(B, T, dtype=torch.bool))
    if outcome.requires_grad:
        outcome.backward()
        assert scores_BHTS.grad is not None
        assert scores_BHTS.grad.isfinite().all()
        assert (scores_BHTS.grad[scores_BHTS.isinf()] == 0).all()


# ---- sparsemax


def sparsemax(scores: Tensor) -> Tensor:
    """Over the last dimension, in the precision of ``scores``."""
    scores_11TS = scores.reshape(1, 1, -1, scores.shape[-1])
    rows = scores_11TS.shape[2]
    context = AttentionContext(torch.zeros(1, rows, 0), torch.zeros(1, rows), False, 0)
    return WEIGHTS["sparsemax"]()(scores_11TS, context, {}).weights_BHTS.reshape(scores.shape)


def random_scores(count: int, size: int, *, seed: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    scale_N1 = torch.logspace(-1, 1, count, dtype=torch.float64)[:, None]
    return scale_N1 * torch.randn(count, size, dtype=torch.float64, generator=draw)


def test_sparsemax_meets_the_conditions_of_the_nearest_point_on_the_simplex() -> None:
    """Karush, Kuhn and Tucker's: one tau lies between score and weight wherever there is weight, and no score without
    weight is above it."""
    scores_NS = random_scores(200, 7, seed=1)
    zeros = 0
    for scores, weights in zip(scores_NS.tolist(), sparsemax(scores_NS).tolist(), strict=True):
        assert sum(weights) == pytest.approx(1.0, abs=1e-12)
        assert min(weights) >= 0.0
        taus = [score - weight for score, weight in zip(scores, weights, strict=True) if weight > 0.0]
        assert taus == pytest.approx([taus[0]] * len(taus), abs=1e-12)
        below = [score for score, weight in zip(scores, weights, strict=True) if weight == 0.0]
        assert all(score <= taus[0] + 1e-12 for score in below)
        zeros += len(below)
    assert 300 < zeros < 1300, "some weights are exactly 0, and some are not"


def test_sparsemax_is_nearer_than_any_other_point_of_a_grid_over_the_simplex() -> None:
    grid = [(a / 20, b / 20, (20 - a - b) / 20) for a in range(21) for b in range(21 - a)]

    def distance(point: Any, scores: list[float]) -> float:
        return sum((p - z) ** 2 for p, z in zip(point, scores, strict=True))

    scores_NS = random_scores(40, 3, seed=2)
    for scores, weights in zip(scores_NS.tolist(), sparsemax(scores_NS).tolist(), strict=True):
        assert distance(weights, scores) <= min(distance(point, scores) for point in grid) + 1e-12
        assert weights == pytest.approx(simplex_projection(scores), abs=1e-12)


def test_sparsemaxs_jacobian_is_that_of_the_paper_and_the_numerical_one() -> None:
    """Equation 9: diag(s) - s s^T / |S|, s saying which weights are not 0."""
    step = 1e-6
    for scores_S in random_scores(20, 5, seed=3):
        jacobian_SS = torch.autograd.functional.jacobian(sparsemax, scores_S)
        support_S = (sparsemax(scores_S) > 0).double()
        torch.testing.assert_close(jacobian_SS, support_S.diag() - support_S.outer(support_S) / support_S.sum())
        for place, unit_S in enumerate(torch.eye(5, dtype=torch.float64)):
            numerical_S = (sparsemax(scores_S + step * unit_S) - sparsemax(scores_S - step * unit_S)) / (2 * step)
            torch.testing.assert_close(jacobian_SS[:, place], numerical_S, atol=1e-8, rtol=0.0)


def test_sparsemax_of_padded_scores_is_that_of_the_rest() -> None:
    scores_NS = random_scores(30, 4, seed=4).requires_grad_()
    padded_NS = torch.cat([scores_NS, torch.full((30, 2), -torch.inf, dtype=torch.float64)], dim=1)
    back_NS = torch.randn(30, 4, dtype=torch.float64)
    weights_NS = sparsemax(padded_NS)
    assert (weights_NS[:, 4:] == 0).all()
    torch.testing.assert_close(weights_NS[:, :4], sparsemax(scores_NS))
    (gradient,) = torch.autograd.grad((weights_NS[:, :4] * back_NS).sum(), scores_NS)
    (expected,) = torch.autograd.grad((sparsemax(scores_NS) * back_NS).sum(), scores_NS)
    torch.testing.assert_close(gradient, expected)


def test_sparsemax_of_large_scores_still_sums_to_one() -> None:
    scores_NS = (random_scores(50, 6, seed=5) + 3e4).float()
    torch.testing.assert_close(sparsemax(scores_NS).sum(-1), torch.ones(50))
    assert sparsemax(torch.full((1, 4), 1e4)).tolist() == [[0.25] * 4]


# ---- local


def test_a_local_window_moves_with_the_target_and_stops_at_the_end() -> None:
    scores_BHTS, context = batch(spread=0.5)
    weights_BTS = weigh("{kind: local_m, width: 1}", scores_BHTS, context).weights_BHTS[:, 0]
    support = [[each.nonzero()[:, 0].tolist() for each in row] for row in weights_BTS]
    assert support[0] == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5], [4, 5]]
    assert support[1] == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3], [2, 3], [2, 3], [2, 3]]
    assert support[2] == [[0]] * T
    assert support[3] == [[0, 1]] * T


def test_a_predicted_window_is_gaussian_round_its_centre() -> None:
    """With equal scores the weights are the Gaussian alone: their logarithms fall by the square of the distance."""
    rule, width, length = normalizer("{kind: local_p, width: 4}"), 4, 30
    parameters = parameters_of(rule)
    query_1TQ = torch.randn(1, 50, Q, generator=torch.Generator().manual_seed(6)) * torch.linspace(0, 2, 50)[:, None]
    context = AttentionContext(query_1TQ, torch.zeros(1, 50), False, 0)
    weights_11TS = rule(torch.zeros(1, 1, 50, length), context, parameters).weights_BHTS
    centres = [predicted_centre(parameters, query, length) for query in query_1TQ[0].double().tolist()]
    assert min(centres) < 1.0, "windows at the beginning"
    assert max(centres) > length - 1.0, "at the end"
    assert any(10.0 < each < 20.0 for each in centres), "and in between"
    for centre, weights_S in zip(centres, weights_11TS[0, 0], strict=True):
        inside = [place for place in range(length) if abs(place - centre) <= width]
        assert weights_S.nonzero()[:, 0].tolist() == inside
        for one, other in itertools.pairwise(inside):
            exponents = [-((place - centre) ** 2) / (2 * (width / 2) ** 2) for place in (one, other)]
            ratio = math.exp(exponents[1] - exponents[0])
            assert (weights_S[other] / weights_S[one]).item() == pytest.approx(ratio, rel=1e-3)


def test_a_predicted_centre_learns() -> None:
    """The window's gradient moves it towards what is wanted of it."""
    rule = normalizer("{kind: local_p, width: 3}")
    parameters = {name: each.requires_grad_() for name, each in parameters_of(rule).items()}
    context = AttentionContext(torch.ones(1, 1, Q), torch.zeros(1, 1), True, 0)
    optimizer = torch.optim.Adam(parameters.values(), lr=0.1)
    for _ in range(60):
        weights_S = rule(torch.zeros(1, 1, 1, 12), context, parameters).weights_BHTS[0, 0, 0]
        mean_place = (weights_S * torch.arange(12)).sum()
        optimizer.zero_grad()
        (mean_place - 4.0).square().backward()
        optimizer.step()
    assert mean_place.item() == pytest.approx(4.0, abs=0.3)


# ---- draws


DRAWS = 20_000
SCORES_S = [0.5, -1.0, 2.0, 1.2, 0.0]


HARD, GLIMPSE = "{kind: hard, expected: 0}", "{kind: glimpse, expected: 0}"
"""Without expectations in place of draws."""


def drawn(text: str, *, update: int = 0) -> Tensor:
    """The position drawn by each of many queries with the same scores, of five words and two of padding."""
    scores_BHTS = torch.tensor([*SCORES_S, -math.inf, -math.inf]).repeat(2, 1, DRAWS // 2, 1)
    context = AttentionContext(torch.zeros(2, DRAWS // 2, Q), torch.zeros(2, DRAWS // 2), True, update)
    weights_BTS = weigh(text, scores_BHTS, context).weights_BHTS[:, 0]
    assert ((weights_BTS == 0).sum(-1) == 6).all(), "all weight is on one position"
    return weights_BTS.argmax(-1).flatten()


@pytest.mark.parametrize("text", [HARD, "gumbel", "{kind: gumbel, start: 5, end: 5}", GLIMPSE])
def test_positions_are_drawn_as_often_as_softmax_says(text: str) -> None:
    torch.manual_seed(11)
    counts = torch.bincount(drawn(text), minlength=7).tolist()
    assert counts[5:] == [0, 0], "padding is never drawn"
    expected = [DRAWS * p for p in softmax(SCORES_S)]
    chi_squared = sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=False))
    assert chi_squared < 18.5  # 4 degrees of freedom: p = 0.001
    for count, mean in zip(counts, expected, strict=False):
        assert abs(count - mean) < 4 * math.sqrt(mean * (1 - mean / DRAWS))


@pytest.mark.parametrize("text", [HARD, "gumbel", GLIMPSE])
def test_each_query_draws_for_itself_and_a_seed_repeats_it(text: str) -> None:
    torch.manual_seed(5)
    first = drawn(text)
    assert (first[: DRAWS // 2] != first[DRAWS // 2 :]).any()
    assert not torch.equal(drawn(text), first)
    torch.manual_seed(5)
    assert torch.equal(drawn(text), first)


@pytest.mark.parametrize("text", [HARD, GLIMPSE])
def test_a_draw_is_recorded_as_it_was_made(text: str) -> None:
    torch.manual_seed(2)
    rule, (scores_BHTS, context) = normalizer(text), batch(training=True)
    parameters = parameters_of(rule)
    weights_BHTS, sampled, _ = rule(scores_BHTS, context, parameters)
    assert sampled is not None
    baseline, offset = parameters["baseline_Q"].tolist(), parameters["baseline_offset_1"].item()
    for b, length in enumerate(LENGTH_B.tolist()):
        for t in range(T):
            chosen = weights_BHTS[b, 0, t].tolist().index(1.0)
            p = softmax(scores_BHTS[b, 0, t, :length].double().tolist())
            assert sampled.log_prob_BT[b, t].item() == pytest.approx(math.log(p[chosen]), abs=1e-5)
            assert sampled.entropy_BT[b, t].item() == pytest.approx(-sum(each * math.log(each) for each in p), abs=1e-5)
            expected = sum(w * q for w, q in zip(baseline, context.query_BTQ[b, t].tolist(), strict=True)) + offset
            assert sampled.baseline_BT[b, t].item() == pytest.approx(expected, abs=1e-5)
            for head, weights_S in enumerate(weights_BHTS[b].transpose(0, 1)[t]):
                assert weights_S[:length].tolist() == pytest.approx(window(length, chosen, 2**head - 1))


@pytest.mark.parametrize("kind", ["hard", "glimpse"])
@pytest.mark.parametrize("expected", [0.2, 0.5, 0.9])
def test_a_share_of_the_steps_looks_through_the_expectation(kind: str, expected: float) -> None:
    """Weights, and how they depend on the scores, against windows in plain loops: of the one position that was drawn,
    or each window times its position's probability."""
    torch.manual_seed(4)
    rule = normalizer(f"{{kind: {kind}, expected: {expected}}}")
    length, steps = len(SCORES_S), 400
    scores_11TS = torch.tensor([*SCORES_S, -math.inf, -math.inf]).repeat(1, 1, steps, 1).requires_grad_()
    context = AttentionContext(torch.zeros(1, steps, Q), torch.zeros(1, steps), True, 0)
    weights_1HTS, sampled, _ = rule(scores_11TS, context, parameters_of(rule))
    assert sampled is not None
    is_drawn_T = sampled.is_drawn_BT[0]
    share = 1 - is_drawn_T.double().mean().item()
    assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / steps)
    back_HS = torch.randn(rule.heads, length + 2)
    (gradient_11TS,) = torch.autograd.grad((weights_1HTS * back_HS[None, :, None]).sum(), scores_11TS)
    p = softmax(SCORES_S)
    windows_HPS = [[window(length, place, 2**head - 1) for place in range(length)] for head in range(rule.heads)]
    value_P = [
        sum(back_HS[head, s].item() * windows_HPS[head][place][s] for head in range(rule.heads) for s in range(length))
        for place in range(length)
    ]
    mean = sum(p[place] * value_P[place] for place in range(length))
    for t in range(steps):
        ours_HS = weights_1HTS[0, :, t].detach()
        assert (ours_HS[:, length:] == 0).all()
        if is_drawn_T[t]:
            place = ours_HS[0].tolist().index(1.0)
            looked_P = [float(each == place) for each in range(length)]
            assert (gradient_11TS[0, 0, t] == 0).all()
        else:
            looked_P = p
            by_hand = [p[place] * (value_P[place] - mean) for place in range(length)]
            assert gradient_11TS[0, 0, t, :length].tolist() == pytest.approx(by_hand, abs=1e-5)
        for head, windows_PS in enumerate(windows_HPS):
            wanted = [sum(looked_P[q] * windows_PS[q][s] for q in range(length)) for s in range(length)]
            assert ours_HS[head, :length].tolist() == pytest.approx(wanted, abs=1e-6)


def test_the_exact_sum_trains_on_probabilities_and_decodes_the_best() -> None:
    text = "{kind: hard, training: marginal}"
    assert normalizer(text).parameters(Sizes(Q, Q)) == {}
    assert normalizer(text).marginalizes
    assert not normalizer("hard").marginalizes
    scores_BHTS, context = batch(training=True)
    weights_BHTS, sampled, _ = weigh(text, scores_BHTS, context)
    assert sampled is None
    for b, length in enumerate(LENGTH_B.tolist()):
        for t in range(T):
            expected = softmax(scores_BHTS[b, 0, t, :length].double().tolist())
            assert weights_BHTS[b, 0, t, :length].tolist() == pytest.approx(expected, abs=1e-6)


# ---- argmax


def test_argmaxs_gradient_is_that_of_softmax() -> None:
    """Computes the gradient by hand: d softmax(z)_i / d z_j = p_i ((i = j) - p_j), while all weight is on the best
    score."""
    scores_BHTS, context = batch(training=True)
    scores_BHTS.requires_grad_()
    back_BHTS = torch.randn(scores_BHTS.shape)
    weights_BHTS, sampled, _ = weigh("argmax", scores_BHTS, context)
    assert sampled is None
    (gradient_BHTS,) = torch.autograd.grad((weights_BHTS * back_BHTS).sum(), scores_BHTS)
    for b, length in enumerate(LENGTH_B.tolist()):
        for t in range(T):
            scores, back = (each[b, 0, t, :length].double().tolist() for each in (scores_BHTS.detach(), back_BHTS))
            assert weights_BHTS[b, 0, t, :length].tolist() == one_hot(scores)
            p = softmax(scores)
            expected = [sum(back[i] * p[i] * ((i == j) - p[j]) for i in range(length)) for j in range(length)]
            assert gradient_BHTS[b, 0, t, :length].tolist() == pytest.approx(expected, abs=1e-5)
            assert (gradient_BHTS[b, 0, t, length:] == 0).all()


# ---- gumbel


@pytest.mark.parametrize("update", [0, 500, 2000])
def test_gumbels_gradient_is_that_of_the_relaxed_draw(update: int) -> None:
    """Computes the gradient by hand from the same noise: d softmax((z + g) / tau)_i / d z_j = p_i ((i = j) - p_j) /
    tau."""
    tau = 2.0 * (0.25 / 2.0) ** (min(update, 1000) / 1000)
    text = "{kind: gumbel, start: 2, end: 0.25, updates: 1000}"
    scores_BHTS, context = batch(training=True, update=update)
    scores_BHTS.requires_grad_()
    back_BHTS = torch.randn(scores_BHTS.shape)
    torch.manual_seed(9)
    weights_BHTS = weigh(text, scores_BHTS, context).weights_BHTS
    (gradient_BHTS,) = torch.autograd.grad((weights_BHTS * back_BHTS).sum(), scores_BHTS)
    torch.manual_seed(9)
    noise_BHTS = -torch.empty(scores_BHTS.shape).exponential_().log()
    for b, length in enumerate(LENGTH_B.tolist()):
        for t in range(T):
            scores, noise, back = (
                each[b, 0, t, :length].double().tolist() for each in (scores_BHTS.detach(), noise_BHTS, back_BHTS)
            )
            noisy = [score + g for score, g in zip(scores, noise, strict=True)]
            assert weights_BHTS[b, 0, t, :length].tolist() == [float(each == max(noisy)) for each in noisy]
            p = softmax([each / tau for each in noisy])
            expected = [sum(back[i] * p[i] * ((i == j) - p[j]) / tau for i in range(length)) for j in range(length)]
            assert gradient_BHTS[b, 0, t, :length].tolist() == pytest.approx(expected, abs=1e-5)
            assert (gradient_BHTS[b, 0, t, length:] == 0).all()


def test_gumbels_temperature_falls_by_the_same_factor_each_update_and_stays() -> None:
    rule = normalizer("{kind: gumbel, start: 4, end: 0.25, updates: 100}")
    assert [rule.temperature(update) for update in (0, 25, 50, 75, 100, 101, 10_000)] == pytest.approx(  # type: ignore[attr-defined]
        [4.0, 2.0, 1.0, 0.5, 0.25, 0.25, 0.25]
    )
    factors = [rule.temperature(n + 1) / rule.temperature(n) for n in range(100)]  # type: ignore[attr-defined]
    assert factors == pytest.approx([factors[0]] * 100)


# ---- glimpse


def test_a_glimpses_windows_grow_and_stop_at_the_sentences_ends() -> None:
    scores_1HTS = torch.full((1, 1, 3, 9), -1.0)
    for t, best in enumerate((0, 4, 7)):
        scores_1HTS[0, 0, t, best] = 1.0
    scores_1HTS[..., 8] = -torch.inf
    context = AttentionContext(torch.zeros(1, 3, Q), torch.zeros(1, 3), False, 0)
    weights_HTS = weigh("glimpse", scores_1HTS, context).weights_BHTS[0]
    words = [[head_S.nonzero()[:, 0].tolist() for head_S in step_HS] for step_HS in weights_HTS.transpose(0, 1)]
    assert words[0] == [[0], [0, 1], [0, 1, 2, 3]]
    assert words[1] == [[4], [3, 4, 5], [1, 2, 3, 4, 5, 6, 7]]
    assert words[2] == [[7], [6, 7], [4, 5, 6, 7]]
    assert all((head_S[head_S > 0] == head_S.max()).all() for head_S in weights_HTS.flatten(0, 1)), "a plain mean"


def test_an_oracle_projects_as_sorting_does() -> None:
    """The bisection against the closed form for two scores: the difference, cut to [-1, 1]."""
    draw = random.Random(0)
    for _ in range(100):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        first = (1 + max(-1.0, min(1.0, a - b))) / 2
        assert simplex_projection([a, b]) == pytest.approx([first, 1 - first], abs=1e-9)
