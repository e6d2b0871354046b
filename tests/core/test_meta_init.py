"""Modules of no memory or of no beginning, and what it costs to make them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.core.meta_init import only_shapes, to_be_filled
from nmt.models.build import build
from nmt.models.config import ModelConfig
from tests.models.variants import TRANSFORMER, make, tree


def test_modules_have_their_shapes_and_no_memory() -> None:
    for config in (tree(), tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)):
        real = make(config)
        with only_shapes():
            outline = make(config)
        shapes = {name: (each.shape, each.dtype) for name, each in real.named_parameters()}
        assert {name: (each.shape, each.dtype) for name, each in outline.named_parameters()} == shapes
        assert all(each.device.type == "meta" for each in outline.parameters())


def test_what_is_made_afterwards_is_filled() -> None:
    with only_shapes():
        nn.Linear(3, 3)
    filled = nn.Linear(3, 3)
    assert filled.weight.device.type == "cpu"
    assert filled.weight.abs().max() > 0
    assert torch.empty(1).device.type == "cpu"


class _Called(TorchDispatchMode):
    """Notes which of PyTorch's operations run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("config", [tree(), tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)])
def test_nothing_is_drawn_for_what_is_to_be_filled(config: dict[str, Any]) -> None:
    def made() -> nn.Module:
        return build(ModelConfig.model_validate(config), source_tokens=9, target_tokens=9, pad=0, bos=2)

    drawing = {"uniform_", "normal_", "linalg_qr"}
    with _Called() as called:
        real = made()
    assert called.names & drawing  # or this test would see nothing
    with _Called() as called, to_be_filled():
        filled = made()
    assert not called.names & drawing
    assert all(each.device.type == "cpu" for each in filled.parameters())
    filled.load_state_dict(real.state_dict())
    for kind in (nn.Module.named_parameters, nn.Module.named_buffers):
        expected, found = dict(kind(real)), dict(kind(filled))
        assert expected.keys() == found.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_pytorchs_compiler_is_not_imported() -> None:
    program = """
import sys
from nmt.core.meta_init import only_shapes
from nmt.models.build import build
from nmt.models.config import ModelConfig
from tests.models.variants import TRANSFORMER, tree
with only_shapes():
    for config in (tree(), tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)):
        build(ModelConfig.model_validate(config), source_tokens=9, target_tokens=9, pad=0, bos=2)
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False\n"
