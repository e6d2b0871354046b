"""The dtype of matrix products."""

from __future__ import annotations

import pytest
import torch

from nmt.nn.precision import compute_dtype


@pytest.mark.parametrize("like", [torch.float32, torch.bfloat16])
def test_it_is_the_one_that_a_product_has(like: torch.dtype) -> None:
    x = torch.ones(1, 1, dtype=like)
    assert compute_dtype(x) == like
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype):
            assert compute_dtype(x) == (x @ x).dtype == dtype
            with torch.autocast("cpu", enabled=False):
                assert compute_dtype(x) == like
