"""Products with weights in floating point that are laid out, against PyTorch's in float64."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from nmt.extras.speed import native
from nmt.extras.speed.product import PackedWeight
from tests.extras.speed.test_native import close, drawn, each_type, needs_kernels

each_way = pytest.mark.parametrize("way", [pytest.param("kernels", marks=needs_kernels), "plain"])


@pytest.fixture
def ways(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "kernels":
        monkeypatch.setattr(
            PackedWeight, "kernels", lambda _, x: None if torch.is_grad_enabled() else native.kernels(x)
        )
    else:
        monkeypatch.setattr(native, "_kernels", lambda _: None)


@each_way
@each_type
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"), [(0, 4, 3), (1, 2, 1), (5, 34, 50), (9, 64, 64), (250, 130, 200), (5, 512, 1000)]
)
@pytest.mark.usefixtures("ways")
def test_the_product_is_pytorchs(
    rows: int, inputs: int, outputs: int, threads: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    plain_OI, bias_O = drawn(outputs, inputs, dtype=dtype, scale=0.2), drawn(outputs, dtype=dtype, seed=2)
    x_NI = drawn(rows, inputs, dtype=dtype, seed=3)
    weight = PackedWeight(plain_OI)
    for bias in (None, bias_O):
        expected_NO = F.linear(x_NI.double(), plain_OI.double(), None if bias is None else bias.double())
        with torch.no_grad():
            found_NO = F.linear(x_NI, weight, bias)
            assert found_NO.dtype == dtype
            torch.testing.assert_close(found_NO.double(), expected_NO, **close(dtype))
            torch.testing.assert_close(
                F.linear(x_NI.t().contiguous().t()[None], weight, bias)[0], found_NO, **close(dtype)
            )


@needs_kernels
@each_type
@torch.no_grad()
def test_a_row_depends_neither_on_the_others_nor_on_threads(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = native.Packed(native.blocks_of(drawn(700, 132, dtype=dtype), 4 // dtype.itemsize), 700, 132)
    kernels = native.kernels(x_NI := drawn(200, 132, dtype=dtype, seed=3))
    assert kernels is not None
    together_NO = kernels.product(x_NI, weight, None)
    for n in range(0, 200, 7):
        assert torch.equal(kernels.product(x_NI[n : n + 1], weight, None)[0], together_NO[n])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)  # which share rows, or outputs where rows are few
    for some in (slice(0, 200), slice(0, 13)):
        assert torch.equal(kernels.product(x_NI[some], weight, None), together_NO[some])


@needs_kernels
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux")
@torch.no_grad()
def test_threads_are_those_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, x_NI = PackedWeight(drawn(1000, 512)), drawn(13, 512, seed=3)
    kernels = native.kernels(x_NI)
    assert kernels is not None

    def threads_after(count: int) -> int:
        monkeypatch.setattr(torch, "get_num_threads", lambda: count)
        kernels.product(x_NI, weight.packed, None)
        return len(list(Path("/proc/self/task").iterdir()))

    alone = threads_after(1)
    assert threads_after(12) > alone
    assert threads_after(12) == threads_after(12), "they are kept"


@each_way
@pytest.mark.usefixtures("ways")
def test_it_has_gradients_and_other_types() -> None:
    plain_OI, x_NI = drawn(6, 4), drawn(3, 4, seed=2).requires_grad_()
    (found,) = torch.autograd.grad(F.linear(x_NI, PackedWeight(plain_OI)).sum(), [x_NI])
    torch.testing.assert_close(found, plain_OI.sum(dim=0).expand(3, 4))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert F.linear(x_NI.bfloat16(), PackedWeight(plain_OI)).dtype == torch.bfloat16


@each_way
@pytest.mark.usefixtures("ways")
@torch.no_grad()
def test_weights_are_joined() -> None:
    plain_OI, other_OI, x_NI = drawn(6, 4), drawn(3, 4, seed=2), drawn(5, 4, seed=3)
    one, other = PackedWeight(plain_OI), PackedWeight(other_OI)
    joined = torch.cat([one, other])
    assert torch.cat([one, other]) is joined, "it is laid out once"
    torch.testing.assert_close(F.linear(x_NI, joined), x_NI @ torch.cat([plain_OI, other_OI]).T)
