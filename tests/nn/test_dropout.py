"""Dropout: shares, masks and random bytes."""

from __future__ import annotations

import pytest
import torch

from nmt.nn.dropout import Dropout, random_bytes


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean_and_drops_the_share(rate: float) -> None:
    dropped = Dropout(rate)(torch.ones(100, 100, 100))
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.004)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    assert dropped.unique().tolist() == pytest.approx([0.0, Dropout(rate).scale])


def test_variational_dropout_has_one_mask_for_all_positions() -> None:
    dropped = Dropout(0.5, variational=True)(torch.ones(4, 7, 50))
    assert (dropped == dropped[:, :1]).all()
    assert not (dropped[0] == dropped[1]).all()
    assert not (Dropout(0.5)(torch.ones(4, 7, 50)) == dropped[:, :1]).all()


def test_dropout_changes_nothing_in_eval_mode_and_repeats_with_the_seed() -> None:
    layer = Dropout(0.5)
    x = torch.randn(2, 3, 4)
    assert layer.eval()(x) is x
    layer.train()
    torch.manual_seed(7)
    first = layer(x)
    assert not torch.equal(first, layer(x))
    torch.manual_seed(7)
    assert torch.equal(first, layer(x))


def test_random_bytes_are_uniform_in_every_place_of_a_word() -> None:
    values = random_bytes((8 * 60_000,), torch.device("cpu")).view(-1, 8)
    for place in range(8):
        counts = torch.bincount(values[:, place].long(), minlength=256).double()
        chi_squared = ((counts - 60_000 / 256) ** 2 / (60_000 / 256)).sum().item()
        assert 180 < chi_squared < 345  # 255 degrees of freedom: p about 1e-4 on either side
