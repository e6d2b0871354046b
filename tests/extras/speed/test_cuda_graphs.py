"""States with room for further steps, which CUDA graphs need; the graphs themselves are tested in ``tests/cuda``."""

from __future__ import annotations

import torch

from nmt.extras.speed.cuda_graphs import ROOM, JoinedState, _step
from tests.models.plain_decoder import SOURCES, padded
from tests.models.variants import TRANSFORMER, make, tree


@torch.no_grad()
def test_steps_from_states_with_room_are_those_of_the_decoder() -> None:
    model = make(tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)).eval()
    memory = model.encode(padded(SOURCES))
    plain = model.start(memory)
    joined = JoinedState.of(plain)
    for time in range(ROOM + 3):
        token_N = torch.full((len(memory),), 4 + time % 2)
        expected = model.decoder.step(token_N, memory, plain)
        found = _step(model.decoder, token_N, memory, joined)
        torch.testing.assert_close(found.readout_NR, expected.readout_NR)
        plain, joined = expected.state, JoinedState.of(found.state)
        assert joined.steps == time + 1 < joined.past_NLXHTA.shape[4]
