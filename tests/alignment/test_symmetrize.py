from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from nmt.alignment import Link
from nmt.alignment.symmetrize import HEURISTICS, symmetrize
from nmt.core.errors import InputError


def oracle(forward: set[Link], backward: set[Link], heuristic: str, sources: int, targets: int) -> tuple[Link, ...]:
    """Koehn's pseudo-code as it stands: loops over the whole grid until a pass adds nothing."""
    union, aligned = forward | backward, forward & backward
    if heuristic == "intersection":
        return tuple(sorted(aligned))
    if heuristic == "union":
        return tuple(sorted(union))

    def free(link: Link) -> list[bool]:
        return [all(each[side] != link[side] for each in aligned) for side in (0, 1)]

    sides = [(-1, 0), (0, -1), (1, 0), (0, 1)]
    corners = [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    added = True
    while added:
        added = False
        for target, source in product(range(targets), range(sources)):
            if (source, target) in aligned:
                for target_step, source_step in sides + corners:
                    new = (source + source_step, target + target_step)
                    if new in union - aligned and any(free(new)):
                        aligned.add(new)
                        added = True
    if heuristic != "grow-diag":
        fits = all if heuristic == "grow-diag-final-and" else any
        for direction, target, source in product((forward, backward), range(targets), range(sources)):
            if (source, target) in direction and fits(free((source, target))):
                aligned.add((source, target))
    return tuple(sorted(aligned))


def random_links(random: np.random.Generator, sources: int, targets: int, functions: bool) -> list[set[Link]]:
    if functions and sources and targets:
        forward = {(int(random.integers(sources)), t) for t in range(targets) if random.random() < 0.8}
        return [forward, {(s, int(random.integers(targets))) for s in range(sources) if random.random() < 0.8}]
    grid = list(product(range(sources), range(targets)))
    return [{link for link in grid if random.random() < 0.3} for _ in range(2)]


@pytest.mark.parametrize("heuristic", HEURISTICS)
@pytest.mark.parametrize("functions", [True, False], ids=["functions", "any-sets"])
def test_equals_the_pseudo_code(heuristic: Any, functions: bool) -> None:
    random = np.random.default_rng(7)
    for _ in range(150):
        sources, targets = (int(n) for n in random.integers(0, 8, 2))
        forward, backward = random_links(random, sources, targets, functions)
        assert symmetrize(forward, backward, heuristic) == oracle(forward, backward, heuristic, sources, targets)


def test_final_prefers_the_forward_direction() -> None:
    assert symmetrize({(0, 0)}, {(0, 1)}, "grow-diag-final-and") == ((0, 0),)
    assert symmetrize({(0, 1)}, {(0, 0)}, "grow-diag-final-and") == ((0, 1),)


def test_an_unknown_heuristic_lists_the_choices() -> None:
    with pytest.raises(InputError, match="unknown symmetrization 'grow': choose one of intersection, union, grow-diag"):
        symmetrize([], [], "grow")  # type: ignore[arg-type]
