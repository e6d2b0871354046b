"""The time of an update, measured before there is a prepared corpus."""

from __future__ import annotations

import time
from contextlib import nullcontext
from functools import partial

import pytest

from nmt.config.structure import parse_document, validate
from nmt.core.errors import InputError
from nmt.experiment import Experiment
from nmt.workflows.training_time import measure_training
from tests.workflows.runs import CONFIG, sentences

measure = partial(measure_training, validate(Experiment, parse_document(CONFIG, "config.yaml")), device="cpu")


def test_the_time_alone_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = sentences(80, seed=2)
    speed = measure(pairs)
    assert (speed.alone, speed.validation > 0) == (None, True)
    monkeypatch.setattr("torch.get_num_threads", lambda: 10)  # of which other programs have nine
    monkeypatch.setattr(time, "process_time", time.monotonic)
    speed = measure(pairs, threads=partial(nullcontext, True))
    assert speed.alone == pytest.approx(speed.seconds / 10, rel=0.1)


def test_too_little_text_is_said() -> None:
    with pytest.raises(InputError, match="^there is too little text beside that of valid and test to measure"):
        measure([("", "")])
