"""A Ray cluster of two workers, and what tests of it share."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="package")
def address() -> Iterator[str]:
    """A cluster of two workers, to which this process is connected."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0",  # 15 else: beside other tests no time is left for it
    }  # fmt: skip
    with (
        pytest.MonkeyPatch.context() as patch,
        # not pytest's own: names of sockets inside must be short
        TemporaryDirectory(prefix="nmt-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder,
    ):
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("RAY_AUTH_MODE", "token")  # to be as it was in the end: Ray sets it
        patch.delenv("RAY_AUTH_MODE")
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
            _temp_dir=folder,
        )  # fmt: skip
        yield ray.get_runtime_context().gcs_address
        ray.shutdown()


def wait_for(what: Callable[[], Any], *, seconds: float = 60) -> Any:
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.002)
    return found
