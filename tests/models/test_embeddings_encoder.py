"""The encoder of embeddings against its formula."""

from __future__ import annotations

import math

import pytest
import torch

from nmt.models.config import EmbeddingsEncoderConfig
from nmt.models.embeddings_encoder import EmbeddingsEncoder
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding
from tests.models.plain_decoder import padded

WIDTH, SENTENCES = 5, [[4, 5, 1, 4, 3], [5, 3], [3], [8, 7, 6, 3]]


@torch.no_grad()
@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned"])
def test_states_are_embeddings_with_positions_and_the_summary_is_their_mean(positions: str) -> None:
    torch.manual_seed(0)
    config = EmbeddingsEncoderConfig.model_validate({"positions": positions})
    embedding = Embedding(9, WIDTH, pad=0)
    encoder = EmbeddingsEncoder(config, embedding, width=WIDTH, dropout=DropoutConfig(embedding=0.5)).eval()
    assert encoder.size == WIDTH
    source_BS = padded(SENTENCES)
    encoded = encoder(encoder.embed(source_BS), source_BS == 0)
    for row, sentence in enumerate(SENTENCES):
        total_D = [0.0] * WIDTH
        for place, token in enumerate(sentence):
            for d in range(WIDTH):
                expected = math.sqrt(WIDTH) * embedding.weight_VD[token, d].item()
                if positions == "sinusoidal":
                    angle = place / 10_000 ** (2 * (d // 2) / WIDTH)
                    expected += math.cos(angle) if d % 2 else math.sin(angle)
                if positions == "learned":
                    expected += encoder.state_dict()["positions.table_PD"][place, d].item()
                assert encoded.states_BSD[row, place, d].item() == pytest.approx(expected, abs=1e-5)
                total_D[d] += expected / len(sentence)
        assert encoded.final_BD[row].tolist() == pytest.approx(total_D, abs=1e-5)
    dropped = encoder.train()(encoder.embed(source_BS), source_BS == 0).states_BSD
    share = (dropped == 0).float().mean().item()
    assert 0.2 < share < 0.8
