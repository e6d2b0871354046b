"""Modules of no memory, and what it costs to make them."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

from nmt.core.shapes import only_shapes
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


def test_pytorchs_compiler_is_not_imported() -> None:
    program = """
import sys
from nmt.core.shapes import only_shapes
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
