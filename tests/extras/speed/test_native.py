"""The kernels in C++ against PyTorch's operations in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.core import cpu
from nmt.extras.speed import native
from nmt.extras.speed.compiled import compiled
from nmt.extras.speed.int8 import Int8Weight
from nmt.extras.speed.native import Kernels
from nmt.extras.speed.product import PackedWeight

needs_kernels = pytest.mark.skipif(compiled() is None, reason="no C++ compiler: PyTorch's operations are used")
each_type = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])


@torch.no_grad()
def kernels(dtype: torch.dtype = torch.float32) -> Kernels:
    found = native.kernels(torch.zeros(1, dtype=dtype))
    assert found is not None
    return found


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


def close(dtype: torch.dtype) -> dict[str, float]:
    return {"atol": 1e-5, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 1e-2, "rtol": 1e-2}


# ---- each kernel


@needs_kernels
def test_a_row_that_is_lost_takes_no_other_with_it() -> None:
    weight, x_NI = Int8Weight.of(drawn(6, 8), torch.float32), drawn(3, 8)
    x_NI[1, 3] = torch.nan
    with torch.no_grad():
        product_NO = torch.nn.functional.linear(x_NI, weight)
    assert product_NO.isnan().all(dim=1).tolist() == [False, True, False]


@needs_kernels
def test_what_does_not_go_together_is_refused() -> None:
    weight = Int8Weight.of(drawn(6, 8), torch.float32)
    calls: list[Callable[[], object]] = [
        lambda: kernels().product(drawn(2, 9), weight.packed, None),
        lambda: kernels().product(drawn(2, 8), weight.packed, drawn(5)),
        lambda: kernels().additive(drawn(2, 8), drawn(3, 5, 8), drawn(8)),
    ]
    for call in calls:
        with pytest.raises((AssertionError, ValueError)):
            call()


@torch.no_grad()
def test_no_rows_have_no_products() -> None:
    weight = Int8Weight.of(drawn(6, 8), torch.float32)
    assert torch.nn.functional.linear(torch.empty(0, 3, 8), weight).shape == (0, 3, 6)


@needs_kernels
def test_tanh_is_exact_near_zero() -> None:
    small_N = torch.logspace(-12, 0, 200)
    scores_NS = kernels().additive(small_N[:, None], torch.zeros(200, 1, 1), torch.ones(1))
    torch.testing.assert_close(scores_NS[:, 0].double(), small_N.double().tanh(), rtol=4e-7, atol=0.0)
    torch.testing.assert_close(kernels().additive(-small_N[:, None], torch.zeros(200, 1, 1), torch.ones(1)), -scores_NS)


@needs_kernels
@each_type
@pytest.mark.parametrize("width", [1, 16, 50])
def test_the_additive_score(width: int, dtype: torch.dtype) -> None:
    query_NA, keys_MSA, v_A = (
        drawn(*shape, dtype=dtype, seed=seed, scale=2.0)
        for seed, shape in enumerate([(6, width), (2, 5, width), (width,)])
    )
    expected_NS = (query_NA.double()[:, None] + keys_MSA.double().repeat_interleave(3, dim=0)).tanh() @ v_A.double()
    found_NS = kernels(dtype).additive(query_NA, keys_MSA, v_A)
    rtol = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(found_NS.double(), expected_NS, rtol=rtol, atol=1e-5 * width)


@needs_kernels
@each_type
@pytest.mark.parametrize("tokens", [1, 16, 1000])
def test_the_log_normalizer(tokens: int, dtype: torch.dtype) -> None:
    logits_NV = drawn(4, tokens, dtype=dtype, scale=5.0)
    logits_NV[1] += 1000.0
    logits_NV[2, 1:] = -torch.inf
    logits_NV[3] = -torch.inf
    found_N = kernels(dtype).log_normalizer(logits_NV)
    torch.testing.assert_close(found_N.double(), logits_NV.double().logsumexp(1), rtol=1e-6, atol=1e-5)


@needs_kernels
@each_type
@pytest.mark.parametrize("whole", [True, False], ids=["in one", "by torch"])
@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"), [(1, 1, 1), (3, 1, 4), (5, 33, 50), (9, 64, 64), (55, 130, 200)]
)
def test_products_in_integers_are_those_without_kernels(
    rows: int, inputs: int, outputs: int, whole: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    if whole and not kernels(dtype).has_integers:
        pytest.skip("the CPU has no products of bytes")
    monkeypatch.setattr(kernels(dtype), "has_integers", whole)
    weight, bias_O = Int8Weight.of(drawn(outputs, inputs), dtype), drawn(outputs, dtype=dtype, seed=2)
    x_NI = drawn(rows, inputs, dtype=dtype, seed=3)
    x_NI[0] = 0.0
    x_NI[rows // 2] *= 1e-30

    def products() -> list[Tensor]:
        return [torch.nn.functional.linear(x_NI, weight, each) for each in (None, bias_O)]

    with torch.no_grad():
        found = products()
        without_kernels(monkeypatch)
        expected = products()
    # in bfloat16 some integers are rounded to their neighbours
    close_to = {"atol": 1e-5, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.25, "rtol": 1e-2}
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **close_to)


@needs_kernels
@pytest.mark.parametrize("whole", [True, False], ids=["in one", "by torch"])
@torch.no_grad()
def test_no_rows_have_products(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels(), "has_integers", kernels().has_integers and whole)
    weight = Int8Weight.of(drawn(6, 8), torch.float32)
    assert torch.nn.functional.linear(torch.zeros(2, 0, 8), weight).shape == (2, 0, 6)


@needs_kernels
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no bias"])
def test_products_of_many_rows_are_the_same_by_either_way(has_bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are tiles the number of rows decides the method, and a sentence must not depend on its batch."""
    dtype = torch.bfloat16
    if not kernels(dtype).has_integers:
        pytest.skip("the CPU has no products of bytes")
    weight, x_NI = Int8Weight.of(drawn(3000, 512), dtype), drawn(1000, 512, dtype=dtype, seed=3, scale=0.01)
    bias_O = drawn(3000, dtype=dtype, seed=2) if has_bias else None
    found = []
    for is_left in (True, False):
        monkeypatch.setattr(Kernels, "prefers_tiles", lambda *_, is_left=is_left: is_left)
        with torch.no_grad():
            found.append(torch.nn.functional.linear(x_NI, weight, bias_O))
    assert torch.equal(*found)


@needs_kernels
def test_products_are_left_to_what_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = compiled()
    assert loaded is not None
    has_floats = loaded.group_of_integers() > 0
    for features, few, many in (
        ({"avx2"}, False, False),
        ({"avx512_bf16"}, has_floats, has_floats),
        ({"avx512_bf16", "amx_int8", "amx_bf16"}, has_floats, False),
    ):
        monkeypatch.setattr(cpu, "features", lambda features=features: frozenset(features))
        own = {dtype: Kernels(loaded, str(dtype)[6:]) for dtype in (torch.float32, torch.bfloat16)}
        monkeypatch.setattr(native, "_kernels", own.get)
        with torch.no_grad():
            for dtype, inputs, rows, expected in (
                (torch.bfloat16, 8, 15, few),
                (torch.bfloat16, 8, 16, many),
                (torch.bfloat16, 7, 2, False),  # numbers are multiplied in pairs
                (torch.float32, 7, 16, has_floats),
            ):
                found = PackedWeight(drawn(3, inputs, dtype=dtype)).kernels(drawn(rows, inputs, dtype=dtype))
                assert found == (own[dtype] if expected else None)
        has_tiles = "amx_int8" in features
        large_NI = torch.zeros(128, 512, dtype=torch.bfloat16)
        assert own[torch.bfloat16].prefers_tiles(large_NI, native.TILED_INTEGERS) == has_tiles
        assert not own[torch.float32].prefers_tiles(large_NI.float(), native.TILED_INTEGERS)
        for shape in ((127, 512), (128, 511)):
            assert not own[torch.bfloat16].prefers_tiles(large_NI[: shape[0], : shape[1]], native.TILED_INTEGERS)


@needs_kernels
def test_a_cpu_with_instructions_that_ours_lack_has_pytorchs_products(monkeypatch: pytest.MonkeyPatch) -> None:
    has_product = kernels().has_integers
    loaded = compiled()
    assert loaded is not None
    for features, expected in (
        ({"avx2"}, has_product),
        ({"avx2", "avx_vnni"}, False),
        ({"avx_vnni", "avx512_vnni"}, has_product),
    ):
        monkeypatch.setattr(cpu, "features", lambda features=features: frozenset(features))
        assert Kernels(loaded, "float32").has_integers == expected


# ---- who gets them


def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_kernels", lambda _: None)


def test_gradients_and_other_types_get_none() -> None:
    assert native.kernels(torch.zeros(1)) is None, "gradients are recorded"
    with torch.no_grad():
        assert native.kernels(torch.zeros(1, dtype=torch.float64)) is None
        assert native.kernels(torch.zeros(1, device="meta")) is None
        assert native.kernels(torch.nn.Parameter(torch.zeros(1))) is None
