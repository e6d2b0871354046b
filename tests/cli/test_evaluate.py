"""Options of `nmt evaluate` that do not go together, and those that are missing."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Refusal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--source x", "--reference is missing; name the file with the reference translations"),
        ("--reference x", "there is nothing to score; give --source for a model to translate, or --hypothesis"),
        ("--reference x --hypothesis y runs/z",
         "--hypothesis scores a file without a model; leave out MODEL, or --hypothesis"),
    ],
)  # fmt: skip
def test_mistakes(arguments: str, message: str, refusal: Refusal) -> None:
    assert refusal(f"evaluate {arguments}") == message
