"""Model sections of a configuration in YAML, and the faults of those that make no sense."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nmt.config.structure import parse_document, validate
from nmt.core.errors import InputError
from nmt.models.config import ModelConfig


def read(text: str, section: type[Any] = ModelConfig) -> Any:
    return validate(section, parse_document(text, "config.yaml"))


def fault(text: str, section: type[Any] = ModelConfig) -> str:
    """The one line that refuses a section."""
    with pytest.raises(InputError) as caught:
        read(text, section)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("config.yaml")
    return message


def cases(text: str) -> list[str]:
    """The entries of a list; a line that is indented goes on with the entry before."""
    return [" ".join(entry.split()) for entry in re.split(r"\n(?! )", text.strip())]


def sections_and_faults(text: str) -> list[list[str]]:
    """Entries of the form ``keys of a section => fault``."""
    return [[f"{{{section}}}", message] for section, message in (case.split(" => ") for case in cases(text))]
