"""Largest logits by kernels, against sorted lists, searches with an output layer of 8-bit integers, and attention where
there is no CUDA device: the textbook body, with its weights on demand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch

from nmt.extras.speed import native
from nmt.extras.speed.compiled import compiled
from nmt.extras.speed.operations import fused_attend, kernel_log_normalizer, kernel_top_tokens
from nmt.ops import attend


@pytest.fixture(autouse=True, params=["kernels", "operations"])
def _with_and_without_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "operations":
        monkeypatch.setattr(native, "_kernels", lambda _: None)
    elif compiled() is None:
        pytest.skip("no C++ compiler: PyTorch's operations are used")
    with torch.no_grad():
        yield


@pytest.mark.parametrize("vocabulary", [5, 64, 65, 3000])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_largest_logits_are_those_of_a_sort(vocabulary: int, normalized: bool) -> None:
    logits_NV = torch.randn(6, vocabulary, generator=torch.Generator().manual_seed(vocabulary))
    logits_NV[0, -1] = 9.0
    logits_NV[5, 0] = 8.0
    logits_NV[1] = -torch.inf
    for count, rows_NV in itertools.product((1, 5), (logits_NV, logits_NV.T.contiguous().T)):
        top = kernel_top_tokens(rows_NV, count, normalized)
        for logits, tokens, row in zip(top.logit_NK, top.token_NK, logits_NV, strict=True):
            assert logits.tolist() == sorted(row.tolist(), reverse=True)[:count]
            assert row[tokens].tolist() == logits.tolist()
            if logits.isfinite().all():
                assert len(set(tokens.tolist())) == count
        if normalized:
            assert top.log_normalizer_N is not None
            torch.testing.assert_close(top.log_normalizer_N, logits_NV.logsumexp(dim=1))
        else:
            assert top.log_normalizer_N is None


def test_equal_logits_are_found_as_often_as_they_exist() -> None:
    logits_NV = torch.zeros(1, 2000)
    logits_NV[0, [3, 253, 503, 1999]] = 1.0
    top = kernel_top_tokens(logits_NV, 6, False)
    assert top.logit_NK[0].tolist() == [1.0] * 4 + [0.0] * 2
    assert sorted(top.token_NK[0, :4].tolist()) == [3, 253, 503, 1999]
    assert len(set(top.token_NK[0].tolist())) == 6


def test_few_allowed_tokens_are_found_among_impossible_ones() -> None:
    logits_NV = torch.full((2, 4001), -torch.inf)
    logits_NV[0, 4000], logits_NV[1, 17] = -3.0, -2.0
    assert kernel_top_tokens(logits_NV, 1, False).token_NK.tolist() == [[4000], [17]]
    top = kernel_top_tokens(logits_NV, 2, True)
    assert top.logit_NK.tolist() == [[-3.0, -torch.inf], [-2.0, -torch.inf]]
    assert top.token_NK[:, 0].tolist() == [4000, 17]
    assert kernel_log_normalizer(logits_NV).tolist() == [-3.0, -2.0]


def test_on_a_cpu_attention_is_that_of_the_body() -> None:
    query_BHTA, keys_BHSA, values_BHSA = (torch.randn(2, 3, length, 8) for length in (4, 5, 5))
    is_hidden = torch.arange(5) > torch.tensor([1, 4])[:, None, None, None]
    factors = (torch.rand(2, 3, 4, 5) < 0.8) / 0.8
    for dropout_factors in (None, factors):
        given = (query_BHTA, keys_BHSA, values_BHSA, is_hidden, 0.3, dropout_factors)
        (found, weights), (expected, body_weights) = fused_attend(*given), attend.body(*given)
        assert torch.equal(found, expected)
        assert torch.equal(weights(), body_weights())
