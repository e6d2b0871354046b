"""The browser of the tests."""

from __future__ import annotations

from tests.extras.service.browser import browser, window

__all__ = ["browser", "window"]
