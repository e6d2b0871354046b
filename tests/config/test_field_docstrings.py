"""Texts below fields."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from nmt.config.field_docstrings import field_docstrings


@dataclass
class Base:
    inherited: int = 0
    """Not this."""


@dataclass
class Fields(Base):
    """Not this either."""

    first: int = 1
    """Of the first."""
    second: int = 2
    third: str = "not this"
    """Of the third,
    in two lines."""


def test_each_field_has_the_text_below_it() -> None:
    assert field_docstrings(Fields) == {"first": "Of the first.", "third": "Of the third,\n    in two lines."}


def test_a_class_without_a_source_is_an_error() -> None:
    with pytest.raises((OSError, TypeError, KeyError)):
        field_docstrings(type("Made", (), {"__module__": "nowhere"}))
