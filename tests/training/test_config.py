"""What the training section of a configuration refuses."""

from __future__ import annotations

import pytest

from nmt.config.structure import parse_document, validate
from nmt.core.errors import InputError
from nmt.training.config import StoppingConfig, TrainingConfig


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("average: 4", "average: 4 needs keep of 4 or more, and it is 3"),
        ("average: 1", "average: "),
        ("ema: 1.0", "ema: "),
        ("ema: 0.0", "ema: "),
        ("normalization: batches", "normalization: "),
        ("schedule: cosine\nstopping: {epochs: 3}", "schedule: cosine falls until the last update: set stopping"),
    ],
)
def test_what_cannot_be_is_an_error_of_the_config(text: str, message: str) -> None:
    with pytest.raises(InputError, match="c.yaml:1: ") as refused:
        validate(TrainingConfig, parse_document(text, "c.yaml"))
    assert str(refused.value).startswith(f"c.yaml:1: {message}")
    assert "\n" not in str(refused.value)


def test_as_many_checkpoints_as_are_kept_can_be_averaged() -> None:
    config = validate(TrainingConfig, parse_document("{average: 5, keep: 5}", "c.yaml"))
    assert config.average == config.keep == 5


def test_a_run_must_end() -> None:
    with pytest.raises(ValueError, match="one of updates, epochs, minutes or patience"):
        StoppingConfig()
