"""The kernels of attention between short sentences, run by Triton's interpreter on the CPU, against a softmax in
64-bit floats. Triton asks for the interpreter where it is imported, so this file is a program too."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor


def test_contexts_and_gradients_are_those_of_a_softmax() -> None:
    pytest.importorskip("triton", reason="Triton is not here: PyTorch for CUDA brings it")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", __name__], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "24 cases\n"), done.stderr


def _heads(length: int, dtype: torch.dtype) -> Tensor:
    """Two heads of width 16 of three sentences, lying as a projection leaves them: not one after the other."""
    return torch.randn(3, length, 2, 16, dtype=dtype).transpose(1, 2).requires_grad_()


def _check(dtype: torch.dtype, time: int, positions: int, hides: str) -> None:
    from nmt.extras.speed.short_attention import ShortAttention

    query, keys, values = (_heads(length, dtype) for length in (time, positions, positions))
    is_hidden = None
    if hides == "padding":
        is_hidden = torch.rand(3, 1, 1, positions) < 0.4
    elif hides == "later":
        is_hidden = torch.ones(time, positions, dtype=torch.bool).triu(1).expand(3, 1, -1, -1).clone()
    if is_hidden is not None:
        is_hidden[..., 0] = False  # what sees nothing has no weights
    factors = None if hides == "padding" else ((torch.rand(3, 2, time, positions) < 0.8) / 0.8).to(dtype)
    given = torch.randn(3, 2, time, 16, dtype=dtype)

    context = ShortAttention.apply(query, keys, values, is_hidden, 0.25, factors)  # type: ignore[no-untyped-call]
    gradients = torch.autograd.grad(context, (query, keys, values), given)

    exact = [each.detach().double().requires_grad_() for each in (query, keys, values)]
    scores = 0.25 * exact[0] @ exact[1].mT
    weights = (scores if is_hidden is None else scores.masked_fill(is_hidden, -torch.inf)).softmax(dim=-1)
    expected = (weights if factors is None else weights * factors) @ exact[2]
    tolerance = 1e-5 if dtype == torch.float32 else 4e-3
    expected_gradients = torch.autograd.grad(expected, exact, given.double())
    for found, wanted in zip((context, *gradients), (expected, *expected_gradients), strict=True):
        torch.testing.assert_close(found.double(), wanted, atol=tolerance, rtol=tolerance)


if __name__ == "__main__":
    torch.manual_seed(1)
    # not bfloat16, whose products the interpreter of Triton 3.9 forms of its bits
    sizes = ((5, 7), (16, 16), (18, 3), (1, 1))
    cases = list(itertools.product((torch.float32, torch.float16), sizes, ("nothing", "padding", "later")))
    for dtype, size, hides in cases:
        _check(dtype, *size, hides)
    print(len(cases), "cases")
