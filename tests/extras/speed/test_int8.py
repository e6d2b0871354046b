"""Weights of 8-bit integers, against products in plain loops, and recurrent stacks, against those that they round."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from nmt.extras.speed import int8
from nmt.extras.speed.int8 import Int8Weight
from nmt.extras.speed.optimize import lay_out
from nmt.models.build import build
from nmt.models.config import ModelConfig
from tests.models.variants import tree

rounded = partial(Int8Weight.of, dtype=torch.float32)


def integers(row: list[float]) -> tuple[list[int], float]:
    scale = max(abs(each) for each in row) / 127
    return [round(each / scale) for each in row], scale


@pytest.mark.parametrize("in_float32", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_product_is_that_of_rounded_rows(
    dtype: torch.dtype, in_float32: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "IN_FLOAT32", in_float32)
    generator = torch.Generator().manual_seed(1)
    weight_OI = torch.randn(5, 7, generator=generator)
    weight_OI[2] *= 100.0  # a row's scale is its own
    x_NI = torch.randn(4, 7, generator=generator).to(dtype)
    x_NI[1] *= 50.0
    bias_O = torch.randn(5, generator=generator).to(dtype)
    product_NO = F.linear(x_NI, Int8Weight.of(weight_OI, dtype), bias_O)
    assert product_NO.dtype == dtype
    for n, row in enumerate(x_NI.double().tolist()):
        values, scale = integers(row)
        for o, column in enumerate(weight_OI.double().tolist()):
            weights, weight_scale = integers(column)
            expected = scale * weight_scale * sum(a * b for a, b in zip(values, weights, strict=True)) + float(
                bias_O[o]
            )
            assert float(product_NO[n, o]) == pytest.approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-2)


def test_integers_are_multiplied_exactly_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8, "IN_FLOAT32", True)
    largest_NI = torch.full((3, 1040), -127, dtype=torch.int8)
    largest_NI[1, ::2] = 127
    expected_NO = largest_NI.long() @ largest_NI.long().T
    assert torch.equal(int8._product(largest_NI, largest_NI).long(), expected_NO)


def test_a_row_does_not_depend_on_the_others() -> None:
    generator = torch.Generator().manual_seed(3)
    weight = Int8Weight.of(torch.randn(64, 32, generator=generator), torch.float32)
    x_NI = torch.randn(9, 32, generator=generator) * torch.logspace(-3, 3, 9)[:, None]
    together_NO = F.linear(x_NI, weight)
    for n in range(len(x_NI)):
        assert torch.equal(F.linear(x_NI[n : n + 1], weight)[0], together_NO[n])
    assert torch.equal(F.linear(x_NI.view(3, 3, 32), weight), together_NO.view(3, 3, -1))


def test_weights_can_be_concatenated() -> None:
    generator = torch.Generator().manual_seed(4)
    one, other = torch.randn(6, 8, generator=generator), torch.randn(2, 8, generator=generator)
    x_NI = torch.randn(3, 8, generator=generator)
    joined = torch.cat([Int8Weight.of(one, torch.float32), Int8Weight.of(other, torch.float32)])
    assert joined.shape == (8, 8)
    expected = [F.linear(x_NI, Int8Weight.of(each, torch.float32)) for each in (one, other)]
    assert torch.equal(F.linear(x_NI, joined), torch.cat(expected, dim=1))


def test_a_row_of_zeros_gives_the_bias() -> None:
    weight = Int8Weight.of(torch.tensor([[0.0, 0.0], [1.0, -2.0]]), torch.float32)
    assert F.linear(torch.zeros(1, 2), weight, torch.tensor([3.0, 4.0])).tolist() == [[3.0, 4.0]]
    assert F.linear(torch.tensor([[5.0, 1.0]]), weight).tolist()[0][0] == 0.0


def test_what_else_is_done_with_a_weight_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="of a weight that is laid out for products"):
        torch.exp(Int8Weight.of(torch.ones(2, 2), torch.float32))


@pytest.mark.parametrize(
    ("encoder", "decoder", "tie"),
    [
        *itertools.product(["rnn", "transformer"], ["rnn", "feeding", "classical", "transformer"], ["none", "all"]),
        ("rnn", "reencoding", "none"),
        ("rnn", "glimpses", "all"),
        ("rnn", "bottom", "all"),
        ("rnn", "deep", "none"),
    ],
)
def test_a_models_steps_stay_close(encoder: str, decoder: str, tie: str) -> None:
    sizes = {"size": 10} if encoder == "transformer" and decoder == "classical" else {}
    options = {
        "rnn": {"kind": "rnn", "input_feeding": False},
        "feeding": {"kind": "rnn", "layers": 2},
        "classical": {"size": 10, "start": "raw", "context": "every_step", "query_embedding": True},
        "transformer": {"kind": "transformer"},
        "reencoding": {"kind": "reencoding"},
        "glimpses": {"kind": "glimpses"},
        "bottom": {"query": "bottom", "layers": 2, "context_gate": True},
        "deep": {"query": "between", "transitions": 1},
    }
    score = "none" if decoder in ("reencoding", "glimpses") else "additive"
    sides = {"encoder": {"kind": encoder, **sizes}, "decoder": options[decoder]}
    config = ModelConfig.model_validate(tree(score=score, tie=tie, **sides))
    torch.manual_seed(5)
    made = [build(config, source_tokens=50, target_tokens=50, pad=0, bos=2).eval() for _ in range(2)]
    made[1].load_state_dict(made[0].state_dict())
    lay_out(made[1], rounded)
    source_BS, token_B = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]]), torch.tensor([2, 2])
    logits = []
    with torch.no_grad():
        for model in made:
            memory = model.encode(source_BS)
            state, steps = model.start(memory), []
            for token in (2, 9, 10):
                step = model.step(torch.full_like(token_B, token), memory, state)
                state = step.state
                steps.append(step.logits_NV)
            logits.append(torch.stack(steps))
            model.teacher_forced(source_BS, memory)  # for alignments
    assert not torch.equal(*logits)
    assert float((logits[0] - logits[1]).std() / logits[0].std()) < 0.1
