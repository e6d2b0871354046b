"""Seeds and states of the generators."""

from __future__ import annotations

import torch

from nmt.core.seed import generator_states, restore_generators, seed_everything, seed_update

CPU = torch.device("cpu")


def test_draws_are_a_function_of_the_seed() -> None:
    def drawn(seed: int) -> list[float]:
        seed_everything(seed)
        return torch.rand(4).tolist()

    assert drawn(3) == drawn(3) != drawn(4)


def test_each_update_of_each_process_has_draws_of_its_own() -> None:
    def drawn(seed: int, rank: int, update: int) -> tuple[float, ...]:
        seed_update(seed, rank=rank, update=update)
        return tuple(torch.rand(4).tolist())

    cases = [(seed, rank, update) for seed in (1, 2) for rank in (0, 1) for update in (0, 1)]
    first = [drawn(*case) for case in cases]
    assert len(set(first)) == 8
    assert [drawn(*case) for case in reversed(cases)] == first[::-1]


def test_a_restored_state_goes_on_with_the_same_draws() -> None:
    states = generator_states(CPU)
    assert {name: state.dtype for name, state in states.items()} == {"cpu": torch.uint8}
    expected = torch.rand(4)
    restore_generators(states, CPU)
    assert torch.equal(torch.rand(4), expected)
