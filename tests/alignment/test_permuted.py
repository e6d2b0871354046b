from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.alignment import permuted
from nmt.alignment.permuted import permute_values, permuted_distances, random_orders
from nmt.attention import multihead
from nmt.attention.attention import Attention
from nmt.core.device import Compute
from nmt.models.seq2seq import Seq2Seq
from tests.models.variants import TRANSFORMER, WIRINGS, make, tree

CPU = Compute(torch.device("cpu"), "float32")
SOURCES = [[4, 5, 1, 4, 5], [5], [5, 5, 4]]
TARGETS = [[4, 5, 4], [5, 1, 5, 4, 4], [1]]
SIDES = {"encoder": TRANSFORMER, "decoder": TRANSFORMER}
PARTS: dict[str, dict[str, Any]] = {
    **{name: tree(decoder=wiring) for name, wiring in WIRINGS.items()},
    "glimpse": tree(weights="glimpse"),
    "transformer": tree(score="scaled_dot", **SIDES),
    "transformer, general": tree(score="general", **SIDES),
}
every_part = pytest.mark.parametrize("config", PARTS.values(), ids=PARTS)


def distances(model: Seq2Seq[Any, Any], **changes: Any) -> list[float]:
    return permuted_distances(model, SOURCES, TARGETS, CPU, **{"batch_tokens": 1000, "permutations": 5, **changes})


@every_part
def test_permuted_values_are_permuted_weights(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Against weights that are permuted inside of the decoder's attention, before they meet the values."""
    model = make(config)
    source_BS = torch.tensor([[4, 5, 1, 4, 3], [5, 5, 4, 3, 0]])
    order_BS = torch.tensor([[2, 4, 1, 0, 3], [3, 0, 2, 1, 4]])
    memory = model.encode(source_BS)
    token_B, state = model.first_token(2, source_BS.device), model.start(memory)
    found = model.step(token_B, permute_values(order_BS, memory), state).logits_NV

    def permuted_weights(weights_BHTS: Tensor) -> Tensor:
        if weights_BHTS.shape[-1] != 5:  # attention of the target to itself
            return weights_BHTS
        index_BHTS = order_BS[:, None, None].expand_as(weights_BHTS)
        return torch.zeros_like(weights_BHTS).scatter(-1, index_BHTS, weights_BHTS)

    def permuting(weighting: Any, *inputs: Any) -> Any:
        weighted = weighting(*inputs)
        return weighted._replace(weights_BHTS=permuted_weights(weighted.weights_BHTS))

    for module in model.decoder.modules():
        if isinstance(module, Attention):
            monkeypatch.setattr(module, "weighting", partial(permuting, module.weighting))

    def attend(query: Tensor, keys: Tensor, values: Tensor, is_hidden: Tensor | None, scale: float, _: Any) -> Any:
        scores_BHTS = scale * query @ keys.mT
        shown_BHTS = scores_BHTS if is_hidden is None else scores_BHTS.masked_fill(is_hidden, -torch.inf)
        weights_BHTS = shown_BHTS.softmax(-1)
        return permuted_weights(weights_BHTS) @ values, lambda: weights_BHTS

    monkeypatch.setattr(multihead, "attend", attend)
    expected = model.step(token_B, memory, state).logits_NV
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)
    monkeypatch.undo()
    assert (found - model.step(token_B, memory, state).logits_NV).abs().max() > 1e-3


@every_part
def test_the_identity_and_uniform_weights_make_no_distance(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(config)
    ordinary = distances(model)
    assert len(ordinary) == sum(map(len, TARGETS))
    assert max(ordinary) > 0.01
    with monkeypatch.context() as patched:
        identity = lambda is_pad_NS, _: torch.arange(is_pad_NS.shape[1]).expand_as(is_pad_NS)  # noqa: E731
        patched.setattr(permuted, "random_orders", identity)
        assert max(distances(model)) < 1e-6
    if config["attention"]["weights"] != "glimpse":  # whose windows are not uniform
        for name, parameter in model.decoder.named_parameters():
            if "attention" in name and ("query" in name or "score_parameters" in name) and "self" not in name:
                parameter.data.zero_()
        assert max(distances(model)) < 1e-5


@torch.no_grad()
def test_a_median_is_that_of_plain_loops_and_orders_leave_padding() -> None:
    model = make(PARTS["feeding"])
    found = iter(distances(model, permutations=4))
    generator = torch.Generator().manual_seed(1)
    # the longest pairs come first: one batch of all three
    source_BS = torch.tensor([[*source, 3, *[0] * (5 - len(source))] for source in SOURCES])
    order = [random_orders((source_BS == 0).repeat_interleave(4, dim=0), generator) for _ in range(6)]
    for orders_NS in order:
        assert (orders_NS.sort(dim=1).values == torch.arange(6)).all()
        assert (orders_NS.view(3, 4, 6)[1, :, 2:] == torch.arange(2, 6)).all()
    for row, target in enumerate(TARGETS):
        memory = model.encode(source_BS[row : row + 1])
        state, token = model.start(memory), model.first_token(1, source_BS.device)
        for time, gold in enumerate([*target, 3]):
            step = model.step(token, memory, state)
            p = step.logits_NV.softmax(-1)[0]
            each = []
            for order_S in order[time].view(3, 4, 6)[row]:
                q = model.step(token, permute_values(order_S[None], memory), state).logits_NV.softmax(-1)[0]
                each.append((p - q).abs().sum().item() / 2)
            if time < len(target):
                assert next(found) == pytest.approx(np.median(each), abs=1e-5)
            state, token = step.state, torch.tensor([gold])
