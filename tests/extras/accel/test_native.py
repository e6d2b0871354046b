"""The kernels in C++ against PyTorch's operations in float64, and what happens where they cannot be made."""

from __future__ import annotations

import importlib
import math
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.core import log
from nmt.extras.accel import native
from nmt.extras.accel.int8 import Int8Weight, add_product
from nmt.extras.accel.native import FEW_THREADS, MAX_KEY_MAGNITUDE, Kernels, LstmWeights, ShortlistRows
from nmt.extras.accel.native.compiled import compiled

making = importlib.import_module("nmt.extras.accel.native.compiled")  # of whose name the package has a function
needs_kernels = pytest.mark.skipif(compiled() is None, reason="no C++ compiler: PyTorch's operations are used")
each_type = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])


@torch.no_grad()
def kernels(dtype: torch.dtype = torch.float32) -> Kernels:
    found = native.kernels(torch.zeros(1, dtype=dtype))
    assert found is not None
    return found


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


def lstm_weights(weights: list[Int8Weight], bias_G: Tensor) -> LstmWeights:
    return LstmWeights([(weight.values_OI, weight.scale_O) for weight in weights], bias_G)


def listed_int8(of: Kernels, x_NI: Tensor, weight: Int8Weight, bias_O: Tensor, rows: ShortlistRows) -> Tensor:
    return of.shortlist_int8(x_NI, weight.values_OI, weight.shift(), weight.scale_O, bias_O, rows)


def close(dtype: torch.dtype) -> dict[str, float]:
    return {"atol": 1e-5, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 1e-2, "rtol": 1e-2}


# ---- each kernel


@needs_kernels
@each_type
@pytest.mark.parametrize("width", [1, 7, 32, 64, 65])
@pytest.mark.parametrize(("positions", "beams"), [(1, 1), (14, 1), (16, 3), (37, 2)])
def test_attention_of_one_query(positions: int, beams: int, width: int, dtype: torch.dtype) -> None:
    batch, heads = 3, 2
    # as models have them: a part of a larger tensor, heads of a row side by side
    query_NHA = drawn(batch * beams, 3, heads, width, dtype=dtype)[:, 1]
    kept = drawn(batch, 2, heads, positions, width, dtype=dtype, seed=2)
    is_pad_BS = torch.rand(batch, positions, generator=torch.Generator().manual_seed(3)) < 0.4
    is_pad_BS[:, 0] = False
    for hidden in (None, is_pad_BS):
        found_NQ = kernels(dtype).attend(query_NHA, kept[:, 0], kept[:, 1], hidden, 0.3)
        memory = kept.double().repeat_interleave(beams, dim=0)
        scores_NHS = 0.3 * torch.einsum("nha,nhsa->nhs", query_NHA.double(), memory[:, 0])
        if hidden is not None:
            scores_NHS = scores_NHS.masked_fill(hidden.repeat_interleave(beams, dim=0)[:, None], -torch.inf)
        expected = torch.einsum("nhs,nhsa->nha", scores_NHS.softmax(-1), memory[:, 1]).flatten(1)
        torch.testing.assert_close(found_NQ.double(), expected, **close(dtype))


@needs_kernels
@each_type
@pytest.mark.parametrize("width", [1, 7, 32, 64, 65])
@pytest.mark.parametrize("positions", [1, 5, 16, 37])
def test_attention_to_the_steps_behind(positions: int, width: int, dtype: torch.dtype) -> None:
    rows, heads = 5, 2
    # earlier steps have had more rows; before keys and values there is a query, or there is none
    for parts in (2, 3):
        steps = [drawn(rows + positions - s, parts * heads * width, dtype=dtype, seed=s) for s in range(positions)]
        backpointer_NT = torch.stack(
            [
                torch.randint(len(step), (rows,), generator=torch.Generator().manual_seed(s))
                for s, step in enumerate(steps)
            ],
            dim=1,
        )
        query_NHA = drawn(rows, 3, heads, width, dtype=dtype)[:, 1]
        found_NQ = kernels(dtype).attend_to_steps(query_NHA, steps, backpointer_NT, 0.3)
        past_NTX = torch.stack([step[row_N] for step, row_N in zip(steps, backpointer_NT.T, strict=True)], dim=1)
        keys, values = past_NTX.double().view(rows, positions, parts, heads, width)[:, :, -2:].unbind(dim=2)
        weights_NHS = (0.3 * torch.einsum("nha,nsha->nhs", query_NHA.double(), keys)).softmax(dim=-1)
        expected = torch.einsum("nhs,nsha->nha", weights_NHS, values).flatten(1)
        torch.testing.assert_close(found_NQ.double(), expected, **close(dtype))


@needs_kernels
def test_what_is_hidden_has_exactly_no_weight() -> None:
    query_NHA, memory = drawn(1, 1, 32).abs(), drawn(1, 1, 5, 32, seed=2)
    is_pad_BS = torch.tensor([[False, False, True, True, True]])
    found = kernels().attend(query_NHA, memory, memory, is_pad_BS, 1.0)
    changed = memory.clone()
    changed[:, :, 2:] = 1e9
    assert torch.equal(kernels().attend(query_NHA, changed, changed, is_pad_BS, 1.0), found)


@needs_kernels
def test_a_row_that_is_lost_takes_no_other_with_it() -> None:
    query_NHA, memory = drawn(3, 2, 8), drawn(3, 2, 5, 8, seed=2)
    alone = kernels().attend(query_NHA, memory, memory, None, 1.0)
    query_NHA[0, 0, 0] = torch.nan
    found = kernels().attend(query_NHA, memory, memory, None, 1.0)
    assert found[0, :8].isnan().all()
    assert torch.equal(found[0, 8:], alone[0, 8:])
    assert torch.equal(found[1:], alone[1:])
    weight, x_NI = Int8Weight.of(drawn(6, 8), torch.float32), drawn(3, 8)
    x_NI[1, 3] = torch.nan
    with torch.no_grad():
        product_NO = torch.nn.functional.linear(x_NI, weight)
    assert product_NO.isnan().all(dim=1).tolist() == [False, True, False]


@needs_kernels
def test_what_does_not_go_together_is_refused() -> None:
    weight, memory = Int8Weight.of(drawn(6, 8), torch.float32), drawn(3, 2, 5, 8)
    of_lstm = lstm_weights([Int8Weight.of(drawn(8, 8), torch.float32)], drawn(8))
    lists, no_pad_MS = torch.zeros(2, 3, dtype=torch.int64), torch.zeros(3, 5, dtype=torch.bool)

    def best(x_NI: torch.Tensor, bias_O: torch.Tensor, count: int) -> object:
        return kernels().top_outputs(x_NI, weight.packed(), weight.scale_O, bias_O, count, normalized=False)

    calls: list[Callable[[], object]] = [
        lambda: kernels().product(drawn(2, 9), weight.packed(), weight.scale_O, None, drawn(2, 6), onto=False),
        lambda: kernels().product(drawn(2, 8), weight.packed(), weight.scale_O, None, drawn(2, 5), onto=False),
        lambda: kernels().attend(drawn(2, 2, 8), memory, memory, None, 1.0),
        lambda: kernels().attend(drawn(4, 2, 8), memory, memory, None, 1.0),
        lambda: kernels().attend(drawn(3, 2, 8), memory, memory, torch.zeros(2, 5, dtype=torch.bool), 1.0),
        lambda: kernels().attend(drawn(3, 2, 8), memory.bfloat16(), memory.bfloat16(), None, 1.0),
        lambda: kernels().attend_to_steps(drawn(2, 2, 4), [drawn(2, 16)], torch.zeros(3, 1, dtype=torch.int64), 1.0),
        lambda: kernels().attend_to_steps(drawn(2, 2, 4), [drawn(2, 16)], torch.zeros(2, 2, dtype=torch.int64), 1.0),
        lambda: kernels().attend_to_steps(drawn(2, 2, 4), [drawn(2, 16)], torch.zeros(2, 1, dtype=torch.int32), 1.0),
        lambda: kernels().attend_to_steps(drawn(2, 2, 4), [drawn(2, 15)], torch.zeros(2, 1, dtype=torch.int64), 1.0),
        lambda: lstm_weights([Int8Weight.of(drawn(8, 8), torch.float32)], drawn(6)),
        lambda: kernels().lstm_step([drawn(3, 8)], of_lstm, drawn(3, 3)),
        lambda: kernels().lstm_step([drawn(3, 7)], of_lstm, drawn(3, 2)),
        lambda: kernels().lstm_step([drawn(2, 8)], of_lstm, drawn(3, 2)),
        lambda: kernels().lstm_step([drawn(3, 8)] * 2, of_lstm, drawn(3, 2)),
        lambda: kernels().additive(drawn(2, 8), drawn(3, 5, 8), drawn(8)),
        lambda: kernels().additive_attention(drawn(2, 8), drawn(3, 5, 8), drawn(8), drawn(3, 5, 2), no_pad_MS),
        lambda: kernels().additive_attention(drawn(3, 8), drawn(3, 5, 8), drawn(8), drawn(3, 4, 2), no_pad_MS),
        lambda: kernels().additive_attention(
            drawn(3, 8), drawn(3, 5, 8), drawn(8), drawn(3, 5, 2).bfloat16(), no_pad_MS
        ),
        lambda: kernels().additive_attention(
            drawn(3, 8), drawn(3, 5, 8).double(), drawn(8), drawn(3, 5, 2).double(), no_pad_MS
        ),
        lambda: kernels().additive_attention(drawn(3, 8), drawn(3, 5, 8), drawn(8), drawn(3, 5, 2), no_pad_MS.int()),
        lambda: best(drawn(2, 9), drawn(6), 1),
        lambda: best(drawn(2, 8), drawn(5), 1),
        lambda: best(drawn(2, 8), drawn(6), 7),
        lambda: kernels().shortlist(drawn(4, 8), drawn(6, 9), drawn(6), ShortlistRows(lists, lists[:, 0], 0, 2)),
        lambda: kernels().shortlist(drawn(4, 8), drawn(6, 8), drawn(6), ShortlistRows(lists, lists[:, 0], 1, 2)),
        lambda: kernels().shortlist(drawn(4, 8), drawn(6, 8), drawn(6), ShortlistRows(lists, lists[0], 0, 2)),
        lambda: kernels().shortlist(
            drawn(4, 8), drawn(6, 8), drawn(6), ShortlistRows(lists.int(), lists[:, 0].int(), 0, 2)
        ),
    ]
    for call in calls:
        with pytest.raises((AssertionError, ValueError)):
            call()


@torch.no_grad()
def test_no_rows_have_no_products() -> None:
    weight = Int8Weight.of(drawn(6, 8), torch.float32)
    assert torch.nn.functional.linear(torch.empty(0, 3, 8), weight).shape == (0, 3, 6)


@needs_kernels
def test_attention_may_be_as_sharp_as_it_likes() -> None:
    query_NHA, memory = torch.full((1, 1, 4), 300.0), torch.eye(4).view(1, 1, 4, 4)
    memory[0, 0, 2, 2] = 2.0
    (context_Q,) = kernels().attend(query_NHA, memory, memory, None, 1.0).tolist()
    assert context_Q == pytest.approx([0.0, 0.0, 2.0, 0.0], abs=1e-30)


@needs_kernels
@each_type
@pytest.mark.parametrize(
    ("rows", "width", "inputs"), [(1, 1, [1, 1]), (97, 16, [5, 16]), (391, 70, [6, 70]), (7, 130, [30, 7, 130])]
)
def test_a_step_of_the_lstm_from_its_parts(rows: int, width: int, inputs: list[int], dtype: torch.dtype) -> None:
    of = kernels(dtype)
    if not of._has_product:
        pytest.skip("the CPU has no products of bytes")
    weights = [Int8Weight.of(drawn(4 * width, each, seed=number), dtype) for number, each in enumerate(inputs, 1)]
    parts = [drawn(rows, each, dtype=dtype, seed=number) for number, each in enumerate(inputs, 11)]
    bias_G, cell_ND = drawn(4 * width, dtype=dtype, seed=21), drawn(rows, width, dtype=dtype, seed=22)
    gates_NG = bias_G.double() + sum(
        torch.nn.functional.linear(part.double(), weight.values_OI.double() * weight.scale_O[:, None].double())
        for part, weight in zip((rounded(part) for part in parts), weights, strict=True)
    )
    i, f, g, o = gates_NG.chunk(4, dim=1)
    expected_ND = f.sigmoid() * cell_ND.double() + i.sigmoid() * g.tanh()
    hidden_ND, new_ND = of.lstm_step(parts, lstm_weights(weights, bias_G), cell_ND)
    # in bfloat16 many an input lies in the middle of two integers, and goes to either
    limits = close(dtype) if dtype == torch.float32 else {"atol": 1e-1, "rtol": 0.0}
    torch.testing.assert_close(new_ND.double(), expected_ND, **limits)
    torch.testing.assert_close(hidden_ND.double(), o.sigmoid() * expected_ND.tanh(), **limits)


def rounded(x_NI: Tensor) -> Tensor:
    """As a product of integers reads it."""
    scale_N1 = x_NI.float().abs().amax(dim=1, keepdim=True) / 127
    return (x_NI.float() / scale_N1).round() * scale_N1


@needs_kernels
@each_type
def test_threads_change_no_bit(dtype: torch.dtype) -> None:
    rows, beams, positions, width = 36, 3, 5, 200
    query_NA, keys_MSA, v_A = drawn(rows, width, dtype=dtype), drawn(12, positions, width, dtype=dtype), drawn(width)
    given = (query_NA, keys_MSA, v_A.to(dtype))
    weight, bias_O = Int8Weight.of(drawn(900, width, seed=8), dtype), drawn(900, dtype=dtype, seed=9)
    long_NA, weight_GA = drawn(300, width, dtype=dtype, seed=10), Int8Weight.of(drawn(80, width, seed=11), dtype)
    output_BL = torch.arange(12 * 300).view(12, 300) % 900
    listed_rows = ShortlistRows(output_BL, torch.arange(289, 301), 0, beams)

    def all_of_them() -> list[Tensor]:
        of = kernels(dtype)
        return [
            of.additive(*given),
            *of.additive_attention(
                *given, drawn(12, positions, 70, dtype=dtype), torch.zeros(12, positions, dtype=torch.bool)
            ),
            of.shortlist(query_NA, drawn(900, width, dtype=dtype, seed=8), bias_O, listed_rows),
            *([listed_int8(of, query_NA, weight, bias_O, listed_rows)] if of._has_product else []),
            *(
                of.lstm_step([long_NA], lstm_weights([weight_GA], bias_O[:80]), long_NA[:, :20].contiguous())
                if of._has_product
                else []
            ),
        ]

    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            found.append(all_of_them())
    finally:
        torch.set_num_threads(threads)
    for several in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], several, strict=True))
    assert rows // beams == len(keys_MSA)


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
    torch.testing.assert_close(
        found_NS.double(), expected_NS, rtol=1e-5 if dtype == torch.float32 else 1e-2, atol=1e-5 * width
    )


def plain_additive_attention(
    query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor, values_MSV: Tensor, is_pad_MS: Tensor
) -> tuple[Tensor, Tensor]:
    """In float64, row by row."""
    beams = len(query_NA) // len(keys_MSA)
    contexts, weights = [], []
    for number, query_A in enumerate(query_NA.double()):
        memory = number // beams
        score_S = (query_A + keys_MSA[memory].double()).tanh() @ v_A.double()
        weights.append(score_S.masked_fill(is_pad_MS[memory], -torch.inf).softmax(0))
        contexts.append(weights[-1] @ values_MSV[memory].double())
    return torch.stack(contexts), torch.stack(weights)


@needs_kernels
@each_type
@pytest.mark.parametrize("beams", [1, 2, 5, 12])
@pytest.mark.parametrize(("positions", "width", "value_width"), [(1, 1, 1), (5, 50, 37), (20, 64, 130), (17, 32, 16)])
def test_additive_attention(beams: int, positions: int, width: int, value_width: int, dtype: torch.dtype) -> None:
    memories, sharp = 3, 3.0 / math.sqrt(width)
    query_NA, v_A = drawn(memories * beams, width, dtype=dtype), drawn(width, dtype=dtype, seed=2, scale=sharp)
    keys_MSA = drawn(memories, positions, width, seed=3)
    values_MSV = drawn(memories, positions, value_width, seed=4)
    is_pad_MS = torch.zeros(memories, positions, dtype=torch.bool)
    is_pad_MS[1, (positions + 1) // 2 :] = True
    for narrow in {dtype, torch.bfloat16}:
        keys, values = keys_MSA.to(dtype), values_MSV.to(narrow)
        exp_keys = native.exp_keys(keys).to(narrow)
        context_NV, weights_NS = kernels(dtype).additive_attention(query_NA, exp_keys, v_A, values, is_pad_MS)
        # of what was rounded: the memory's own precision is no fault of the kernel
        expected_NV, expected_NS = plain_additive_attention(
            query_NA, exp_keys.double().log() / 2, v_A, values, is_pad_MS
        )
        assert (weights_NS.dtype, context_NV.dtype) == (torch.float32, dtype)
        torch.testing.assert_close(weights_NS.double(), expected_NS, atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(context_NV.double(), expected_NV, **close(dtype))
        assert (weights_NS.view(memories, beams, positions)[1, :, (positions + 1) // 2 :] == 0.0).all()


@needs_kernels
def test_additive_attention_is_as_exact_where_tanh_is_flat_or_steep() -> None:
    """Sums of query and key far beyond where tanh is 1, near 0 from large parts, and next to nothing."""
    query_NA = torch.tensor([[-90.0], [-44.0], [-34.0], [-9.0], [-1e-3], [0.0], [1e-6], [34.0], [50.0]])
    keys_MSA = query_NA.flatten().clamp(-MAX_KEY_MAGNITUDE, MAX_KEY_MAGNITUDE).expand(9, 9)[:, :, None].contiguous()
    for v in (1.0, -30.0):
        given = torch.tensor([v]), keys_MSA, torch.zeros(9, 9, dtype=torch.bool)
        _, weights_NS = kernels().additive_attention(query_NA, native.exp_keys(keys_MSA), *given)
        _, expected_NS = plain_additive_attention(query_NA, keys_MSA, *given)
        torch.testing.assert_close(weights_NS.double(), expected_NS, atol=2e-6, rtol=1e-4)


@needs_kernels
@each_type
def test_a_row_without_numbers_is_alone_in_it(dtype: torch.dtype) -> None:
    query_NA, v_A, memory_MSA = drawn(6, 40, dtype=dtype), drawn(40, dtype=dtype), drawn(2, 3, 40, dtype=dtype)
    no_pad_MS = torch.zeros(2, 3, dtype=torch.bool)
    exp_keys = native.exp_keys(memory_MSA)
    before, _ = kernels(dtype).additive_attention(query_NA, exp_keys, v_A, memory_MSA, no_pad_MS)
    query_NA[4, 17] = math.nan
    after, _ = kernels(dtype).additive_attention(query_NA, exp_keys, v_A, memory_MSA, no_pad_MS)
    assert after[4].isnan().all()
    assert torch.equal(after[[0, 1, 2, 3, 5]], before[[0, 1, 2, 3, 5]])


@needs_kernels
@each_type
@pytest.mark.parametrize(("inputs", "outputs"), [(8, 6), (50, 64), (256, 1000), (33, 130)])
@pytest.mark.parametrize("count", [1, 4])
def test_the_top_outputs_are_those_of_the_product(inputs: int, outputs: int, count: int, dtype: torch.dtype) -> None:
    of = kernels(dtype)
    if not of._has_product:
        pytest.skip("the CPU has no products of bytes")
    weight_OI, bias_O = drawn(outputs, inputs), drawn(outputs, dtype=dtype, seed=2, scale=3.0)
    weight_OI[outputs // 2 :] = weight_OI[: outputs - outputs // 2]  # so that there are several
    bias_O[outputs // 2 :] = bias_O[: outputs - outputs // 2]
    weight = Int8Weight.of(weight_OI, dtype)
    x_NI = drawn(23, inputs, dtype=dtype, seed=3)
    x_NI[5] = 0.0
    x_NI[7, inputs // 2] = math.nan
    for bias in (
        bias_O,
        torch.full_like(bias_O, -torch.inf),
        bias_O.clone().index_fill_(0, torch.tensor([3]), math.nan),
    ):
        out_NO = of.product(x_NI, weight.packed(), weight.scale_O, bias, x_NI.new_empty(23, outputs), onto=False)
        plain = of.top_outputs(x_NI, weight.packed(), weight.scale_O, bias, count, normalized=False)
        best = of.top_outputs(x_NI, weight.packed(), weight.scale_O, bias, count, normalized=True)
        assert plain.log_normalizer_N is None
        assert best.log_normalizer_N is not None
        assert torch.equal(plain.token_NK, best.token_NK)
        assert best.token_NK[:, 0].tolist() == out_NO.argmax(dim=1).tolist() == of.argmax(out_NO).tolist()
        expected_NK = out_NO.float().topk(count, dim=1).values
        torch.testing.assert_close(best.logit_NK, expected_NK, rtol=0, atol=0, equal_nan=True)
        is_there_NK = ~best.logit_NK.isneginf()
        gathered_NK = out_NO.float().gather(1, best.token_NK)
        torch.testing.assert_close(gathered_NK[is_there_NK], best.logit_NK[is_there_NK], rtol=0, atol=0, equal_nan=True)
        for places, is_there in zip(best.token_NK, is_there_NK, strict=True):
            assert places[is_there].unique().shape == places[is_there].shape
        # to the last bit: a search goes now this way and now that, which its choices must not show
        assert torch.equal(best.log_normalizer_N.nan_to_num(9e9), of.log_normalizer(out_NO).nan_to_num(9e9))
    assert len(set(best.token_NK[:, 0].tolist())) < 3  # NaN is more than any number


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
@pytest.mark.parametrize("tokens", [1, 16, 127, 1000])
def test_the_first_of_the_largest(tokens: int, dtype: torch.dtype) -> None:
    logits_NV = drawn(5, tokens, dtype=dtype)
    logits_NV[1] = -torch.inf
    logits_NV[2, tokens // 3 :] = torch.nan
    logits_NV[3, tokens // 2 :] = 7.0
    logits_NV[4, -1] = 9.0
    first_N = [int(logits_NV[0].argmax()), 0, tokens // 3, tokens // 2, tokens - 1]
    assert kernels(dtype).argmax(logits_NV).tolist() == first_N


@needs_kernels
@each_type
@pytest.mark.parametrize("whole", [True, False], ids=["in one", "by torch"])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 1, 1), (5, 33, 50), (9, 64, 64), (55, 130, 200)])
def test_products_in_integers_are_those_without_kernels(
    rows: int, inputs: int, outputs: int, whole: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    if whole and not kernels(dtype)._has_product:
        pytest.skip("the CPU has no products of bytes")
    monkeypatch.setattr(Kernels, "has_product", lambda _: whole)
    weight, bias_O = Int8Weight.of(drawn(outputs, inputs), dtype), drawn(outputs, dtype=dtype, seed=2)
    x_NI, sum_NO = drawn(rows, inputs, dtype=dtype, seed=3), drawn(rows, outputs, dtype=dtype, seed=4)
    x_NI[0] = 0.0
    x_NI[rows // 2] *= 1e-30

    def products() -> list[Tensor]:
        bare_NO, whole_NO = (torch.nn.functional.linear(x_NI, weight, each) for each in (None, bias_O))
        added_NO = [add_product(sum_NO.clone(), x_NI, weight, each) for each in (None, bias_O)]
        return [bare_NO, whole_NO, *added_NO]

    with torch.no_grad():
        found = products()
        without_kernels(monkeypatch)
        expected = products()
    # in bfloat16 the expected ones are rounded before they are added, to a quarter at most
    close_to = {"atol": 1e-5, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.25, "rtol": 1e-2}
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **close_to)


@needs_kernels
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no bias"])
def test_products_of_many_rows_are_the_same_by_either_way(has_bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are tiles the number of rows decides, and a sentence shall not depend on its company."""
    dtype = torch.bfloat16
    if not kernels(dtype)._has_product:
        pytest.skip("the CPU has no products of bytes")
    weight, x_NI = Int8Weight.of(drawn(3000, 512), dtype), drawn(1000, 512, dtype=dtype, seed=3, scale=0.01)
    bias_O = drawn(3000, dtype=dtype, seed=2) if has_bias else None
    found = []
    for is_left in (True, False):
        monkeypatch.setattr(Kernels, "prefers_tiles", lambda *_, is_left=is_left: is_left)
        with torch.no_grad():
            found.append(torch.nn.functional.linear(x_NI, weight, bias_O))
            found.append(add_product(drawn(1000, 3000, dtype=dtype, seed=4), x_NI, weight, bias_O))
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[3])


@pytest.mark.parametrize("has_tiles", [True, False])
def test_only_large_products_in_bfloat16_are_left_to_tiles(has_tiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "multiplies_tiles", lambda: has_tiles)
    assert Kernels.prefers_tiles(torch.zeros(128, 512, dtype=torch.bfloat16)) == has_tiles
    for shape in ((127, 512), (128, 511)):
        assert not Kernels.prefers_tiles(torch.zeros(shape, dtype=torch.bfloat16))
    assert not Kernels.prefers_tiles(torch.zeros(128, 512))


@needs_kernels
@each_type
@pytest.mark.parametrize("in_bytes", [False, True], ids=["numbers", "bytes"])
@pytest.mark.parametrize("beams", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("inputs", [1, 16, 63, 130])
@torch.no_grad()
def test_outputs_on_a_list_are_those_of_the_whole_product(
    inputs: int, beams: int, in_bytes: bool, dtype: torch.dtype
) -> None:
    if in_bytes and not kernels(dtype)._has_product:
        pytest.skip("the CPU has no products of bytes")
    outputs, columns, lengths = 70, 11, [0, 1, 11, 6]
    output_BL = torch.randint(outputs, (len(lengths), columns), generator=torch.Generator().manual_seed(1))
    length_B = torch.tensor(lengths)
    x_NI, bias_O = drawn(len(lengths) * beams, inputs, dtype=dtype), drawn(outputs, dtype=dtype, seed=2)
    weight_OI = drawn(outputs, inputs, dtype=dtype, seed=3)
    weight = Int8Weight.of(weight_OI, dtype) if in_bytes else weight_OI
    expected = torch.nn.functional.linear(x_NI, weight, bias_O).tolist()
    for first, last in ((0, len(x_NI)), (1, len(x_NI) - 1), (beams, 3 * beams)):
        listed_rows = ShortlistRows(output_BL, length_B, first, beams)
        if isinstance(weight, Int8Weight):
            found_NL = listed_int8(kernels(dtype), x_NI[first:last], weight, bias_O, listed_rows)
        else:
            found_NL = kernels(dtype).shortlist(x_NI[first:last], weight, bias_O, listed_rows)
        for row, found in enumerate(found_NL.tolist(), first):
            sentence = row // beams
            names = output_BL[sentence, : lengths[sentence]].tolist()
            assert found[: len(names)] == pytest.approx([expected[row][each] for each in names], abs=0.05, rel=0.01)
            assert found[len(names) :] == [-math.inf] * (columns - len(names))
            if dtype == torch.float32:
                assert found[: len(names)] == pytest.approx([expected[row][each] for each in names], abs=1e-4)


@needs_kernels
@torch.no_grad()
def test_products_leave_what_is_beside_them_alone() -> None:
    if not kernels()._has_product:
        pytest.skip("the CPU has no products of bytes")
    weight, x_NI = Int8Weight.of(drawn(70, 12), torch.float32), drawn(7, 12, seed=2)
    memory = torch.full((9, 70), 5.0)
    kernels().product(x_NI, weight.packed(), weight.scale_O, None, memory[1:8], onto=False)
    assert (memory[[0, 8]] == 5.0).all()
    torch.testing.assert_close(memory[1:8], torch.nn.functional.linear(x_NI, weight))


def test_many_threads_share_products_out() -> None:
    if compiled() is None:
        pytest.skip("no C++ compiler: PyTorch's operations are used")
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(FEW_THREADS + 1)
        assert not kernels().has_product()
    finally:
        torch.set_num_threads(threads)


# ---- who gets them


def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_kernels", lambda _: None)


def test_gradients_and_other_types_get_none() -> None:
    assert native.kernels(torch.zeros(1)) is None, "gradients are recorded"
    with torch.no_grad():
        assert native.kernels(torch.zeros(1, dtype=torch.float64)) is None
        assert native.kernels(torch.zeros(1, device="meta")) is None
        assert native.kernels(torch.nn.Parameter(torch.zeros(1))) is None


# ---- where they cannot be made

needs_shell = pytest.mark.skipif(shutil.which("sh") is None, reason="the compiler is a shell script")


class Making:
    """The library made anew in a cache of its own; ``made``: whether there is one, and the messages."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def made(self, cache: Path, **environment: str) -> tuple[bool, str]:
        for name, value in {"XDG_CACHE_HOME": str(cache), **environment}.items():
            self._monkeypatch.setenv(name, value)
        log.set_verbosity(log.Verbosity.VERBOSE)
        self._capsys.readouterr()
        library = making.compiled.__wrapped__()
        return library is not None, self._capsys.readouterr().err


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Making:
    return Making(monkeypatch, capsys)


def compiler(path: Path, script: str) -> str:
    path.write_bytes(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\n{script}\n'.encode("latin-1"))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@needs_kernels
@needs_shell
def test_they_are_compiled_once_and_again_where_the_library_is_damaged(tmp_path: Path, library: Making) -> None:
    """By a compiler that copies the library of the other tests. A file is empty after a power cut."""
    usual = compiled()
    assert usual is not None
    copying = compiler(tmp_path / "copying", f'for last; do :; done; cp "{usual._name}" "$last"')
    made, said = library.made(tmp_path, CXX=copying)
    assert made
    assert said == f"kernels: compiling them for this CPU, once ({copying})\n"
    (file,) = (tmp_path / "nmt").iterdir()  # nothing else is left behind
    assert library.made(tmp_path) == (True, "")
    damaged = tmp_path / "damaged" / "nmt" / file.name
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"")
    made, said = library.made(tmp_path / "damaged")
    assert made
    assert said.startswith(f"kernels: {damaged} is damaged\n")
    assert library.made(tmp_path / "damaged") == (True, "")


def test_they_can_be_turned_off(tmp_path: Path, library: Making) -> None:
    assert library.made(tmp_path, NMT_KERNELS="off") == (False, "kernels: turned off by NMT_KERNELS=off\n")
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_there_are_none(tmp_path: Path, library: Making) -> None:
    made, said = library.made(tmp_path, CXX="no-such-compiler")
    assert not made
    assert said.startswith("kernels: PyTorch's own, because there is no C++ compiler")


@needs_shell
def test_a_compiler_that_fails_is_told_of(tmp_path: Path, library: Making) -> None:
    broken = compiler(tmp_path / "broken", "echo no such h\xe9ader >&2\nexit 1")
    made, said = library.made(tmp_path / "cache", CXX=broken)
    assert not made
    assert said.splitlines()[-1] == f"kernels: PyTorch's own, because {broken} did not make others: no such h\ufffdader"
    assert not list((tmp_path / "cache" / "nmt").iterdir())


@pytest.mark.parametrize("error", [RuntimeError("no home directory"), PermissionError("no")], ids=["no home", "closed"])
def test_without_a_place_there_are_none(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def folder() -> Path:
        raise error

    monkeypatch.setattr(making, "_folder", folder)
    assert making.compiled.__wrapped__() is None


def test_where_nothing_can_be_kept_there_are_none(tmp_path: Path, library: Making) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    made, said = library.made(tmp_path / "file")
    assert not made
    assert "PyTorch's own" in said
