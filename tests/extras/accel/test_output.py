"""Largest logits by kernels, against sorted lists, and searches with an output layer of 8-bit integers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from nmt.extras.accel import native
from nmt.extras.accel.native.compiled import compiled
from nmt.extras.accel.optimize import quantize
from nmt.extras.accel.output import Int8OutputLayer, kernel_log_normalizer, kernel_top_tokens
from nmt.nn.output import OutputLayer
from nmt.search.beam import BeamSearch
from nmt.search.hypothesis import Search
from nmt.search.logits_processors import LogitsProcessor, LogitsProcessors, NoRepeat
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make, tree
from tests.search.plain_search import EOS, padded


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_searches_with_integers_find_the_same_without_logits(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit; processors, prefixes, limits and groups need the logits."""
    kernels = native.kernels(torch.zeros(1))
    if kernels is None or not kernels.has_product():
        pytest.skip("no product of bytes")
    monkeypatch.setattr("nmt.nn.output.top_tokens", kernel_top_tokens)
    for module in ("beam", "sequential"):
        monkeypatch.setattr(f"nmt.search.{module}.top_tokens", kernel_top_tokens)
        monkeypatch.setattr(f"nmt.search.{module}.log_normalizer", kernel_log_normalizer)
    model = make(tree(), tokens=200).to(dtype)
    quantize(model, dtype)
    sources = [[4, 5, 1, 4, 3], [5, 3], [9, 5, 4, 3], *([token, 3] for token in range(10, 40))]
    steps_with_logits = 0
    forward = OutputLayer.forward

    def counted(self: OutputLayer, readout_ND: Tensor) -> Tensor:
        nonlocal steps_with_logits
        steps_with_logits += 1
        return forward(self, readout_ND)

    monkeypatch.setattr(OutputLayer, "forward", counted)
    ranking, distinct = Ranking(1.0), set()
    searches: dict[str, Search] = {
        "greedy": greedy_search(EOS, ranking),
        "greedy without scores": greedy_search(EOS, ranking, scored=False),
        "beams": BeamSearch(EOS, ranking, beam=4, n_best=3),
        "groups": BeamSearch(EOS, ranking, beam=4, groups=2, diversity=0.5),
    }
    each_processor: list[list[LogitsProcessor]] = [[], [NoRepeat(1)]]
    for (name, search), restrictions, prefixes in itertools.product(
        searches.items(), each_processor, (None, [[5], [], [4, 4]] * 11)
    ):
        processors = LogitsProcessors(torch.tensor([7, 4, 6] * 11), eos=EOS, processors=restrictions, prefixes=prefixes)
        results, counts = [], []
        for top_tokens in (Int8OutputLayer.top_tokens, OutputLayer.top_tokens):
            steps_with_logits = 0
            with monkeypatch.context() as patch:
                patch.setattr(Int8OutputLayer, "top_tokens", top_tokens)
                results.append(search(model, padded(sources), processors))
            counts.append(steps_with_logits)
        assert repr(results[0]) == repr(results[1])
        # steps 4 to 7 may be the last of a sentence, 1 and 2 are in prefixes
        without = 0 if restrictions or name == "groups" else 3 if prefixes is None else 1
        assert counts[0] == counts[1] - without, (name, restrictions, prefixes)
        distinct |= {each.tokens for hypotheses in results[0] for each in hypotheses}
    assert len(distinct) > 30
