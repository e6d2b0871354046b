"""Explanations of keys by `nmt config --explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from nmt.config.help import explain, sections
from nmt.config.json_schema import json_schema
from nmt.config.schema import walk
from nmt.config.structure import Structure
from nmt.core.errors import InputError
from nmt.experiment import Experiment


class Round(Structure):
    """A round shape (Euclid, book 3).

    It has no corners.
    """

    kind: Literal["round"] = "round"
    width: Annotated[float, Field(gt=0, lt=10)] = 2.5
    """From side to side, in metres; ``2.5`` is usual."""


class Square(Structure):
    """A square shape."""

    kind: Literal["square"] = "square"
    width: Annotated[int, Field(ge=1, le=5000)] = 3
    """Of one side."""


class Table(Structure):
    """A table."""

    shape: Annotated[Round | Square, Field(discriminator="kind")] = Round()
    """Seen from above."""
    legs: int | None = Field(None, ge=0, description="how many there are; null: it hangs")
    colour: Literal["red", "green"]
    marks: tuple[Square, ...] = ()
    """What is carved into it."""


def test_a_key_has_meaning_type_bounds_default_and_section() -> None:
    assert explain(Table, "legs").splitlines() == [
        "legs",
        "  How many there are; null: it hangs.",
        "  type      a whole number, at least 0 or null",
        "  default   null",
        "  part of   A table.",
    ]


def test_a_key_of_several_kinds_is_told_for_each() -> None:
    assert explain(Table, "shape.width").splitlines() == [
        "shape.width",
        "of kind round:",
        "  From side to side, in metres; 2.5 is usual.",
        "  type      a number, above 0 and below 10",
        "  default   2.5",
        "  of        round: A round shape (Euclid, book 3).",
        "",
        "of kind square:",
        "  Of one side.",
        "  type      a whole number, at least 1 and at most 5,000",
        "  default   3",
        "  of        square: A square shape.",
    ]
    narrowed = explain(Table, "shape.square.width").splitlines()
    assert narrowed[1:3] == ["  Of one side.", "  type      a whole number, at least 1 and at most 5,000"]


def test_a_group_lists_its_kinds_and_their_keys() -> None:
    lines = explain(Table, "shape").splitlines()
    assert lines[1] == "  Seen from above."
    assert lines[lines.index("kinds:") + 1 :] == [
        "  round   A round shape (Euclid, book 3).",
        "  square  A square shape.",
        "",
        "keys of round:",
        "  width  a number, above 0 and below 10; default 2.5",
        "",
        "keys of square:",
        "  width  a whole number, at least 1 and at most 5,000; default 3",
    ]
    assert explain(Table, "shape.round").splitlines()[1:3] == [
        "  A round shape (Euclid, book 3).",
        "  It has no corners.",
    ]
    assert "  colour  red | green; must be given" in explain(Table, "").splitlines()


@pytest.mark.parametrize(
    ("key", "tree", "here"),
    [
        ("legs", {"legs": 4}, "4"),
        ("shape", {"shape": {"kind": "square", "width": 7}}, "{kind: square, width: 7}"),
        ("shape.width", {"shape": {"kind": "square", "width": 7}}, "7"),
        ("shape.round.width", {"shape": {"kind": "square", "width": 7}}, "not there"),
        ("marks.width", {"marks": [{"width": 1}, {"width": 2}]}, "[1, 2]"),
        ("marks.1.width", {"marks": [{"width": 1}, {"width": 2}]}, "2"),
    ],
)
def test_the_value_of_a_configuration_is_shown(key: str, tree: object, here: str) -> None:
    assert f"  here      {here}" in explain(Table, key, tree).splitlines()


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("lges", "did you mean legs?"),
        ("shape.widht", "did you mean shape.width or marks.width?"),
        ("width", "did you mean shape.width or marks.width?"),
        ("shape.triangle", "shape has round, width, square"),
        ("qqq", "the keys at the top are shape, legs, colour, marks"),
        ("legs.x", "the keys at the top are shape, legs, colour, marks"),
    ],
)
def test_a_wrong_key_is_one_line_with_the_nearest_ones(key: str, advice: str) -> None:
    with pytest.raises(InputError) as error:
        explain(Table, key)
    assert str(error.value) == f"--explain {key}: no such key; {advice}"


def owners() -> Iterator[tuple[str, type[BaseModel], str]]:
    """Every key of our own configuration, by a place where it stands."""
    for place, cls in walk(Experiment):
        for name in cls.model_fields:
            yield ".".join(str(step) for step in (*place, name) if not isinstance(step, int)), cls, name


def test_the_page_of_all_keys_has_each_of_them_by_place_and_kind() -> None:
    found = [(section.place, section.kinds, [row.name for row in section.rows]) for section in sections(Table)]
    assert found == [
        ("", (), ["shape", "legs", "colour", "marks"]),
        ("shape", ("round",), ["width"]),
        ("shape", ("square",), ["width"]),
        ("marks", ("square",), ["width"]),
    ]


def test_every_key_of_the_configuration_says_what_it_means() -> None:
    assert len(list(owners())) > 200
    for key, cls, name in owners():
        assert re.fullmatch(r"[^`]+", json_schema(cls)["properties"][name]["description"], re.DOTALL), key
        page = explain(Experiment, key)
        assert "  type      " in page, key
        assert "  default   " in page, key
        assert max(map(len, page.splitlines())) <= 100, key


@pytest.mark.parametrize(
    ("key", "paper"),
    [
        ("training.optimizer.beta2", "Kingma & Ba 2015"),
        ("training.label_smoothing", "Szegedy et al. 2016"),
        ("training.schedule.inverse_sqrt.warmup", "Vaswani et al. 2017, equation 3"),
        ("model.attention.score.gaussian.learned", "Nadaraya 1964"),
        ("model.attention.weights", "Martins & Astudillo 2016"),
    ],
)
def test_the_paper_is_named(key: str, paper: str) -> None:
    assert paper in " ".join(explain(Experiment, key).split())
