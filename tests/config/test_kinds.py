"""Kinds that are left out, and groups that are a bare name; each in the reader and in the JSON Schema."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from nmt.config.kinds import BareKind, BareName, DefaultKind
from nmt.config.structure import Structure, parse_document, validate
from nmt.core.errors import InputError
from tests.config.shapes import Encoder, Rnn, Transformer


class Named(Structure):
    name: str = "x"
    size: int = 1


class Group(Structure):
    default: Annotated[Encoder, DefaultKind("transformer")] = Rnn()
    bare: Annotated[Annotated[Encoder, DefaultKind("rnn")], BareKind] = Rnn()
    named: Annotated[Named, BareName("name")] = Named()


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("default: {heads: 2}", "default", Transformer(heads=2)),
        ("default: {kind: rnn, layers: 2}", "default", Rnn(layers=2)),
        ("bare: transformer", "bare", Transformer()),
        ("bare: {layers: 3}", "bare", Rnn(layers=3)),
        ("named: y", "named", Named(name="y")),
        ("named: {size: 2}", "named", Named(size=2)),
    ],
)
def test_what_is_left_out_is_filled_in(text: str, key: str, value: object) -> None:
    assert getattr(validate(Group, parse_document(text, "c.yaml")), key) == value


@pytest.mark.parametrize("text", ["default: rnn", "default: {cell: gru}", "bare: cnn", "bare: {heads: 2}", "named: 3"])
def test_nothing_else_is_accepted(text: str) -> None:
    with pytest.raises(InputError, match=f"^c.yaml:1: {text.split(':')[0]}"):
        validate(Group, parse_document(text, "c.yaml"))


def test_the_json_schema_says_the_same() -> None:
    keys: dict[str, Any] = json.loads(json.dumps(Group.model_json_schema()))["properties"]
    rnn, transformer = ({"$ref": f"#/$defs/{name}"} for name in ("Rnn", "Transformer"))
    assert keys["default"]["anyOf"] == [transformer, {**rnn, "required": ["kind"]}]
    name, *options = keys["bare"]["anyOf"]
    assert sorted(name["enum"]) == ["rnn", "transformer"]
    assert options == [rnn, {**transformer, "required": ["kind"]}]
