from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.alignment.gradient import _distribution, gradient_weights, log_odds
from nmt.alignment.request import AlignmentRequest
from nmt.core.device import Compute
from nmt.models.seq2seq import Seq2Seq
from tests.models.variants import EMBEDDINGS, WIRINGS, make, tree

METHODS = (AlignmentRequest("gradient"), AlignmentRequest("input-x-gradient"))
AS_THEY_ARE = (
    replace(METHODS[0], magnitude="raw"), replace(METHODS[1], magnitude="raw"), replace(METHODS[1], magnitude="signed"),
)  # fmt: skip
CPU = Compute(torch.device("cpu"), "float32")
EOS = 3
SOURCES = [[4, 5, 1, 4], [5], [5, 5, 4]]
TARGETS = [[4, 5, 4], [5, 1, 5, 4, 4], [1]]

PARTS: dict[str, dict[str, Any]] = {
    **{name: tree(decoder=wiring) for name, wiring in WIRINGS.items()},
    "elman": tree(encoder={"cell": "elman"}, decoder={"cell": "elman", "layers": 2}),
    "gru": tree(encoder={"cell": "gru", "layers": 2}, decoder={"cell": "gru", **WIRINGS["parallel"]}),
    "two layers": tree(encoder={"layers": 2}, decoder={"layers": 2, "query": "previous"}),
    "one direction": tree(encoder={"bidirectional": False}),
    "tied, readout embedding": tree(tie="all", decoder={"readout_embedding": True, "readout_size": 8}),
    **{score: tree(score=score) for score in ("dot", "cosine", "location")},
    **{kind: tree(weights=kind) for kind in ("sparsemax", "local_m", "local_p", "hard", "gumbel", "argmax", "glimpse")},
    "embeddings": tree(encoder={**EMBEDDINGS, "positions": "learned"}, key_size=3),
    "copies": tree(copying="pointer", tie="all"),
    "none, every_step": tree(score="none", context={"kind": "every_step"}),
    "none, projected_initial_state": tree(score="none", context={"kind": "projected_initial_state"}),
}

every_part = pytest.mark.parametrize("config", PARTS.values(), ids=PARTS)
some_parts = pytest.mark.parametrize("name", ["feeding", "parallel", "two layers", "hard", "none, every_step"])


def weights(
    model: Seq2Seq[Any, Any], sources: list[list[int]], targets: list[list[int]], **changes: Any
) -> list[tuple[np.ndarray, ...]]:
    given: dict[str, Any] = {"requests": METHODS, "batch_tokens": 1000, **changes}
    return gradient_weights(model, sources, targets, given.pop("compute", CPU), **given)


def log_probs(model: Seq2Seq[Any, Any], source_S: Tensor, embedded_NSE: Tensor, target_T: Tensor) -> Tensor:
    """(N, T): the target's log-probabilities from each of N versions of the source's embeddings."""
    count = len(embedded_NSE)
    target_NT = target_T.expand(count, -1)
    decoded = model.teacher_forced(target_NT, model.encode_embedded(embedded_NSE, source_S.expand(count, -1)))
    logits_NTV = model.output(decoded.readout_BTR)
    p_NTV = logits_NTV.softmax(-1)
    if decoded.copies is not None:
        p_NTV = decoded.copies.mixed(logits_NTV.flatten(0, 1)).view_as(p_NTV)
    return p_NTV.gather(2, target_NT[:, :, None])[:, :, 0].log()


def differences(
    model: Seq2Seq[Any, Any], source_S: Tensor, base_SE: Tensor, change_NSE: Tensor, target_T: Tensor, h: float
) -> Tensor:
    """(N, T): derivatives of the log-probabilities along N changes, by five points: the error falls with h⁴."""

    def at(steps: float) -> Tensor:
        return log_probs(model, source_S, base_SE + steps * h * change_NSE, target_T)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)


@every_part
@torch.no_grad()
def test_equals_finite_differences(config: dict[str, Any]) -> None:
    """In float64, but for attention's scores, which are float32 in every model: hence a wide step and tolerance."""
    model = make(config, scale=1.5).double()
    model.output.bias_V[[0, 2]] = -torch.inf  # as of a trained model, in which no token can be padding
    for source, target in zip(SOURCES, TARGETS, strict=True):
        source_S, target_T = torch.tensor([*source, EOS]), torch.tensor([*target, EOS])
        base_SE = model.encoder.embed(source_S[None])[0]
        size = base_SE.numel()
        each_NSE = torch.eye(size, dtype=torch.float64).view(size, *base_SE.shape)
        jacobian_TSE = differences(model, source_S, base_SE, each_NSE, target_T, 2e-3).T.reshape(-1, *base_SE.shape)
        # each token's embedding multiplied by 1 + h
        scaled_SSE = torch.eye(len(base_SE), dtype=torch.float64)[:, :, None] * base_SE
        scaled_TS = differences(model, source_S, base_SE, scaled_SSE, target_T, 2e-3).T
        raw = (jacobian_TSE.norm(dim=2), scaled_TS.abs(), scaled_TS)
        expected = [*(size_TS / size_TS.sum(dim=1, keepdim=True) for size_TS in raw[:2]), *raw]
        (found,) = weights(model, [source], [target], requests=METHODS + AS_THEY_ARE)
        for found_TS, expected_TS in zip(found, expected, strict=True):
            tolerance = 2e-3 * max(1, float(expected_TS.abs().max()))
            np.testing.assert_allclose(found_TS, expected_TS.numpy(), atol=tolerance)


@some_parts
def test_a_pair_does_not_depend_on_its_batch_and_keeps_its_place(name: str) -> None:
    model = make(PARTS[name])
    together, alone = (weights(model, SOURCES, TARGETS, batch_tokens=size) for size in (1000, 1))
    for source, target, one, other in zip(SOURCES, TARGETS, together, alone, strict=True):
        for one_TS, other_TS in zip(one, other, strict=True):
            assert one_TS.shape == (len(target) + 1, len(source) + 1)
            np.testing.assert_allclose(one_TS, other_TS, atol=1e-4)
            np.testing.assert_allclose(one_TS.sum(axis=1), 1, atol=1e-6)
    for place, method in enumerate(METHODS):  # nor on the methods beside it
        for pair, (alone_TS,) in zip(together, weights(model, SOURCES, TARGETS, requests=(method,)), strict=True):
            np.testing.assert_array_equal(pair[place], alone_TS)


@some_parts
def test_the_model_stays_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(PARTS[name])
    parameters = list(model.parameters())
    parameters[0].requires_grad_(False)
    for parameter in parameters[1:]:
        parameter.grad = torch.ones_like(parameter)
    before = [(each.requires_grad, each.clone()) for each in parameters]

    def check() -> None:
        for parameter, (learns, value) in zip(parameters, before, strict=True):
            assert parameter.requires_grad == learns
            assert torch.equal(parameter, value)
            assert parameter.grad is None or (parameter.grad == 1).all()
        assert not model.training
        assert torch.backends.cudnn.enabled

    with torch.no_grad():
        weights(model, SOURCES, TARGETS)
        assert not torch.is_grad_enabled()
    check()

    def fails(*_: object) -> None:
        assert not any(parameter.requires_grad for parameter in parameters)
        raise RuntimeError

    monkeypatch.setattr(model, "step", fails)
    with pytest.raises(RuntimeError):
        weights(model, SOURCES, TARGETS)
    check()


@pytest.mark.parametrize(
    ("device", "precision", "atol"),
    [
        ("cpu", "bfloat16", 0.05),
        pytest.param("cuda", "float32", 1e-3, marks=pytest.mark.cuda),
        pytest.param("cuda", "bfloat16", 0.05, marks=pytest.mark.cuda),
    ],
)
@pytest.mark.parametrize("name", ["feeding", "parallel", "none, every_step"])
def test_other_precisions_and_devices_are_close(name: str, device: str, precision: Any, atol: float) -> None:
    exact = weights(make(PARTS[name], scale=1.0), SOURCES, TARGETS)
    model = make(PARTS[name], scale=1.0).to(device, getattr(torch, precision))
    rough = weights(model, SOURCES, TARGETS, compute=Compute(torch.device(device), precision))
    for (one_TS, _), (other_TS, _) in zip(exact, rough, strict=True):
        np.testing.assert_allclose(other_TS, one_TS, atol=atol)
        np.testing.assert_allclose(other_TS.sum(axis=1), 1, atol=1e-6)


def test_log_odds_are_those_of_the_softmax_and_keep_a_gradient_where_it_is_certain() -> None:
    logits_BV = torch.randn(4, 6, generator=torch.manual_seed(1))
    gold_B = torch.tensor([0, 5, 2, 2])
    p_B = logits_BV.softmax(-1).gather(1, gold_B[:, None])[:, 0]
    torch.testing.assert_close(log_odds(logits_BV, gold_B), (p_B / (1 - p_B)).log())
    certain_BV = torch.tensor([[0.0, 200.0, 1.0]], requires_grad=True)
    (of_log_p,) = torch.autograd.grad(certain_BV.log_softmax(-1)[0, 1], certain_BV)
    (of_log_odds,) = torch.autograd.grad(log_odds(certain_BV, torch.tensor([1])).sum(), certain_BV)
    assert (of_log_p == 0).all()
    torch.testing.assert_close(of_log_odds, torch.tensor([[-0.2689, 1.0, -0.7311]]), atol=1e-4, rtol=0)
    assert log_odds(logits_BV.bfloat16(), gold_B).dtype == torch.float32


def test_padding_is_exactly_0_and_a_row_without_gradient_uniform() -> None:
    size_BS = torch.tensor([[3.0, 1.0, 9.0], [0.0, 0.0, 7.0], [1e-44, 1e-44, 0.0]])
    is_pad_BS = torch.tensor([[False, False, True], [False, False, True], [False, False, False]])
    expected_BS = torch.tensor([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    assert torch.equal(_distribution(size_BS, is_pad_BS), expected_BS)
