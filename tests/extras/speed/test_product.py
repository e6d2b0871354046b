"""Products with weights in oneDNN's layout, of layers and of the output layer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmt.extras.speed import product
from nmt.extras.speed.product import PackedLinear, pack
from nmt.nn.output import OutputLayer


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
