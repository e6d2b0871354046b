"""Several heads of a recurrent decoder against the attention of each by itself in plain loops."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmt.attention.recurrent_multihead import RecurrentMultiHead
from tests.attention.oracles import Past, attend_by_heads, attention_config

HEADS, LENGTHS = 2, [5, 3]


@torch.no_grad()
@pytest.mark.parametrize("beams", [1, 2], ids=["", "beams"])
@pytest.mark.parametrize(
    ("score", "weights"), [("additive", "softmax"), ("dot", "local_p"), ("coverage", "softmax"), ("general", "shift")]
)
def test_each_head_attends_by_itself_step_after_step(score: str, weights: str, beams: int) -> None:
    torch.manual_seed(1)
    config = attention_config(score, weights).model_copy(update={"heads": HEADS})
    attention = RecurrentMultiHead(config, query_size=5, key_size=6, value_size=6, dropout=0.0).double().eval()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.7)
    states_BSD, query_NTQ = torch.randn(2, 5, 6).double(), torch.randn(2 * beams, 3, 5).double()
    is_pad_BS = torch.arange(5) >= torch.tensor(LENGTHS)[:, None]
    memory = attention.memory(states_BSD, states_BSD, is_pad_BS)
    state = attention.start(memory)
    assert attention.is_stateful == (state is not None) == (score == "coverage" or weights == "shift")
    state = None if state is None else state.repeat(beams)
    pasts = [[Past() for _ in range(HEADS)] for _ in query_NTQ]
    for t in range(3):
        attended = attention(query_NTQ[:, t : t + 1], torch.full((2 * beams, 1), t), memory, state)
        state = attended.state
        for n, query_TQ in enumerate(query_NTQ):
            length = LENGTHS[n // beams]
            expected = attend_by_heads(attention, query_TQ[t], t, states_BSD[n // beams, :length], pasts[n])
            for ours, weights_S in zip(attended.weights_NHTS[n, :, 0].tolist(), expected[0], strict=True):
                assert ours == pytest.approx(weights_S + [0.0] * (5 - length), abs=1e-5)
            assert attended.context_NTV[n, 0].tolist() == pytest.approx(expected[1], abs=1e-4)


def test_every_head_is_told_the_update() -> None:
    config = attention_config("additive", "gumbel").model_copy(update={"heads": HEADS})
    attention = RecurrentMultiHead(config, query_size=5, key_size=6, value_size=6, dropout=0.0)
    attention.update = 7
    assert [attention.update, *(head.update for head in attention.attentions)] == [7] * (1 + HEADS)
