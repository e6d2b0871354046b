from __future__ import annotations

import random

import pytest

from nmt.data.misalignment import locate_misalignment, shifted_windows


def synthetic(pairs: int, seed: int) -> tuple[list[str], list[str]]:
    """Lengths as of translations: log-normal, the target's log length 0.2 around the source's (correlation 0.9)."""
    draw = random.Random(seed)
    lengths = [draw.gauss(4, 0.45) for _ in range(pairs)]
    sources = ["s" * round(2.718**length) for length in lengths]
    return sources, ["t" * round(2.718 ** (length + draw.gauss(0, 0.2))) for length in lengths]


@pytest.mark.parametrize("place", [0, 10, 500, 2500, 4800, 4990])
@pytest.mark.parametrize("change", ["insert in source", "insert in target", "delete in source", "insert three"])
def test_misalignment_is_located(place: int, change: str) -> None:
    sources, targets = synthetic(5000, seed=place)
    if change == "insert in source":
        sources.insert(place, "s" * 60)
    elif change == "insert in target":
        targets.insert(place, "")
    elif change == "delete in source":
        del sources[place]
    else:
        sources[place:place] = ["s" * 50, "s" * 70, "s" * 20]
    assert abs(locate_misalignment(sources, targets) - (place + 1)) <= 50


def test_the_first_of_several_misalignments_is_located() -> None:
    sources, targets = synthetic(5000, seed=1)
    sources.insert(3500, "s" * 50)
    sources.insert(1200, "s" * 50)
    assert abs(locate_misalignment(sources, targets) - 1201) <= 50


def test_misalignment_of_lines_that_say_nothing_is_still_a_line() -> None:
    assert 1 <= locate_misalignment(["a"] * 10, ["a"] * 7) <= 8
    assert locate_misalignment([], ["a"]) == 1


@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
@pytest.mark.parametrize("pairs", [200, 680, 5000])
def test_shifted_lines_are_found(pairs: int, shift: int) -> None:
    sources, targets = synthetic(pairs + abs(shift), seed=pairs)
    sources, targets = sources[max(-shift, 0) :][:pairs], targets[max(shift, 0) :][:pairs]
    found = list(shifted_windows(sources, targets))
    assert [begin for begin, _, _ in found] == [0, *(end for _, end, _ in found[:-1])]  # every line, once
    assert found[-1][1] == pairs
    assert {by for _, _, by in found} == {shift}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pairs", [0, 1, 60, 199, 200, 700, 20_000])
def test_no_other_lines_are_found(pairs: int) -> None:
    sources, targets = synthetic(pairs, seed=3)
    assert not list(shifted_windows(sources, targets))
    assert not list(shifted_windows(sources, targets[::-1]))  # unrelated lines
    by_length = sorted(zip(sources, targets, strict=True), key=lambda pair: len(pair[0]))
    assert not list(shifted_windows(*([pair[side] for pair in by_length] for side in (0, 1))))
    assert not list(shifted_windows(["a"] * pairs, targets))
    assert not list(shifted_windows(["a", *["bb"] * pairs][:pairs], targets))


@pytest.mark.filterwarnings("error")
def test_lines_of_one_length_tell_nothing() -> None:
    """Their correlation is one of rounding errors, which differ between machines."""
    for length in range(1, 60):
        assert not list(shifted_windows(["s" * length] * 500, ["t" * 30] * 500))
    targets = ["tt"] * 700 + ["ttt"] * 300  # of other numbers of digits, say
    assert not list(shifted_windows(["s"] * 697 + ["ss"] * 303, targets))


@pytest.mark.parametrize("turns", [1, 2])
def test_the_next_turn_of_a_dialogue_is_no_shift(turns: int) -> None:
    sources, targets = synthetic(1000, seed=1)
    lines = [f"{number} {source}" for number, source in enumerate(sources)]
    history = ["".join(lines[max(number + 1 - turns, 0) : number + 1]) for number in range(999)]
    assert not list(shifted_windows(history, lines[1:]))
    assert not list(shifted_windows(lines[1:], lines[:-1]))
    assert list(shifted_windows(lines[:-1], targets[1:]))
