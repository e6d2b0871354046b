"""Randomness: one seed, and generator states that a checkpoint can hold."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def seed_everything(seed: int) -> None:
    """Starts torch's generators; numpy's are made where they are used, from the same seed."""
    torch.manual_seed(seed)


def seed_update(seed: int, *, rank: int, update: int) -> None:
    """Starts torch's generators anew, as a function of seed, process and update alone: for the processes whose states
    no checkpoint holds."""
    (drawn,) = np.random.SeedSequence([seed, rank, update]).generate_state(1, np.uint64)
    torch.manual_seed(int(drawn))


def generator_states(device: torch.device) -> dict[str, Tensor]:
    """The states of the generators that draws on ``device`` come from, as bytes (uint8)."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def restore_generators(states: dict[str, Tensor], device: torch.device) -> None:
    """Undoes what was drawn since ``generator_states``."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
