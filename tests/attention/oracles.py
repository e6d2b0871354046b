"""Every score and weighting written out again from its paper, for one query at a time and in plain Python.

Nothing here calls the package's own formulas. A score's oracle works on torch vectors in float64, so that autograd
gives its gradients as well; a weighting's oracle on plain floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.attention.recurrent_multihead import RecurrentMultiHead
from nmt.attention.reinforce import SampledPositions
from nmt.config.structure import parse_document, validate

Floats = list[float]


def attention_config(score: str = "dot", weights: str = "softmax", key_size: int | None = None) -> AttentionConfig:
    """The configuration of a score and weights in YAML."""
    text = f"score: {score}\nweights: {weights}\nkey_size: {'null' if key_size is None else key_size}\n"
    return validate(AttentionConfig, parse_document(text, "test"))


# ---- scores: one number for a query, a key and the key's position


def _projected(attention: Attention, key_K: Tensor) -> Tensor:
    """W k where the widths of query and key differ, else k."""
    return key_K if attention.key_weight_AK is None else attention.key_weight_AK @ key_K


def _dot(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    return (query_Q * _projected(attention, key_K)).sum()


def _scaled_dot(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    return _dot(attention, query_Q, key_K, place) / math.sqrt(len(query_Q))


def _general(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    assert attention.key_weight_AK is not None
    return query_Q @ (attention.key_weight_AK @ key_K)


def _additive(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    assert attention.query_weight_AQ is not None
    assert attention.key_weight_AK is not None
    return _network(attention, attention.query_weight_AQ @ query_Q + attention.key_weight_AK @ key_K)


def _concat(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    assert attention.query_weight_AQ is not None
    assert attention.key_weight_AK is not None
    one_matrix = torch.cat([attention.query_weight_AQ, attention.key_weight_AK], dim=1)
    return _network(attention, one_matrix @ torch.cat([query_Q, key_K]))


def _network(attention: Attention, x_A: Tensor) -> Tensor:
    """v . tanh(W_L ... tanh(W_2 tanh(x))), one number of a layer after the other; normed, g v / |v| and tanh(x + b)."""
    v_A = attention.score_parameters["v_A"]
    if attention.score.normed:
        x_A = x_A + attention.score_parameters["b_A"]
        v_A = attention.score_parameters["length_1"][0] / math.sqrt(len(v_A)) * v_A / (v_A**2).sum().sqrt()
    inner_A = torch.tanh(x_A)
    for layer in range(2, attention.score.layers + 1):
        rows = attention.score_parameters[f"W{layer}_AA"]
        inner_A = torch.stack([torch.tanh(sum(w * x for w, x in zip(row_A, inner_A, strict=True))) for row_A in rows])
    return v_A @ inner_A


def _cosine(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    key_Q = _projected(attention, key_K)
    cosine = (query_Q * key_Q).sum() / ((query_Q**2).sum().sqrt() * (key_Q**2).sum().sqrt())
    strength = attention.score.sharpness * torch.exp(attention.score_parameters["log_sharpness_1"][0])
    return strength * cosine


def _gaussian(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    distance_Q = query_Q - _projected(attention, key_K)
    start = len(query_Q) ** 0.25 if attention.score.bandwidth is None else attention.score.bandwidth
    log_factor = attention.score_parameters["log_bandwidth_1"][0] if attention.score.learned else torch.tensor(0.0)
    return -(distance_Q**2).sum() / (2 * (start * torch.exp(log_factor)) ** 2)


def _location(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    assert attention.query_weight_AQ is not None
    if place >= attention.score.positions:
        return torch.tensor(-math.inf, dtype=query_Q.dtype)
    return attention.query_weight_AQ[place] @ query_Q


def _first_step(attention: Attention, query_Q: Tensor, key_K: Tensor, place: int) -> Tensor:
    """v . tanh(W q + U k): nothing has been attended before the first step."""
    assert attention.query_weight_AQ is not None
    assert attention.key_weight_AK is not None
    inner_A = torch.tanh(attention.query_weight_AQ @ query_Q + attention.key_weight_AK @ key_K)
    return attention.score_parameters["v_A"] @ inner_A


SCORE_ORACLES: dict[str, Callable[[Attention, Tensor, Tensor, int], Tensor]] = {
    "additive": _additive,
    "concat": _concat,
    "cosine": _cosine,
    "coverage": _first_step,
    "dot": _dot,
    "gaussian": _gaussian,
    "general": _general,
    "location": _location,
    "location_sensitive": _first_step,
    "scaled_dot": _scaled_dot,
}


# ---- scores with a state: those of a whole sentence, and the state after them


def _with(attention: Attention, query_Q: Tensor, key_K: Tensor, name: str, extra_C: Tensor) -> Tensor:
    """v . tanh(W q + U k + V x)."""
    assert attention.query_weight_AQ is not None
    assert attention.key_weight_AK is not None
    inner_A = attention.query_weight_AQ @ query_Q + attention.key_weight_AK @ key_K
    return attention.score_parameters["v_A"] @ torch.tanh(inner_A + attention.score_parameters[name] @ extra_C)


def coverage_in_turn(attention: Attention, queries_TQ: Tensor, keys_SK: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Scores and softmax weights of one step after the other, over a sentence without padding."""
    rule, own = attention.score, attention.score_parameters
    covered = [torch.zeros(rule.width if rule.coverage == "gru" else 1, dtype=queries_TQ.dtype) for _ in keys_SK]
    scores, weights = [], []
    for query_Q in queries_TQ:
        scores.append(
            torch.stack(
                [
                    _with(attention, query_Q, key_K, "coverage_weight_AC", c_C)
                    for key_K, c_C in zip(keys_SK, covered, strict=True)
                ]
            )
        )
        weights.append(scores[-1].exp() / scores[-1].exp().sum())
        for s, key_K in enumerate(keys_SK):
            weight_1 = weights[-1][s : s + 1]
            if rule.coverage == "sum":
                covered[s] = covered[s] + weight_1
            elif rule.coverage == "fertility":
                covered[s] = covered[s] + weight_1 / (2.0 / (1.0 + torch.exp(-own["fertility_1K"] @ key_K)))
            else:
                input_G = own["gates_weight_GX"] @ weight_1 + own["gates_key_GX"] @ key_K
                update_C, reset_C, candidate_C = (input_G + own["gates_query_GX"] @ query_Q).chunk(3)
                carried_C, erased_C = (own["gates_coverage_GC"] @ covered[s]).chunk(2)
                z_C, r_C = (1.0 / (1.0 + torch.exp(-x)) for x in (update_C + carried_C, reset_C + erased_C))
                new_C = torch.tanh(candidate_C + own["reset_CC"] @ (r_C * covered[s]))
                covered[s] = (1.0 - z_C) * covered[s] + z_C * new_C
    return scores, weights


def location_in_turn(attention: Attention, queries_TQ: Tensor, keys_SK: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """As above; the weights of the step before are 0 outside the sentence."""
    rule, filters_FX = attention.score, attention.score_parameters["filters_FX"]
    last_S, scores, weights = torch.zeros(len(keys_SK), dtype=queries_TQ.dtype), [], []
    for query_Q in queries_TQ:
        found = []
        for s, key_K in enumerate(keys_SK):
            near = [s + d for d in range(-rule.reach, rule.reach + 1)]
            window_X = torch.stack([last_S[n] if 0 <= n < len(keys_SK) else last_S.new_zeros(()) for n in near])
            found.append(_with(attention, query_Q, key_K, "filter_weight_AF", filters_FX @ window_X))
        scores.append(torch.stack(found))
        last_S = scores[-1].exp() / scores[-1].exp().sum()
        weights.append(last_S)
    return scores, weights


STATEFUL_SCORES = {"coverage": coverage_in_turn, "location_sensitive": location_in_turn}


# ---- weights: for one query the weights of each head, from the scores of a sentence without its padding


class Asking(NamedTuple):
    """The knowledge of a weighting's oracle about one query, in addition to its scores."""

    query: Floats
    position: int
    """Position in the target, from 0."""
    last: Floats | None = None
    """The weights of the step before, or for ``mocha`` where its window ended; None at the first step."""


def softmax(scores: Floats) -> Floats:
    """exp(score) over the sum of all; -inf gets 0."""
    largest = max(scores)
    exponentials = [math.exp(each - largest) for each in scores]
    return [each / sum(exponentials) for each in exponentials]


def simplex_projection(scores: Floats) -> Floats:
    """max(score - tau, 0), with tau found by halving an interval until what is left over tau sums to 1."""
    low, high = max(scores) - 1.0, max(scores)  # the sum is at least 1 at the one end and 0 at the other
    for _ in range(200):
        tau = (low + high) / 2
        if sum(max(each - tau, 0.0) for each in scores) > 1.0:
            low = tau
        else:
            high = tau
    return [max(each - (low + high) / 2, 0.0) for each in scores]


def one_hot(scores: Floats) -> Floats:
    """All weight on the highest."""
    return [float(place == scores.index(max(scores))) for place in range(len(scores))]


def window(length: int, centre: int, reach: int) -> Floats:
    """The mean over the words at most ``reach`` away from ``centre``."""
    inside = [abs(place - centre) <= reach for place in range(length)]
    return [each / sum(inside) for each in inside]


def _local_m(rule: Any, parameters: dict[str, Tensor], scores: Floats, asking: Asking) -> list[Floats]:
    centre = min(asking.position, len(scores) - 1)
    kept = [
        score if centre - rule.width <= place <= centre + rule.width else -math.inf
        for place, score in enumerate(scores)
    ]
    return [softmax(kept)]


def predicted_centre(parameters: dict[str, Tensor], query: Floats, length: int) -> float:
    """p = S sigmoid(v . tanh(W q))."""
    inner = [
        math.tanh(sum(w * q for w, q in zip(row, query, strict=True))) for row in parameters["W_QQ"].double().tolist()
    ]
    raw = sum(v * each for v, each in zip(parameters["v_Q"].double().tolist(), inner, strict=True))
    return length / (1.0 + math.exp(-raw))


def _local_p(rule: Any, parameters: dict[str, Tensor], scores: Floats, asking: Asking) -> list[Floats]:
    centre = predicted_centre(parameters, asking.query, len(scores))
    kept = [score if abs(place - centre) <= rule.width else -math.inf for place, score in enumerate(scores)]
    deviation = rule.width / 2
    products = [
        weight * math.exp(-((place - centre) ** 2) / (2 * deviation**2)) for place, weight in enumerate(softmax(kept))
    ]
    return [[each / sum(products) for each in products]]


def _glimpse(rule: Any, parameters: dict[str, Tensor], scores: Floats, asking: Asking) -> list[Floats]:
    centre = scores.index(max(scores))
    return [window(len(scores), centre, reach) for reach in (0, 1, 3, 7, 15, 31, 63, 127)[: rule.scales]]


def _entmax(rule: Any, parameters: dict[str, Tensor], scores: Floats, asking: Asking) -> list[Floats]:
    """max((alpha - 1) score - tau, 0)^(1 / (alpha - 1)), tau by halving."""
    scaled = [(rule.alpha - 1.0) * each for each in scores]
    low, high = max(scaled) - 1.0, max(scaled)
    for _ in range(200):
        tau = (low + high) / 2
        total = sum(max(each - tau, 0.0) ** (1.0 / (rule.alpha - 1.0)) for each in scaled)
        low, high = (tau, high) if total > 1.0 else (low, tau)
    return [[max(each - low, 0.0) ** (1.0 / (rule.alpha - 1.0)) for each in scaled]]


def stopping(rule: Any, parameters: dict[str, Tensor], scores: Floats) -> Floats:
    """p = sigmoid(g score + r), and 1 at the last word."""
    gain, offset = parameters["gain_1"].item(), rule.offset + parameters["offset_1"].item()
    return [1.0 / (1.0 + math.exp(-(gain * each + offset))) for each in scores[:-1]] + [1.0]


def _monotonic(rule: Any, parameters: dict[str, Tensor], scores: Floats, asking: Asking) -> list[Floats]:
    place = 0 if asking.last is None else asking.last.index(1.0)
    p = stopping(rule, parameters, scores)
    while p[place] <= 0.5:
        place += 1
    return [[float(each == place) for each in range(len(scores))]]


def _mocha(rule: Any, parameters: dict[str, Tensor], scores: Floats, asking: Asking) -> list[Floats]:
    end = _monotonic(rule, parameters, scores, asking)[0].index(1.0)
    inside = [end - rule.chunk < place <= end for place in range(len(scores))]
    return [softmax([score if is_in else -math.inf for score, is_in in zip(scores, inside, strict=True)])]


def _shift(rule: Any, parameters: dict[str, Tensor], scores: Floats, asking: Asking) -> list[Floats]:
    length, last = len(scores), asking.last or [1.0] + [0.0] * (len(scores) - 1)
    gate, *shifts, sharpening = (
        sum(w * q for w, q in zip(row, asking.query, strict=True)) for row in parameters["controls_XQ"].tolist()
    )
    g, c = 1.0 / (1.0 + math.exp(-gate)), 1.0 + math.log1p(math.exp(sharpening))
    mixed = [g * content + (1.0 - g) * before for content, before in zip(softmax(scores), last, strict=True)]
    moved = [0.0] * length
    for origin in range(length):
        for d, share in zip(range(-rule.reach, rule.reach + 1), softmax(shifts), strict=True):
            moved[(origin + d) % length] += share * mixed[origin]
    return [[each**c / sum(other**c for other in moved) for each in moved]]


WEIGHT_ORACLES: dict[str, Callable[[Any, dict[str, Tensor], Floats, Asking], list[Floats]]] = {
    "argmax": lambda _, __, scores, ___: [one_hot(scores)],
    "entmax": _entmax,
    "glimpse": _glimpse,
    "gumbel": lambda _, __, scores, ___: [one_hot(scores)],
    "hard": lambda _, __, scores, ___: [one_hot(scores)],
    "local_m": _local_m,
    "local_p": _local_p,
    "mocha": _mocha,
    "monotonic": _monotonic,
    "shift": _shift,
    "softmax": lambda rule, _, scores, __: [softmax([each / rule.temperature for each in scores])],
    "sparsemax": lambda _, __, scores, ___: [simplex_projection(scores)],
}
"""Oracles of decoding: a normalizer that draws its position in training takes the best-scored one."""

WEIGHTINGS = [
    "softmax",
    "{kind: softmax, temperature: 0.4}",
    "sparsemax",
    "{kind: local_m, width: 1}",
    "{kind: local_m, width: 2}",
    "local_m",
    "{kind: local_p, width: 1}",
    "{kind: local_p, width: 3}",
    "local_p",
    "hard",
    "{kind: hard, training: marginal}",
    "gumbel",
    "argmax",
    "{kind: glimpse, scales: 1}",
    "{kind: glimpse, scales: 2}",
    "glimpse",
    "entmax",
    "{kind: entmax, alpha: 1.2}",
    "{kind: entmax, alpha: 2.0}",
    "monotonic",
    "{kind: mocha, chunk: 2}",
    "shift",
    "{kind: shift, reach: 2}",
]
"""Each kind of weights at least once, in YAML."""


# ---- attention as a whole


class Past:
    """What a sentence's earlier steps have left to a mechanism with a state."""

    def __init__(self) -> None:
        self.queries: list[Tensor] = []
        self.last: Floats | None = None


def attend(
    attention: Attention, query_Q: Tensor, position: int, keys_SK: Tensor, values_SV: Tensor, past: Past | None = None
) -> tuple[list[Floats], Floats]:
    """The weights of each head and the context of one query when decoding, over a sentence without padding. ``past`` is
    extended."""
    past, rule, parameters = past or Past(), attention.weighting, dict(attention.weighting_parameters)
    past.queries.append(query_Q)
    if in_turn := STATEFUL_SCORES.get(attention.score.kind):
        scores = in_turn(attention, torch.stack(past.queries), keys_SK)[0][-1].tolist()
    else:
        oracle = SCORE_ORACLES[attention.score.kind]
        scores = [oracle(attention, query_Q, key_K, place).item() for place, key_K in enumerate(keys_SK)]
    asking = Asking(query_Q.tolist(), position, past.last)
    heads = WEIGHT_ORACLES[rule.kind](rule, parameters, scores, asking)
    (past.last,) = _monotonic(rule, parameters, scores, asking) if rule.kind == "mocha" else heads[:1]
    contexts = [
        [sum(w * value for w, value in zip(weights, column, strict=True)) for column in values_SV.T.tolist()]
        for weights in heads
    ]
    if len(heads) == 1:
        return heads, contexts[0]
    assert attention.fusion_VF is not None
    side_by_side = [each for context in contexts for each in context]
    fused = [
        math.tanh(sum(w * c for w, c in zip(row, side_by_side, strict=True))) for row in attention.fusion_VF.tolist()
    ]
    return heads, fused


def attend_by_heads(
    attention: RecurrentMultiHead, query_Q: Tensor, position: int, states_SD: Tensor, pasts: Sequence[Past]
) -> tuple[list[Floats], Floats]:
    """The same of several heads for a recurrent decoder, whose contexts stand side by side."""
    weights: list[Floats] = []
    contexts: Floats = []
    width = len(attention.value_weight_VV) // attention.heads
    for number, (head, past) in enumerate(zip(attention.attentions, pasts, strict=True)):
        rows = slice(number * width, (number + 1) * width)
        keys_SA, values_SA = (
            torch.stack([weight[rows] @ state_D for state_D in states_SD])
            for weight in (attention.key_weight_VK, attention.value_weight_VV)
        )
        query_A = attention.query_weight_VQ[rows] @ query_Q
        (weights_S,), context = attend(head, query_A, position, keys_SA, values_SA, past)
        weights.append(weights_S)
        contexts += context
    return weights, contexts


def reinforce(
    choices: Sequence[SampledPositions], log_p: list[list[float]], is_pad: list[list[bool]]
) -> tuple[Tensor, dict[tuple[int, int, int], float]]:
    """What the docstring of ``HardAttention`` says of a loss, and the advantage of each draw by layer or head, sentence
    and step."""
    rule = choices[0].rule
    steps = [(b, t) for b, row in enumerate(is_pad) for t, padding in enumerate(row) if not padding]
    rewards = {
        (b, t): sum(rule.discount ** (n - t) * log_p[b][n] for row, n in steps if row == b and n >= t) for b, t in steps
    }
    left = {
        (c, b, t): rewards[b, t] - choice.baseline_BT[b, t].item()
        for c, choice in enumerate(choices)
        for b, t in steps
        if choice.is_drawn_BT[b, t]
    }
    advantages = {}
    for place, value in left.items():
        others = [each for (_, b, _), each in left.items() if b != place[1]]
        advantages[place] = value - (sum(others) / len(others) if others else 0.0)
    if rule.variance_normalization and left:
        mean = sum(left.values()) / len(left)
        deviation = math.sqrt(sum((each - mean) ** 2 for each in left.values()) / len(left))
        advantages = {place: each / max(deviation, 1.0) for place, each in advantages.items()}
    total = torch.zeros((), dtype=choices[0].log_prob_BT.dtype)
    for (c, b, t), advantage in advantages.items():
        total = total - choices[c].log_prob_BT[b, t] * advantage
        total = total + 0.5 * (choices[c].baseline_BT[b, t] - rewards[b, t]) ** 2
    for choice in choices:
        for b, t in steps:
            total = total - rule.entropy * choice.entropy_BT[b, t]
    return total, advantages
