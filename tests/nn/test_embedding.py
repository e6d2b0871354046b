"""The table of word embeddings."""

from __future__ import annotations

import pytest
import torch

from nmt.nn.embedding import Embedding


def test_vectors_are_rows_of_the_table_and_padding_is_zero_and_not_trained() -> None:
    embedding, tokens_BT = Embedding(500, 64, pad=3), torch.tensor([[4, 3], [0, 4]])
    weight_VD = embedding.weight_VD
    found_BTD = embedding(tokens_BT)
    assert found_BTD.tolist() == [[weight_VD[token].tolist() for token in row] for row in tokens_BT.tolist()]
    assert weight_VD[3].tolist() == [0.0] * 64
    assert weight_VD.std().item() == pytest.approx(64**-0.5, rel=0.02)
    found_BTD.sum().backward()
    assert weight_VD.grad is not None
    assert weight_VD.grad[:5, 0].tolist() == [1.0, 0.0, 0.0, 0.0, 2.0]
