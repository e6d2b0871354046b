"""The browser of the tests, and the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import run
from tests.extras.service.browser import Browser, window

__all__ = ["browser", "run", "window"]


@pytest.fixture
def browser(window: Browser) -> Iterator[Browser]:
    """A window that must not complain of a page."""
    window.reset()
    yield window
    assert window.complaints() == []
