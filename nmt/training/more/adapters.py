"""Fine-tuning of a part of the weights: frozen ones, and low-rank adapters.

    W' = W + alpha / rank · B A        A: (rank, inputs), B: (outputs, rank)        Hu et al. 2021, "LoRA", eq. 3

A begins random and B as 0, so training begins from W; W itself is frozen. Checkpoints hold W' for use, as any model's
weights, and W, A and B to go on with. Differences from the paper: the inputs of adapters have no dropout of their own.
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
from nmt.training.config import LowRankConfig

Model = Seq2Seq[Any, Any]


def freeze(model: Model, patterns: Sequence[str]) -> None:
    """Freezes the weights whose names match a pattern. Raises InputError for a pattern of none, or if all match."""
    for pattern in patterns:
        for _, parameter in _matching(model, pattern, key="freeze"):
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError("training.freeze: matches all weights; leave some to train")


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
        """The adapted matrix."""
        return weight_OI + self._factor * (self.b_OR @ self.a_RI)


def add_adapters(model: Model, config: LowRankConfig) -> None:
    """Gives matrices adapters, and freezes all other weights. Raises InputError where no matrix matches the pattern, or
    one that does can have no adapter: those of PyTorch's recurrent layers, and those that several modules share."""
    matrices = [(name, weight) for name, weight in _matching(model, config.on, key="lora.on") if weight.dim() == 2]
    if not matrices:
        raise InputError(f"training.lora.on: {config.on}: matches vectors only, which have no adapters")
    every = [id(weight) for _, weight in model.named_parameters(remove_duplicate=False)]
    for name, weight in matrices:
        module = model.get_submodule(name.rpartition(".")[0])
        if every.count(id(weight)) > 1 or isinstance(module, nn.RNNBase):
            reason = "is recurrent" if isinstance(module, nn.RNNBase) else "is shared by several modules"
            raise InputError(f"training.lora.on: {config.on}: matches {name}, which {reason}: it can have no adapter")
    model.requires_grad_(False)
    for name, weight in matrices:
        path, _, leaf = name.rpartition(".")
        parametrize.register_parametrization(model.get_submodule(path), leaf, LowRank(weight, config))


def merged(model: Model) -> Model:
    """A copy of a model whose matrices have their adapters added."""
    made = copy.deepcopy(model)
    for module in list(made.modules()):
        if parametrize.is_parametrized(module):
            weights = {name: getattr(module, name).detach() for name in cast("nn.ModuleDict", module.parametrizations)}
            # not remove_parametrizations: it would change the class, which is that of the adapted model as well
            del module.parametrizations
            module.__class__ = type(module).__mro__[1]
            for name, weight in weights.items():
                module.register_parameter(name, nn.Parameter(weight))
    return made


def _matching(model: Model, pattern: str, *, key: str) -> list[tuple[str, nn.Parameter]]:
    """The weights whose names match. Raises InputError where there are none."""
    found = [(name, weight) for name, weight in model.named_parameters() if fnmatchcase(name, pattern)]
    if not found:
        parts = dict.fromkeys(".".join(name.split(".")[:2]) for name, _ in model.named_parameters())
        raise InputError(f"training.{key}: {pattern}: matches no weight; their names begin with {', '.join(parts)}")
    return found
