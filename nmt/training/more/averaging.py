"""Averages of weights: of some checkpoints, or of all updates as training goes on.

Both are for use; training itself goes on with the raw weights.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from nmt.core.errors import InputError
from nmt.core.files import refuse_special
from nmt.models.seq2seq import Seq2Seq
from nmt.training.folders import MODEL, Damaged, verify


def average_weights(checkpoints: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each weight over checkpoint folders, float32 (Vaswani et al. 2017, section 6.1; Popel & Bojar 2018,
    section 5.10). Sums are float64 and in the order given; one weight is held in float64 at a time.

    Raises InputError where a file is missing or damaged, or has other weights or shapes than the first.
    """
    for checkpoint in checkpoints:
        verify(checkpoint, [MODEL])
    paths = [checkpoint / MODEL for checkpoint in checkpoints]
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(path)) for path in paths]
        names = sorted(files[0].keys())
        shapes = {name: files[0].get_slice(name).get_shape() for name in names}
        for path, file in zip(paths[1:], files[1:], strict=True):
            for name in sorted(set(names) ^ set(file.keys())):
                what = "misses" if name in shapes else "has"
                raise InputError(f"{path}: {what} {name}, unlike {paths[0]}: average checkpoints of one model")
            for name, shape in shapes.items():
                if (other := file.get_slice(name).get_shape()) != shape:
                    raise InputError(
                        f"{path}: {name} is {tuple(other)}, but in {paths[0]} it is {tuple(shape)}: average "
                        "checkpoints of one model"
                    )
        return {name: _mean([file.get_tensor(name) for file in files]) for name in names}


def same_weights(checkpoint: Path, weights: Mapping[str, Tensor]) -> bool:
    """Whether a checkpoint folder holds just these weights, to the bit. Raises InputError for a damaged one."""
    with _opened(checkpoint / MODEL) as file:
        return set(file.keys()) == set(weights) and all(
            torch.equal(file.get_tensor(name), weight) for name, weight in weights.items()
        )


def _mean(tensors: list[Tensor]) -> Tensor:
    total = torch.zeros_like(tensors[0], dtype=torch.float64)
    for each in tensors:
        total += each
    return (total / len(tensors)).float()


def _opened(path: Path) -> Any:
    try:
        refuse_special(path)
        return safetensors.safe_open(path, framework="pt")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is it a checkpoint?") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise Damaged(path, error) from None


class MovingAverage:
    """The exponential moving average a of a model's weights w over the updates u = 1, 2, …

        a_u = d_u a_{u-1} + (1 - d_u) w_u,   d_u = min(decay, (1 + u) / (10 + u)),   a_0 = w_0

    Averages of the iterates are Polyak & Juditsky's (1992); theirs weigh all alike, these forget the early ones. The
    rising d_u forgets the random weights of the start, which a ``decay`` near 1 would keep for thousands of updates.
    """

    def __init__(self, model: Seq2Seq[Any, Any], decay: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False)
        """The average; float32, on the device of the model."""
        self.decay = decay
        self._average: list[Tensor] = list(self.model.parameters())
        self._raw: list[Tensor] = list(model.parameters())

    def decay_at(self, update: int) -> float:
        """d_u of an update, counted from 1."""
        return min(self.decay, (1 + update) / (10 + update))

    @torch.no_grad()
    def follow(self, update: int) -> None:
        """Takes in the weights as they are after an update."""
        torch._foreach_lerp_(self._average, self._raw, 1.0 - self.decay_at(update))
