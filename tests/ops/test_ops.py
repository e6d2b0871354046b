"""Each operation against plain loops in float64, and each accelerated implementation against its body."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import nmt
from nmt import ops
from nmt.attention.scores.additive import additive_energy
from nmt.ops import Operation

OPERATIONS: list[Operation[Any, Any]] = [each for each in vars(ops).values() if isinstance(each, Operation)]

PRECISIONS = {torch.float32: {"atol": 1e-5, "rtol": 1e-4}, torch.bfloat16: {"atol": 0.05, "rtol": 0.05}}

both_precisions = pytest.mark.parametrize("dtype", list(PRECISIONS), ids=str)


@pytest.fixture(autouse=True)
def _seed_and_restore() -> Iterator[None]:
    torch.manual_seed(0)
    implementations = [operation.implementation for operation in OPERATIONS]
    yield
    for operation, implementation in zip(OPERATIONS, implementations, strict=True):
        operation.register(implementation)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


# ---- bodies against plain loops


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("elements", [1 << 25, 1, 120], ids=["whole", "one position", "two positions"])
def test_additive_energy(elements: int, layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without gradients it is formed for some positions at a time."""
    monkeypatch.setattr("nmt.attention.scores.additive.MAX_SCORE_ELEMENTS", elements)
    query, keys, v = random(2, 2, 3, 5), random(2, 2, 3, 5), random(5)
    upper = [random(5, 5) for _ in range(layers - 1)]

    def energy(q_A: Tensor, k_A: Tensor) -> float:
        x = [math.tanh(q + k) for q, k in zip(q_A.tolist(), k_A.tolist(), strict=True)]
        for weight in upper:
            x = [math.tanh(sum(w * each for w, each in zip(row, x, strict=True))) for row in weight.tolist()]
        return sum(w * each for w, each in zip(v.tolist(), x, strict=True))

    expected = [
        [
            [[energy(q_A, k_A) for k_A in keys_SA] for q_A in query_TA]
            for query_TA, keys_SA in zip(query_HTA, keys_HSA, strict=True)
        ]
        for query_HTA, keys_HSA in zip(query.detach(), keys.detach(), strict=True)
    ]
    with torch.no_grad():
        torch.testing.assert_close(
            additive_energy.body(query, keys, v, upper), torch.tensor(expected, dtype=torch.float64)
        )
    assert torch.autograd.gradcheck(lambda q, k, v, *w: additive_energy.body(q, k, v, w), (query, keys, v, *upper))


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("hides", [False, True])
def test_attend(hides: bool, drops: bool) -> None:
    query, keys, values = random(2, 2, 3, 4), random(2, 2, 5, 4), random(2, 2, 5, 4)
    is_hidden = torch.arange(5) >= torch.tensor([5, 3])[:, None, None, None] if hides else None
    factors = 2.0 * torch.randint(2, (2, 2, 3, 5)).double() if drops else None
    context, weights = ops.attend.body(query, keys, values, is_hidden, 0.7, factors)
    for b, h, t in torch.cartesian_prod(*map(torch.arange, (2, 2, 3))).tolist():
        length = 3 if hides and b == 1 else 5
        exponentials = [math.exp(0.7 * (query[b, h, t] @ keys[b, h, s]).item()) for s in range(length)]
        expected = [e / sum(exponentials) for e in exponentials] + [0.0] * (5 - length)
        assert weights()[b, h, t].tolist() == pytest.approx(expected)
        kept = (
            expected if factors is None else [w * f for w, f in zip(expected, factors[b, h, t].tolist(), strict=True)]
        )
        for a in range(4):
            expected_a = sum(kept[s] * values[b, h, s, a].item() for s in range(5))
            assert context[b, h, t, a].item() == pytest.approx(expected_a)
    assert torch.autograd.gradcheck(
        lambda *tensors: ops.attend.body(*tensors, is_hidden, 0.7, factors)[0], (query, keys, values)
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_cross_entropy(smoothing: float) -> None:
    readout, weight, bias, gold = random(4, 3), random(6, 3), random(6), [2, 0, 5, 2]
    objective, cross_entropy = ops.cross_entropy.body(readout, weight, bias, torch.tensor(gold), smoothing)
    total = 0.0
    for n, token in enumerate(gold):
        logits = [(readout[n] @ weight[v] + bias[v]).item() for v in range(6)]
        log_z = math.log(sum(map(math.exp, logits)))
        assert cross_entropy[n].item() == pytest.approx(log_z - logits[token])
        total += (1 - smoothing) * (log_z - logits[token]) + smoothing * sum(log_z - x for x in logits) / 6
    assert objective.item() == pytest.approx(total)
    assert not cross_entropy.requires_grad
    assert torch.autograd.gradcheck(
        lambda *tensors: ops.cross_entropy.body(*tensors, torch.tensor(gold), smoothing)[0], (readout, weight, bias)
    )


@pytest.mark.parametrize("normalized", [False, True])
def test_log_normalizer_and_top_tokens(normalized: bool) -> None:
    logits = random(4, 9).detach()
    logits[1, 2:] = -math.inf
    top = ops.top_tokens.body(logits, 3, normalized)
    for n, row in enumerate(logits.tolist()):
        order = sorted(range(9), key=lambda token: -row[token])[:3]
        finite = 2 if n == 1 else 3
        assert top.token_NK[n, :finite].tolist() == order[:finite]
        assert top.logit_NK[n].tolist() == [row[token] for token in order]
        log_z = math.log(sum(map(math.exp, row)))
        assert ops.log_normalizer.body(logits)[n].item() == pytest.approx(log_z)
        assert (top.log_normalizer_N is not None) == normalized
        if top.log_normalizer_N is not None:
            assert top.log_normalizer_N[n].item() == pytest.approx(log_z)


# ---- implementations against bodies; those of cross_entropy in tests/extras/speed/test_cross_entropy.py


def assert_is_body(operation: Operation[Any, Any], *arguments: Any, **closeness: float) -> None:
    nmt.accelerate()
    assert operation.implementation is not operation.body
    implemented, body = operation(*arguments), operation.body(*arguments)
    if isinstance(body, Tensor):
        implemented, body = (implemented,), (body,)
    for one, other in zip(implemented, body, strict=True):
        torch.testing.assert_close(*(x() if callable(x) else x for x in (one, other)), **closeness)


def test_each_operation_has_an_implementation() -> None:
    nmt.accelerate()
    assert all(each.implementation is not each.body for each in OPERATIONS)


@both_precisions
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("records", [False, True])
def test_accelerated_additive_energy(records: bool, heads: int, dtype: torch.dtype) -> None:
    tensors = [random(*shape).to(dtype) for shape in ((3, heads, 4, 40), (3, heads, 5, 40), (40,))]
    with torch.set_grad_enabled(records):
        assert_is_body(additive_energy, *tensors, **PRECISIONS[dtype])
        assert_is_body(additive_energy, *tensors, [random(40, 40).to(dtype)], **PRECISIONS[dtype])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("hides", [False, True])
def test_accelerated_attend(hides: bool, device: str) -> None:
    tensors = [random(*shape).float().to(device) for shape in ((2, 2, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8))]
    is_hidden = (torch.arange(5) >= torch.tensor([5, 3])[:, None, None, None]).to(device) if hides else None
    for factors in (None, 2.0 * torch.randint(2, (2, 2, 3, 5), device=device).float()):
        assert_is_body(ops.attend, *tensors, is_hidden, 0.7, factors, **PRECISIONS[torch.float32])


@torch.no_grad()
@both_precisions
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("count", [1, 4])
def test_accelerated_top_tokens_and_log_normalizer(count: int, normalized: bool, dtype: torch.dtype) -> None:
    """Logits of a row differ from each other, also in bfloat16; also where rows are not contiguous."""
    logits = torch.stack([torch.randperm(200).to(dtype) / 8 for _ in range(6)])
    for logits_NV in (logits, logits.T.contiguous().T):
        assert_is_body(ops.log_normalizer, logits_NV, atol=1e-4, rtol=1e-4)
        assert_is_body(ops.top_tokens, logits_NV, count, normalized, atol=1e-4, rtol=1e-4)
