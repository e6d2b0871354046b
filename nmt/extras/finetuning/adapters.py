"""Fine-tuning of a part of the weights: freezing the others, and low-rank adapters.

    W' = W + alpha / rank · B A        A: (rank, inputs), B: (outputs, rank)        Hu et al. 2021, "LoRA", eq. 3

A starts random and B starts at 0, so training starts from W; W itself is frozen. Checkpoints hold W' for use, like the
weights of any model, and W, A and B to resume from. Unlike in the paper, the inputs of adapters have no dropout of
their own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from torch import Tensor, nn
from torch.nn.utils import parametrize

from nmt.core.errors import InputError
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.deep_recurrent import Transition
from nmt.training.config import LowRankConfig

Model = Seq2Seq[Any, Any]


def restrict(model: Model, patterns: Sequence[str], adapters: LowRankConfig | None) -> None:
    """Freezes the weights whose names match a pattern, or all of them beside adapters. Raises InputError if a pattern
    matches no weight, or if all weights match."""
    for pattern in patterns:
        for parameter in _matching(model, pattern, key="freeze").values():
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError("training.freeze: matches all weights; leave some to train")
    if adapters is not None:
        add_adapters(model, adapters)


class LowRank(nn.Module):
    """The adapter of a matrix."""

    def __init__(self, weight_OI: Tensor, config: LowRankConfig) -> None:
        super().__init__()
        outputs, inputs = weight_OI.shape
        self._factor = config.alpha / config.rank
        self.a_RI = nn.Parameter(weight_OI.new_empty(config.rank, inputs))
        self.b_OR = nn.Parameter(weight_OI.new_zeros(outputs, config.rank))
        nn.init.kaiming_uniform_(self.a_RI, a=math.sqrt(5))

    def forward(self, weight_OI: Tensor) -> Tensor:
        """Computes the adapted matrix."""
        return weight_OI + self._factor * (self.b_OR @ self.a_RI)


def add_adapters(model: Model, config: LowRankConfig) -> None:
    """Adds adapters to matrices and freezes all other parameters. Raises InputError if a pattern matches nothing, or
    matches a matrix of PyTorch's recurrent layers, which cannot have an adapter."""
    found = dict[str, nn.Parameter]()
    for pattern in config.on:
        found |= _matching(model, pattern, key="lora.on", may_be_none=config.on == LowRankConfig().on)
    adapters = {id(weight): LowRank(weight, config) for weight in found.values() if weight.dim() == 2}
    if not adapters:
        raise InputError(f"training.lora.on: {', '.join(config.on)}: matches vectors only, which have no adapters")
    for name in found:
        if isinstance(model.get_submodule(name.rpartition(".")[0]), nn.RNNBase | Transition):
            raise InputError(f"training.lora.on: matches {name}, which is recurrent: it can have no adapter")
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, weight in list(module.named_parameters(recurse=False)):
            if id(weight) in adapters:  # modules that share a matrix share its adapter
                parametrize.register_parametrization(module, name, adapters[id(weight)])


def merged(model: Model) -> Model:
    """Copies a model and adds the adapters to its matrices."""
    made, merged_of = copy.deepcopy(model), dict[int, nn.Parameter]()
    for module in filter(parametrize.is_parametrized, list(made.modules())):
        lists = cast("nn.ModuleDict", module.parametrizations)
        weights = {name: (id(lists[name].original), getattr(module, name).detach()) for name in lists}
        # not remove_parametrizations, which would change the class of the adapted model as well
        del module.parametrizations
        module.__class__ = type(module).__mro__[1]
        for name, (original, weight) in weights.items():
            module.register_parameter(name, merged_of.setdefault(original, nn.Parameter(weight)))
    return made


def _matching(model: Model, pattern: str, *, key: str, may_be_none: bool = False) -> dict[str, nn.Parameter]:
    """Returns the weights whose names match. Raises InputError if there are none, unless ``may_be_none``."""
    found = {name: weight for name, weight in model.named_parameters() if fnmatchcase(name, pattern)}
    if not found and not may_be_none:
        parts = dict.fromkeys(".".join(name.split(".")[:2]) for name, _ in model.named_parameters())
        raise InputError(f"training.{key}: {pattern}: matches no weight; their names begin with {', '.join(parts)}")
    return found
