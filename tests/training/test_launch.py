"""Further processes that one command starts: their environment, and their end. With trainings: test_distributed."""

from __future__ import annotations

import os
from unittest.mock import Mock

import pytest

from nmt.training import launch
from nmt.training.distributed import LaunchEnvironment


def test_cores_are_shared_out_unless_the_user_has_said_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "core_count", lambda: 7)
    monkeypatch.setattr(launch, "_Worker", worker := Mock())
    worker.return_value.poll.return_value = 0  # it has ended well
    for given_threads, expected in (("", "3"), ("5", "5")):
        monkeypatch.setenv("OMP_NUM_THREADS", given_threads)
        with launch.spawn_workers(2, ["train"]):
            assert LaunchEnvironment.of(os.environ) == LaunchEnvironment(0, 2, 0, 2)
            assert os.environ["OMP_NUM_THREADS"] == expected
        assert "RANK" not in os.environ
        assert os.environ["OMP_NUM_THREADS"] == given_threads
        environment = worker.call_args.args[1]
        assert LaunchEnvironment.of(environment) == LaunchEnvironment(1, 2, 1, 2)
        assert environment["MASTER_ADDR"] == "127.0.0.1"


def test_an_interruption_while_processes_are_started_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Mock()
    running.poll.return_value = None
    monkeypatch.setattr(launch, "_Worker", Mock(side_effect=[running, KeyboardInterrupt]))
    monkeypatch.setattr(launch, "FAREWELL", 0.1)
    with pytest.raises(KeyboardInterrupt), launch.spawn_workers(3, ["train"]):
        pass
    running.kill.assert_called_once_with()
