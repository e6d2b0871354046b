"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from nmt.core import log

# A busy machine is no failure.
settings.register_profile("nmt", deadline=None)
settings.load_profile("nmt")


@pytest.fixture(autouse=True)
def as_talkative_as_ever() -> Iterator[None]:
    """A command that a test runs in this process with ``--quiet`` leaves the next one its say."""
    yield
    log.set_verbosity(log.Verbosity.NORMAL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `cuda` where there is no CUDA device."""
    marked = [item for item in items if item.get_closest_marker("cuda")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
