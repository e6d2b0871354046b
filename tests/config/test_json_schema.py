"""The JSON Schema that editors check configurations by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.config.json_schema import document
from nmt.config.yaml_source import load_document
from nmt.experiment import Experiment, load

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.yaml"))

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(document(Experiment))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configurations_are_valid_as_written_and_written_out(validator: Any, path: Path) -> None:
    validator.validate(load_document(path).tree)
    validator.validate(load(path).model_dump(mode="json"))


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({"model": {"encoder": {"layers": 2}}}, True),  # the kind left out
        ({"model": {"encoder": "transformer"}}, True),
        ({"model": {"encoder": {"kind": "transformer", "cell": "gru"}}}, False),
        ({"model": {"attention": {"score": {"kind": "gaussian", "learned": True}}}}, True),
        ({"model": {"attention": {"score": {"size": 3}}}}, False),
        ({"model": {"attention": {"score": "manhattan"}}}, False),
        ({"model": {"context": "first_step"}}, True),
        ({"model": {"decoder": {"context": "first_step"}}}, True),
        ({"model": {"decoder": {"context": {"enters": "first_step", "placeholder": "zeros"}}}}, True),
        ({"model": {"decoder": {"context": "last_step"}}}, False),
        ({"seed": -1}, False),
        ({"sede": 1}, False),
    ],
)
def test_choices_bounds_and_unknown_keys(validator: Any, change: dict[str, Any], valid: bool) -> None:
    assert validator.is_valid({**load_document(CONFIGS[0]).tree, **change}) == valid


def test_the_order_of_the_classes_and_what_an_editor_shows_of_a_key() -> None:
    schema = json.loads(document(Experiment))
    assert list(schema["properties"]) == list(Experiment.model_fields)
    assert schema["required"] == ["run", "data"]
    beta2 = schema["$defs"]["OptimizerConfig"]["properties"]["beta2"]
    assert beta2 == {
        "default": 0.98,
        "description": beta2["description"],
        "exclusiveMaximum": 1,
        "minimum": 0,
        "type": "number",
    }
    assert beta2["description"].startswith("Decay of the squared gradient's moving average")
