"""Records of tensors: each row is carried with all of its fields."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from nmt.core.record import BatchRecord, shared


@dataclass(frozen=True)
class Layer(BatchRecord):
    keys_BD: Tensor
    label: object = shared()


@dataclass(frozen=True)
class State(BatchRecord):
    layers: tuple[Layer, ...]
    top_B: Tensor
    cell: Tensor | None = None


def state(*numbers: int, label: object = "x") -> State:
    """A state whose row n holds n, 10 n, 10 n + 1 and 100 n."""
    rows_B = torch.tensor(numbers)
    return State(
        (Layer(rows_B[:, None], label), Layer(torch.stack([10 * rows_B, 10 * rows_B + 1], 1), label)), 100 * rows_B
    )


@pytest.mark.parametrize(
    ("chosen", "numbers"),
    [
        (state(1, 2, 3).select(torch.tensor([2, 0, 0])), (3, 1, 1)),
        (state(1, 2, 3).part(slice(1, 3)), (2, 3)),
        (state(1, 2).repeat(2), (1, 1, 2, 2)),
        (State.joined([state(1, 2), state(), state(3)]), (1, 2, 3)),
        (state(1, 2).with_tensors(state(5, 6).tensors()), (5, 6)),
    ],
    ids=["select", "part", "repeat", "joined", "with_tensors"],
)
def test_every_field_of_a_row_goes_with_it(chosen: State, numbers: tuple[int, ...]) -> None:
    expected = state(*numbers)
    assert [each.tolist() for each in chosen.tensors()] == [each.tolist() for each in expected.tensors()]
    assert len(chosen) == len(numbers)
    assert [layer.label for layer in chosen.layers] == ["x", "x"]
    assert chosen.cell is None
    assert chosen.names() == ("layers.0.keys", "layers.1.keys", "top")
    assert replace(chosen, cell=chosen.top_B).names()[-1] == "cell"


def test_what_does_not_fit_together_is_a_fault() -> None:
    with pytest.raises(AssertionError, match=r"different numbers of rows: \[2, 3\]"):
        len(replace(state(1, 2), top_B=torch.zeros(3)))
    with pytest.raises(AssertionError):
        State.joined([state(1), state(2, label=object())])
