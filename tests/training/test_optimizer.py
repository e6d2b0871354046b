"""Learning rates by layer, and weight decay."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from nmt.core.device import Compute
from nmt.training.config import OptimizerConfig
from nmt.training.optimizer import NamedOptimizer
from tests.models.variants import TRANSFORMER, make, tree, variants

CPU = Compute(torch.device("cpu"), "float32")

SMALL = {**TRANSFORMER, "positions": "learned", "size": 6}
DEPTHS = {
    "rnn": (
        tree(encoder={"layers": 3}, decoder={"layers": 2}),
        {
            r"encoder\.embedding": 3, r"encoder\.(forwards|backwards)\.0": 2, r"encoder\.(forwards|backwards)\.1": 1,
            r"encoder\.(forwards|backwards)\.2": 0, r"decoder\.embedding": 2,
            r"decoder\.(stack\.rnns|handover\.layers)\.0": 1, r"decoder\.(stack\.rnns|handover\.layers)\.1": 0,
            r"decoder\.(attention|readout)": 0, r"output": 0,
        },
    ),
    "transformer": (
        tree(score="additive", tie="all", encoder={**SMALL, "layers": 1}, decoder={**SMALL, "layers": 3}),
        {
            r"encoder\.(embedding|entrance)": 1, r"encoder\.(layers\.0|norm)": 0, r"decoder\.entrance": 3,
            r"decoder\.layers\.0": 2, r"decoder\.layers\.1": 1, r"decoder\.(layers\.2|norm|readout)": 0,
            r"output": 0,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DEPTHS)
def test_the_first_step_of_adam_is_as_long_as_the_layers_rate(kind: str) -> None:
    """It moves each weight that has a gradient by the learning rate, whatever the gradient's size."""
    config, depths = DEPTHS[kind]
    model = make(config)
    optimizer = NamedOptimizer(model, OptimizerConfig(kind="adam", learning_rate=0.1, layer_decay=0.5), CPU)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    assert optimizer.step(0.5) == pytest.approx(0.05)
    for name, parameter in model.named_parameters():
        (depth,) = {depth for pattern, depth in depths.items() if re.match(pattern, name)}
        moved = (before[name] - parameter.detach()).flatten()
        torch.testing.assert_close(moved, torch.full_like(moved, 0.05 * 0.5**depth), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("config", list(variants()))
def test_every_layer_has_its_place(config: dict[str, Any]) -> None:
    """No parameter of a numbered layer is taken for one of none: then each side's rates would be one only."""
    model = make(config)
    optimizer = NamedOptimizer(model, OptimizerConfig(layer_decay=0.5), CPU)
    share = {id(each): group["share"] for group in optimizer._torch.param_groups for each in group["params"]}
    for side in ("encoder", "decoder"):
        layers = config[side].get("layers", int(config[side].get("kind") != "embeddings"))
        names = [name for name, _ in model.named_parameters() if name.startswith(side)]
        shares = {share[id(each)] for name, each in model.named_parameters() if name.startswith(side)}
        shared = side == "decoder" and config["embedding"]["tie"] == "all"
        entrance = 0 if shared and not any(".entrance." in name for name in names) else 1
        assert shares == {0.5**depth for depth in range(layers + entrance)}


def test_without_it_all_layers_learn_alike() -> None:
    optimizer = NamedOptimizer(make(tree(encoder={"layers": 3})), OptimizerConfig(), CPU)
    assert {group["share"] for group in optimizer._torch.param_groups} == {1.0}


def test_weights_decay_and_biases_do_not() -> None:
    """If all gradients are 0, AdamW multiplies by 1 - learning rate x weight decay and does nothing else (Loshchilov &
    Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2)."""
    model = make(tree(decoder={"cell": "lstm"}))
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, 0.5, 1.0)
        parameter.grad = torch.zeros_like(parameter)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    NamedOptimizer(model, OptimizerConfig(kind="adamw", learning_rate=0.1, weight_decay=0.2), CPU).step(1.0)
    shares = {name: (parameter / before[name]).unique().tolist() for name, parameter in model.named_parameters()}
    for name, share in shares.items():
        is_bias = before[name].dim() == 1
        assert share == pytest.approx([1.0 if is_bias else 0.98] * len(share)), name
    assert {before[name].dim() for name in shares} == {1, 2}
