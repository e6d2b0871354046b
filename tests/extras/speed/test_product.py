"""Products with weights in oneDNN's layout, of layers and of the output layer."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nmt.extras.speed import product
from nmt.extras.speed.product import PackedLinear, Product, pack
from nmt.nn.output import OutputLayer


@pytest.mark.parametrize("packed", [1, 1 << 18])
@torch.no_grad()
def test_products_are_those_of_a_linear_map(packed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "PACKED", packed)
    x_NI, weight_OI, bias_O, sum_NO = torch.randn(3, 5), torch.randn(7, 5), torch.randn(7), torch.randn(3, 7)
    for bias in (None, bias_O):
        made, expected_NO = Product(weight_OI, bias), F.linear(x_NI, weight_OI, bias)
        torch.testing.assert_close(made(x_NI), expected_NO)
        torch.testing.assert_close(made.onto(sum_NO.clone(), x_NI), sum_NO + expected_NO)


def test_packed_layers_still_have_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "PACKED", 1)
    model = nn.Sequential(nn.Linear(4, 6), OutputLayer(6, 9))
    expected_NV = model(x_NI := torch.randn(3, 4, requires_grad=True))
    (expected,) = torch.autograd.grad(expected_NV.sum(), [x_NI])
    pack(model)
    assert isinstance(model[0], PackedLinear)
    assert isinstance(model[1], product.PackedOutput)
    (found,) = torch.autograd.grad(model(x_NI).sum(), [x_NI])
    torch.testing.assert_close(found, expected)
    with torch.no_grad():
        torch.testing.assert_close(model(x_NI), expected_NV)
