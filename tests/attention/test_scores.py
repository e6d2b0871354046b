"""Every score against its formula, written out for one query and one key at a time."""

from __future__ import annotations

import math
import random

import pytest
import torch
from torch import Tensor, nn

from nmt.attention.attention import Attention, AttentionMemory
from nmt.attention.mechanism import Sizes
from nmt.attention.registry import SCORES
from tests.attention.oracles import SCORE_ORACLES, attention_config

B, T, S = 2, 3, 5
IS_PAD_BS = torch.tensor([[False] * 5, [False, False, False, True, True]])
POSITION_BT = torch.arange(T).expand(B, T)

CASES = [
    *(name for name, score in SCORES.items() if not score.is_stateful),
    "{kind: additive, size: 9}",
    "{kind: additive, layers: 3}",
    "{kind: additive, normed: true, size: 3}",
    "{kind: concat, size: 2}",
    "{kind: concat, size: 3, layers: 2}",
    "{kind: concat, normed: true, layers: 2}",
    "{kind: cosine, sharpness: 3}",
    "{kind: gaussian, learned: false}",
    "{kind: gaussian, learned: false, bandwidth: 0.7}",
    "{kind: gaussian, bandwidth: 2}",
    "{kind: location, positions: 4}",
    "{kind: location, positions: 2}",
]
SIZES = {"equal": (4, 4, 4), "different": (4, 6, 3), "query widest": (7, 3, 5)}

every_score = pytest.mark.parametrize("score", CASES)
every_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def make(score: str, sizes: tuple[int, int, int] = SIZES["different"]) -> Attention:
    """Attention with all weights drawn anew, so that none is where it starts."""
    torch.manual_seed(1)
    query, key, value = sizes
    attention = Attention(attention_config(score), query_size=query, key_size=key, value_size=value)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.7)
    return attention.double()


def inputs(sizes: tuple[int, int, int]) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    query, key, value = sizes
    shapes = ((B, T, query), (B, S, key), (B, S, value))
    query_BTQ, keys_BSK, values_BSV = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    return query_BTQ, keys_BSK, values_BSV


def expected(
    attention: Attention, query_BTQ: Tensor, keys_BSK: Tensor, values_BSV: Tensor, is_pad_BS: Tensor = IS_PAD_BS
) -> tuple[Tensor, Tensor]:
    """Weights (B, T, S) and contexts (B, T, V) by softmax over one score after the other."""
    oracle = SCORE_ORACLES[attention.score.kind]
    weights, contexts = [], []
    for query_TQ, keys_SK, values_SV, is_pad_S in zip(query_BTQ, keys_BSK, values_BSV, is_pad_BS, strict=True):
        for query_Q in query_TQ:
            scores = [oracle(attention, query_Q, key_K, place) for place, key_K in enumerate(keys_SK)]
            exponentials = [
                torch.zeros((), dtype=torch.float64) if is_pad else each.exp()
                for each, is_pad in zip(scores, is_pad_S, strict=True)
            ]
            total = sum(exponentials)
            row = [each / total for each in exponentials]
            weights.append(torch.stack(row))
            contexts.append(sum(weight * value_V for weight, value_V in zip(row, values_SV, strict=True)))
    rows, time = query_BTQ.shape[:2]
    return torch.stack(weights).view(rows, time, -1), torch.stack(contexts).view(rows, time, -1)


@every_size
@every_score
def test_weights_and_context_equal_plain_loops_with_their_gradients(score: str, sizes: tuple[int, int, int]) -> None:
    """Compares the gradients of queries, keys, values and every parameter."""
    attention = make(score, sizes)
    query_BTQ, keys_BSK, values_BSV = inputs(sizes)
    back_BTV = torch.randn(B, T, sizes[2], dtype=torch.float64)
    wanted = {"query": query_BTQ, "keys": keys_BSK, "values": values_BSV, **dict(attention.named_parameters())}

    def gradients(context_BTV: Tensor) -> list[Tensor | None]:
        return list(torch.autograd.grad((context_BTV * back_BTV).sum(), list(wanted.values()), allow_unused=True))

    weights_BTS, context_BTV = expected(attention, query_BTQ, keys_BSK, values_BSV)
    attended = attention(query_BTQ, POSITION_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    assert attended.weights_NHTS.shape == (B, 1, T, S)
    assert attended.weights_NHTS.dtype == torch.float32
    assert attended.sampled is None
    torch.testing.assert_close(attended.weights_NHTS[:, 0].double(), weights_BTS, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(attended.context_NTV, context_BTV, atol=1e-6, rtol=1e-5)
    assert (attended.weights_NHTS[1, ..., 3:] == 0).all()
    ours, by_loops = gradients(attended.context_NTV), gradients(context_BTV)
    for name, one, other in zip(wanted, ours, by_loops, strict=True):
        if other is None:
            assert name == "keys"
            assert attention.score.kind == "location"
            assert one is None
            continue
        assert one is not None, name
        # weights pass through float32
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def parameters_of(attention: Attention) -> dict[str, Tensor]:
    """Those of its score, by the names of its formula."""
    matrices = {name: getattr(attention, name) for name in ("query_weight_AQ", "key_weight_AK")}
    return {**{name: each for name, each in matrices.items() if each is not None}, **attention.score_parameters}


@every_score
def test_heads_are_scored_apart(score: str) -> None:
    """The formula over (B, H, T, Q) and (B, H, S, A) is the formula over each head."""
    attention = make(score, SIZES["equal"])
    rule, parameters = attention.score, parameters_of(attention)
    query_BHTQ = torch.randn(2, 3, T, 4, dtype=torch.float64)
    keys_BHSA = rule.precompute_keys(torch.randn(2, 3, S, 4, dtype=torch.float64), parameters)
    together = rule(query_BHTQ, keys_BHSA, parameters)
    for head in range(3):
        part = slice(head, head + 1)
        apart = rule(query_BHTQ[:, part], keys_BHSA[:, part], parameters)
        torch.testing.assert_close(together[:, part], apart)


@every_score
def test_what_stands_in_padding_changes_nothing(score: str) -> None:
    """Neither weights nor context, to the last bit."""
    sizes = SIZES["different"]
    attention = make(score, sizes)
    query_BTQ, keys_BSK, values_BSV = (each.detach() for each in inputs(sizes))
    before = attention(query_BTQ, POSITION_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    keys_BSK[IS_PAD_BS] = 1e3
    values_BSV[IS_PAD_BS] = -1e3
    after = attention(query_BTQ, POSITION_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    assert torch.equal(before.weights_NHTS, after.weights_NHTS)
    assert torch.equal(before.context_NTV, after.context_NTV)


@pytest.mark.parametrize("name", list(SCORES))
def test_keys_are_computed_once_for_each_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attention = make(name)
    query_BTQ, keys_BSK, values_BSV = inputs(SIZES["different"])
    memory = attention.memory(keys_BSK, values_BSV, IS_PAD_BS)

    def forbidden(*_: object) -> Tensor:
        raise AssertionError("keys are computed again")

    monkeypatch.setattr(type(attention.score), "precompute_keys", forbidden)
    attention(query_BTQ, POSITION_BT, memory)


@pytest.mark.parametrize("key_size", [4, 2], ids=["as wide as a query", "narrow"])
@pytest.mark.parametrize("score", [name for name in SCORES if name != "location"])
def test_keys_are_projected_apart_from_values(score: str, key_size: int) -> None:
    """Attention of ``key_size`` to states x is attention without it to keys P x and values x, gradients included."""
    sizes, config = SIZES["different"], attention_config(score, key_size=key_size)
    projecting = Attention(config, query_size=sizes[0], key_size=sizes[1], value_size=sizes[2]).double()
    plain = make(score, (sizes[0], key_size, sizes[2]))
    rest = {name: each for name, each in projecting.state_dict().items() if name != "key_projection_KD"}
    plain.load_state_dict(rest)
    query_BTQ, keys_BSK, values_BSV = inputs(sizes)
    projection_KD = projecting.key_projection_KD
    assert projection_KD is not None
    by_hand = torch.stack([torch.stack([projection_KD @ key_K for key_K in keys_SK]) for keys_SK in keys_BSK])
    expected_weights, expected_context = expected(plain, query_BTQ, by_hand, values_BSV)
    attended = projecting(query_BTQ, POSITION_BT, projecting.memory(keys_BSK, values_BSV, IS_PAD_BS))
    torch.testing.assert_close(attended.weights_NHTS[:, 0].double(), expected_weights, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(attended.context_NTV, expected_context, atol=1e-6, rtol=1e-5)
    for one, other in zip(
        *(torch.autograd.grad(each.sum(), (projection_KD, keys_BSK)) for each in (attended[0], expected_context)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)


# ---- what only one score has


@pytest.mark.parametrize("kind", ["additive", "concat"])
def test_one_layer_has_the_parameters_of_before(kind: str) -> None:
    """And a deeper score is initialised by Glorot & Bengio 2010 in each layer."""
    shapes = {"query_weight_AQ": (5, 4), "key_weight_AK": (5, 6), "v_A": (5,)}
    for layers, upper in ((1, {}), (3, {"W2_AA": (5, 5), "W3_AA": (5, 5)})):
        parameters = SCORES[kind](size=5, layers=layers).parameters(Sizes(4, 6))  # type: ignore[call-arg]
        assert {name: each.shape for name, each in parameters.items()} == shapes | upper
        assert {each.init for each in parameters.values()} == {"xavier"}
    assert SCORES[kind]().parameters(Sizes(4, 6))["v_A"].shape == (4,)


def test_cosine_does_not_see_how_long_a_vector_is() -> None:
    attention = make("cosine", SIZES["equal"])
    query_BTQ, keys_BSK, values_BSV = inputs(SIZES["equal"])

    def weights(query_BTQ: Tensor, keys_BSK: Tensor) -> Tensor:
        memory = attention.memory(keys_BSK, values_BSV, IS_PAD_BS)
        weights_NHTS: Tensor = attention(query_BTQ, POSITION_BT, memory).weights_NHTS
        return weights_NHTS

    before = weights(query_BTQ, keys_BSK)
    factor_BS1 = torch.rand(B, S, 1, dtype=torch.float64) * 50 + 0.02
    torch.testing.assert_close(weights(query_BTQ, keys_BSK * factor_BS1), before)
    torch.testing.assert_close(weights(query_BTQ * 17, keys_BSK), before)
    assert not torch.allclose(weights(query_BTQ, -keys_BSK), before, atol=0.1)


def test_cosine_of_a_zero_vector_is_zero_and_has_a_gradient() -> None:
    attention = make("cosine", SIZES["equal"])
    query_BTQ, keys_BSK, values_BSV = (each.detach() for each in inputs(SIZES["equal"]))
    query_BTQ[:, 0] = 0.0
    query_BTQ.requires_grad_()
    attended = attention(query_BTQ, POSITION_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    assert attended.weights_NHTS[0, 0, 0].tolist() == pytest.approx([0.2] * 5)
    attended.context_NTV.sum().backward()
    assert query_BTQ.grad is not None
    assert query_BTQ.grad.isfinite().all()


def test_cosine_starts_as_sharp_as_configured() -> None:
    attention = Attention(attention_config("{kind: cosine, sharpness: 4}"), query_size=3, key_size=3, value_size=3)
    parameters = dict(attention.score_parameters)
    same_11TQ = torch.tensor([[[[0.0, 2.0, 0.0]]]])
    keys_11TQ = attention.score.precompute_keys(same_11TQ, parameters)
    assert attention.score(same_11TQ, keys_11TQ, parameters).item() == pytest.approx(4.0)


def test_concat_starts_as_one_matrix_and_additive_as_two() -> None:
    """Glorot's bound is sqrt(6 / (inputs + outputs)) of the whole matrix."""
    query, key, size = 40, 60, 50
    bounds = {
        "concat": [math.sqrt(6 / (query + key + size))] * 2,
        "additive": [math.sqrt(6 / (query + size)), math.sqrt(6 / (key + size))],
    }
    for kind, (query_bound, key_bound) in bounds.items():
        attention = Attention(
            attention_config(f"{{kind: {kind}, size: {size}}}"), query_size=query, key_size=key, value_size=1
        )
        for weight, bound in ((attention.query_weight_AQ, query_bound), (attention.key_weight_AK, key_bound)):
            assert weight is not None
            assert 0.98 * bound < weight.abs().max().item() <= bound


# ---- the Gaussian score is kernel regression


def regression(x: float, places: list[float], values: list[float], bandwidth: float) -> float:
    """The estimate of Nadaraya (1964) and Watson (1964): sum of K((x - x_i) / h) y_i over that of K((x - x_i) / h),
    K(u) the normal density."""
    density = [math.exp(-0.5 * ((x - each) / bandwidth) ** 2) / math.sqrt(2 * math.pi) for each in places]
    return sum(k * y for k, y in zip(density, values, strict=True)) / sum(density)


def noisy_sine(count: int) -> tuple[list[float], list[float]]:
    draw = random.Random(3)
    places = [draw.uniform(0.0, 5.0) for _ in range(count)]
    return places, [2 * math.sin(each) + each**0.8 + draw.gauss(0.0, 0.5) for each in places]


def scalar_memory(attention: Attention, places: list[float], values: list[float]) -> AttentionMemory:
    keys_1S1, values_1S1 = (torch.tensor(each, dtype=torch.float64)[None, :, None] for each in (places, values))
    return attention.memory(keys_1S1, values_1S1, torch.zeros(1, len(places), dtype=torch.bool))


@pytest.mark.parametrize("bandwidth", [0.1, 0.3, 1.0])
def test_gaussian_attention_is_nadaraya_watson_regression(bandwidth: float) -> None:
    places, values = noisy_sine(50)
    attention = Attention(
        attention_config(f"{{kind: gaussian, learned: false, bandwidth: {bandwidth}}}"),
        query_size=1,
        key_size=1,
        value_size=1,
    )
    assert not list(attention.parameters())
    asked = [0.1 * step for step in range(51)]
    query_1T1 = torch.tensor(asked, dtype=torch.float64)[None, :, None]
    attended = attention(query_1T1, torch.arange(51)[None], scalar_memory(attention, places, values))
    estimates = [regression(x, places, values, bandwidth) for x in asked]
    assert attended.context_NTV[0, :, 0].tolist() == pytest.approx(estimates, abs=1e-5)


def left_out_error(places: list[float], values: list[float], bandwidth: float) -> float:
    """The mean squared error at each place of the estimate from all others."""
    others = [[each for n, each in enumerate(values) if n != left] for left in range(len(values))]
    elsewhere = [[each for n, each in enumerate(places) if n != left] for left in range(len(places))]
    errors = [
        (regression(x, xs, ys, bandwidth) - y) ** 2
        for x, y, xs, ys in zip(places, values, elsewhere, others, strict=True)
    ]
    return sum(errors) / len(errors)


def test_a_learned_bandwidth_finds_what_leaves_the_least_error() -> None:
    """Gradient descent on the leave-one-out error, as a batch of sentences that lack one word each, ends at the
    bandwidth that a search over a grid finds best."""
    count, start = 30, 2.0
    places, values = noisy_sine(count)
    attention = Attention(
        attention_config(f"{{kind: gaussian, bandwidth: {start}}}"), query_size=1, key_size=1, value_size=1
    ).double()
    keys_SS1, values_SS1 = (
        torch.tensor(each, dtype=torch.float64)[None, :, None].repeat(count, 1, 1) for each in (places, values)
    )
    memory = attention.memory(keys_SS1, values_SS1, torch.eye(count, dtype=torch.bool))
    query_S11, truth_S11 = (torch.tensor(each, dtype=torch.float64)[:, None, None] for each in (places, values))
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.1)
    losses = []
    for _ in range(80):
        context_S11 = attention(query_S11, torch.zeros(count, 1, dtype=torch.int64), memory).context_NTV
        loss = (context_S11 - truth_S11).square().mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[0] == pytest.approx(left_out_error(places, values, start), rel=1e-5)
    bandwidth = start * attention.score_parameters["log_bandwidth_1"].exp().item()
    best = min((left_out_error(places, values, each / 100), each / 100) for each in range(10, 200, 2))
    assert left_out_error(places, values, bandwidth) == pytest.approx(best[0], rel=1e-3)
    assert bandwidth == pytest.approx(best[1], abs=0.05)
    assert losses[-1] < 0.5 * losses[0]
