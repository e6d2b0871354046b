from __future__ import annotations

from typing import Any

import pytest

from nmt.nn.deep_recurrent import DeepStack
from tests.models.variants import make, tree


@pytest.mark.parametrize(
    ("decoder", "cells"),
    [
        ({}, [None]),
        ({"transitions": 2}, [3]),
        ({"transitions": 2, "query": "between"}, [None, 3]),
        ({"layer_norm": True, "query": "between"}, [1, 1]),
    ],
)
def test_layers_run_step_by_step_only_where_they_must(decoder: dict[str, Any], cells: list[int | None]) -> None:
    """Expects the number of cells in a step of each stack of the decoder, None for PyTorch's kernels."""
    made = make(tree(decoder=decoder)).decoder
    stacks = [made.stack, *([made.transition] if made.transition is not None else [])]
    assert [1 + len(each.transitions[0]) if isinstance(each, DeepStack) else None for each in stacks] == cells
