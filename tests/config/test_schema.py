"""Places of a tree and the classes there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from nmt.config.kinds import DefaultKind
from nmt.config.schema import choices_of, follow, kinds_of, locate, members_of, pick, structures_of, walk
from nmt.config.structure import Structure
from tests.config.shapes import Corpus, Data, Encoder, Experiment, Model, Rnn, Transformer


class Stack(Structure):
    layers: tuple[Annotated[Encoder, DefaultKind("transformer")], ...] = ()
    top: Annotated[Encoder, DefaultKind("rnn")] = Rnn()


def test_members_structures_choices_and_kinds_of_types() -> None:
    assert members_of(Annotated[int | Literal["a"] | None, "x"]) == [int, Literal["a"]]
    assert structures_of(Encoder | None) == [Rnn, Transformer]
    assert choices_of(int | Literal["a", "b"] | None) == ["a", "b"]
    assert (kinds_of(Rnn), kinds_of(Model)) == (["rnn"], [])


def test_the_class_of_a_node_is_that_of_its_kind() -> None:
    assert pick(Model | None, "anything") is Model
    assert pick(Encoder, {"kind": "transformer"}) is Transformer
    for node in ({"kind": "cnn"}, {}, "rnn"):
        assert pick(Encoder, node) is None
    assert pick(Annotated[Encoder, DefaultKind("transformer")], {"heads": 2}) is Transformer
    assert pick(int, {}) is None


@pytest.mark.parametrize(
    ("cls", "location", "tree", "place", "annotation"),
    [
        (Experiment, ("limit", "int"), {"limit": "x"}, ("limit",), int | Literal["auto"] | None),
        (Experiment, ("data", "lengths", "de"), {"data": {"lengths": {"de": "x"}}}, ("data", "lengths", "de"), int),
        (Experiment, ("data", "languages", 1), {}, ("data", "languages", 1), str),
        (Model, ("encoder", "rnn", "layers"), {"encoder": {"kind": "rnn"}}, ("encoder", "layers"), int),
        (Model, ("encoder",), {"encoder": {"kind": "cnn"}}, ("encoder", "kind"), Encoder),
        (Stack, ("top", "rnn", "cell"), {"top": {"cell": 1}}, ("top", "cell"), Literal["gru", "lstm"]),
        (Stack, ("layers", 0, "transformer", "heads"), {"layers": [{"heads": "x"}]}, ("layers", 0, "heads"), int),
    ],
)
def test_a_location_of_pydantic_is_a_place_without_names_of_members(
    cls: Any, location: tuple[str | int, ...], tree: Any, place: tuple[str | int, ...], annotation: Any
) -> None:
    found = locate(cls, location, tree)
    assert found[0] == place
    assert members_of(found[1]) == members_of(annotation)


def test_a_place_leads_to_its_node_and_type() -> None:
    tree = {"data": {"train": [{"source": "a"}, {"source": "b"}]}}
    assert follow(Experiment, ("data", "train", 1), tree) == ({"source": "b"}, Corpus)
    assert follow(Experiment, ("data", "train", 2, "weight"), tree) == (None, float)
    assert follow(Experiment, ("data", "nowhere"), tree) == (None, None)


def test_every_class_is_found_with_its_places() -> None:
    assert list(walk(Experiment)) == [
        ((), Experiment),
        (("model",), Model),
        *((("model", name), kind) for name in ("encoder", "extra_encoder") for kind in (Rnn, Transformer)),
        (("data",), Data),
        (("data", "train", 0), Corpus),
    ]
