"""Limits of other engines: the values of a model's configuration that they can compute."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import reduce

from nmt.core.errors import InputError
from nmt.models.config import ModelConfig

TRANSFORMERS = {"encoder.kind": ["transformer"], "decoder.kind": ["transformer"]}


def check_limits(model: ModelConfig, engine: str, limits: Mapping[str, Collection[object]], *, others: str) -> None:
    """Raises InputError for the first key with another value than those in ``limits``. A score, the weights and the
    like are compared by their kind. ``others`` are engines without this limit."""
    for key, accepted in limits.items():
        value: object = reduce(getattr, key.split("."), model)
        value = getattr(value, "kind", value)
        if value not in accepted:
            found, *needed = (json.dumps(each).strip('"') for each in (value, *accepted))
            raise InputError(f"model.{key}: is {found}, and {engine} needs {' or '.join(needed)}; use --to {others}")
