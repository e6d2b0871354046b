"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from nmt.core import log
from tests.workflows.runs import here, reverse, trained, translator

__all__ = ["here", "reverse", "trained", "translator"]

ROOT = Path(__file__).parent

# A busy machine is not a failure.
settings.register_profile("nmt", deadline=None)
settings.load_profile("nmt")


@pytest.fixture(autouse=True)
def as_talkative_as_ever() -> Iterator[None]:
    """A command that a test runs in this process with ``--quiet`` leaves the next one its say."""
    yield
    log.set_verbosity(log.Verbosity.NORMAL)


LONGEST = (
    "extras/cluster/test_translate_shards.py",
    "extras/cluster/test_cluster.py",
    "training/test_distributed.py",
    "models/test_seq2seq.py",
    "workflows/test_train.py",
    "translator/test_workers.py",
    "cli/test_app.py",
    "workflows/test_determinism.py",
)
"""Files that take longest. They are begun first, so that at the end no process is alone at work with one."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Has nothing that is imported or collected scanned for garbage, neither now nor during the tests: it lives on."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest first. Skip the tests marked `cuda` where there is no CUDA device."""
    places = {ROOT / file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    marked = [item for item in items if item.get_closest_marker("cuda")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
