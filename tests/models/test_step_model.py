"""Models that stand between a search and another model."""

from __future__ import annotations

import pytest
import torch

from nmt.models.step_model import Interruptible, WithoutToken
from tests.models.plain_decoder import SOURCES, padded
from tests.models.variants import make, tree

MODEL = make(tree())
TOKEN_B = torch.tensor([4, 5, 4])


@torch.no_grad()
def test_a_token_has_no_probability_and_the_others_share_it_out() -> None:
    memory = MODEL.encode(padded(SOURCES))
    whole = MODEL.step(TOKEN_B, memory, MODEL.start(memory))
    best = int(whole.logits_NV[0].argmax())
    outer = WithoutToken(MODEL, best)
    assert (outer.pad, outer.training) == (0, False)
    assert outer.first_token(2, TOKEN_B.device).tolist() == [2, 2]
    step = outer.step(TOKEN_B, outer.encode(padded(SOURCES)), outer.start(memory))
    logits_BV = whole.logits_NV.clone()
    logits_BV[:, best] = -torch.inf
    assert torch.equal(step.logits_NV, logits_BV)
    assert torch.equal(step.weights_NHS, whole.weights_NHS)
    found = step.top_tokens(5, True)
    assert found.token_NK.tolist() == logits_BV.topk(5).indices.tolist()
    torch.testing.assert_close(found.logit_NK, logits_BV.topk(5).values)
    torch.testing.assert_close(found.log_normalizer_N, logits_BV.logsumexp(-1))


def test_a_function_is_called_before_each_step_and_may_end_it() -> None:
    calls = iter(["first", "second"])
    outer = Interruptible(MODEL, lambda: next(calls))
    assert (outer.pad, outer.training) == (0, False)
    memory = outer.encode(padded(SOURCES))
    state = outer.start(memory)
    for token_B in (outer.first_token(3, TOKEN_B.device), TOKEN_B):
        step, expected = outer.step(token_B, memory, state), MODEL.step(token_B, memory, state)
        assert torch.equal(step.logits_NV, expected.logits_NV)
        state = step.state
    with pytest.raises(StopIteration):
        outer.step(TOKEN_B, memory, state)
