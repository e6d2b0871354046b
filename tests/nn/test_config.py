"""Settings of layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from nmt.nn.config import EmbeddingConfig, Layers, Rate, Size


@pytest.mark.parametrize(("kind", "least", "most"), [(Size, 1, 1 << 20), (Layers, 1, 1000), (Rate, 0.0, 0.99)])
def test_a_setting_is_bounded_where_no_use_reaches(kind: Any, least: float, most: float) -> None:
    settings = TypeAdapter(kind)
    assert [settings.validate_python(bound) for bound in (least, most)] == [least, most]
    for beyond in (least - 1, most + 1):
        with pytest.raises(ValidationError):
            settings.validate_python(beyond)


def test_a_bare_path_of_word_vectors_is_for_both_sides() -> None:
    both = EmbeddingConfig.model_validate_json('{"pretrained": "a.vec"}').pretrained
    one = EmbeddingConfig.model_validate_json('{"pretrained": {"target": "b.vec", "frozen": true}}').pretrained
    assert both is not None
    assert one is not None
    assert (both.files, one.files) == ([Path("a.vec")] * 2, [Path("b.vec")])
    with pytest.raises(ValidationError, match="names no file; give source, target, or a bare path for both"):
        EmbeddingConfig.model_validate_json('{"pretrained": {"frozen": true}}')
