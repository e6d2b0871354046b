"""Further processes that one command starts: their environment, and their end. With trainings: test_distributed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from nmt.training import launch
from nmt.training.distributed import LaunchEnvironment


def test_cores_are_shared_out_unless_the_user_has_said_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_cores", lambda: 7)
    monkeypatch.setattr(launch, "_Worker", _Ended)
    for given_threads, expected in (("", "3"), ("5", "5")):
        monkeypatch.setenv("OMP_NUM_THREADS", given_threads)
        with launch.spawn_workers(2, ["train"]):
            assert LaunchEnvironment.of(os.environ) == LaunchEnvironment(0, 2, 0, 2)
            assert os.environ["OMP_NUM_THREADS"] == expected
        assert "RANK" not in os.environ
        assert os.environ["OMP_NUM_THREADS"] == given_threads


class _Ended:
    """A process that has ended well."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str], said: Any) -> None:
        assert (environment["RANK"], environment["WORLD_SIZE"], environment["MASTER_ADDR"]) == ("1", "2", "127.0.0.1")

    def poll(self) -> int:
        return 0

    def wait(self) -> None:
        pass

    kill = wait


def test_an_interruption_while_processes_are_started_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []

    class Running(_Ended):
        def __init__(self, arguments: Sequence[str], environment: dict[str, str], said: Any) -> None:
            self.rank = int(environment["RANK"])
            if self.rank == 2:
                raise KeyboardInterrupt

        def poll(self) -> int | None:  # type: ignore[override]
            return None

        def kill(self) -> None:
            killed.append(self.rank)

    monkeypatch.setattr(launch, "_Worker", Running)
    monkeypatch.setattr(launch, "FAREWELL", 0.1)
    with pytest.raises(KeyboardInterrupt), launch.spawn_workers(3, ["train"]):
        pass
    assert killed == [1]
