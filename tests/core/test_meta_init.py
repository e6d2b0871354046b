"""Modules on the meta device, or without initial values, and the cost to construct them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.core.meta_init import on_meta_device, without_init
from nmt.models.build import build
from nmt.models.config import ModelConfig
from tests.models.variants import TRANSFORMER, make, tree


def test_meta_modules_have_shapes_and_take_no_memory() -> None:
    for config in (tree(), tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)):
        real = make(config)
        with on_meta_device():
            outline = make(config)
        shapes = {name: (parameter.shape, parameter.dtype) for name, parameter in real.named_parameters()}
        assert {name: (parameter.shape, parameter.dtype) for name, parameter in outline.named_parameters()} == shapes
        assert all(parameter.device.type == "meta" for parameter in outline.parameters())


def test_modules_made_afterwards_are_initialised() -> None:
    with on_meta_device():
        nn.Linear(3, 3)
    filled = nn.Linear(3, 3)
    assert filled.weight.device.type == "cpu"
    assert filled.weight.abs().max() > 0
    assert torch.empty(1).device.type == "cpu"


class _Called(TorchDispatchMode):
    """Record of the PyTorch operations that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("config", [tree(), tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)])
def test_without_init_draws_no_random_numbers(config: dict[str, Any]) -> None:
    def made() -> nn.Module:
        return build(ModelConfig.model_validate(config), source_tokens=9, target_tokens=9, pad=0, bos=2)

    drawing = {"uniform_", "normal_", "linalg_qr"}
    with _Called() as called:
        real = made()
    assert called.names & drawing  # or this test would see nothing
    with _Called() as called, without_init():
        filled = made()
    assert not called.names & drawing
    assert all(parameter.device.type == "cpu" for parameter in filled.parameters())
    filled.load_state_dict(real.state_dict())
    for kind in (nn.Module.named_parameters, nn.Module.named_buffers):
        expected, found = dict(kind(real)), dict(kind(filled))
        assert expected.keys() == found.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_pytorchs_compiler_is_not_imported() -> None:
    program = """
import sys
from nmt.core.meta_init import on_meta_device
from nmt.models.build import build
from nmt.models.config import ModelConfig
from tests.models.variants import TRANSFORMER, tree
with on_meta_device():
    for config in (tree(), tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)):
        build(ModelConfig.model_validate(config), source_tokens=9, target_tokens=9, pad=0, bos=2)
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False\n"
