"""The process that trains by itself."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from nmt.training.processes import Processes


def test_one_process_keeps_what_is_its_own() -> None:
    alone = Processes()
    assert alone.is_first
    assert alone.device("cuda:1") == "cuda:1"
    assert alone.share(np.array([3, 1, 2])).tolist() == [0, 1, 2]
    assert alone.all_reduce([1.0, 2.5]) == [1.0, 2.5]
    assert alone.batch_all_reduce()(torch.tensor([4.0])).tolist() == [4.0]
    assert alone.broadcast({"a": 1}) == {"a": 1}
    with alone.connected(torch.device("cpu")), alone.main_process_first():
        alone.wait()


def test_the_first_process_prepares_while_the_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    for rank, expected in ((0, ["work", "wait"]), (1, ["wait", "work"])):
        steps: list[str] = []
        process = Processes()
        process.rank = rank
        monkeypatch.setattr(process, "wait", partial(steps.append, "wait"))
        with process.main_process_first():
            steps.append("work")
        assert steps == expected
