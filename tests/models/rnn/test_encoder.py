"""The recurrent encoder against torch's own one-layer modules, one sentence and one direction at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nmt.models.rnn.config import RNNEncoderConfig
from nmt.models.rnn.encoder import RNNEncoder
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding
from nmt.nn.recurrent import CELL_TYPES, RecurrentStack
from tests.models.plain_decoder import padded

WIDTH, TOKENS, PAD = 5, 9, 0
SENTENCES = [[4, 5, 1, 4, 3], [5, 3], [3], [8, 7, 6, 3]]


def one_direction(stack: nn.Module, x_SE: Tensor) -> Tensor:
    """The states over a sentence, from zero."""
    assert isinstance(stack, RecurrentStack)
    module = CELL_TYPES[stack.kind].module(x_SE.shape[-1], stack.size, dtype=x_SE.dtype)
    module.load_state_dict(stack.rnns[0].state_dict())
    states_SD: Tensor = module(x_SE)[0]
    return states_SD


def encoded_alone(encoder: RNNEncoder, sentence: list[int]) -> tuple[Tensor, Tensor]:
    """The states of a sentence and its one vector."""
    x_SD = encoder.embedding.weight_VD[torch.tensor(sentence)]
    ends: list[Tensor] = []
    for layer in range(len(encoder.forwards)):
        states_SD = one_direction(encoder.forwards[layer], x_SD)
        size = states_SD.shape[-1]
        if encoder.backwards is not None:
            backwards_SD = one_direction(encoder.backwards[layer], x_SD.flip(0)).flip(0)
            states_SD = torch.cat([states_SD, backwards_SD], dim=-1)
        if encoder.residual and layer > 0:
            states_SD = states_SD + x_SD
        ends = [states_SD[-1, :size], states_SD[0, size:]]
        x_SD = states_SD
    return x_SD, torch.cat(ends)


@torch.no_grad()
@pytest.mark.parametrize("cell", list(CELL_TYPES))
@pytest.mark.parametrize(("layers", "residual"), [(1, False), (3, False), (3, True)], ids=["1", "3", "residual"])
@pytest.mark.parametrize("bidirectional", [True, False], ids=["both directions", "one direction"])
def test_states_and_summary_equal_those_of_each_sentence_alone(
    cell: str, layers: int, residual: bool, bidirectional: bool
) -> None:
    torch.manual_seed(0)
    config = RNNEncoderConfig.model_validate(
        {"cell": cell, "layers": layers, "size": 4, "bidirectional": bidirectional, "residual": residual}
    )
    encoder = RNNEncoder(config, Embedding(TOKENS, WIDTH, pad=PAD), width=WIDTH, dropout=DropoutConfig()).eval()
    for parameter in encoder.parameters():
        nn.init.normal_(parameter)
    assert encoder.size == config.memory_size == (8 if bidirectional else 4)
    encoder = encoder.double()
    source_BS = padded(SENTENCES)
    encoded = encoder(encoder.embed(source_BS), source_BS == PAD)
    for row, sentence in enumerate(SENTENCES):
        states_SD, end_D = encoded_alone(encoder, sentence)
        torch.testing.assert_close(encoded.states_BSD[row, : len(sentence)], states_SD)
        torch.testing.assert_close(encoded.final_BD[row], end_D)
