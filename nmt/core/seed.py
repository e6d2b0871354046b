"""Seeds and states of PyTorch's random number generators."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def seed_everything(seed: int) -> None:
    """Seed PyTorch's generators. Generators of NumPy are created from the same seed at the place of their use."""
    torch.manual_seed(seed)


def seed_update(seed: int, *, rank: int, update: int) -> None:
    """Seed PyTorch's generators as a function of seed, process and update, for processes without a saved state."""
    (combined,) = np.random.SeedSequence([seed, rank, update]).generate_state(1, np.uint64)
    torch.manual_seed(int(combined))


def generator_states(device: torch.device) -> dict[str, Tensor]:
    """States of the generators of the CPU and of ``device``, as bytes (uint8)."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def restore_generators(states: dict[str, Tensor], device: torch.device) -> None:
    """Set the generators to the result of ``generator_states``."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
