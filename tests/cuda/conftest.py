"""Settings of tests on a device; see ``on_device.py`` to run them without a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt import ops
from nmt.ops import Operation

OPERATIONS = [each for each in vars(ops).values() if isinstance(each, Operation)]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the tests of this folder on the device of NMT_TEST_DEVICE instead of skipping them."""
    if "NMT_TEST_DEVICE" in os.environ:
        for item in items:
            if item.path.parent == Path(__file__).parent:
                item.own_markers = [each for each in item.own_markers if each.kwargs.get("reason") != "no CUDA device"]


@pytest.fixture(autouse=True)
def as_if_first(request: pytest.FixtureRequest) -> Iterator[None]:
    """Exact products of float32, one thread and a seed for each test on a device; afterwards all is as before."""
    if request.node.get_closest_marker("cuda") is None:
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, torch.get_num_threads()
    implementations = [each.implementation for each in OPERATIONS]
    matmul.allow_tf32 = cudnn.allow_tf32 = False
    torch.set_num_threads(1)  # tests run in several processes
    torch.manual_seed(0)
    yield
    for each, implementation in zip(OPERATIONS, implementations, strict=True):
        each.register(implementation)
    matmul.allow_tf32, cudnn.allow_tf32 = before[:2]
    torch.set_num_threads(before[2])
