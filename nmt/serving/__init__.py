"""Translation over HTTP: a queue that requests share, the routes, the page. What translates is an ``Engine``."""

from __future__ import annotations

from nmt.core.errors import InputError


def check_installed() -> None:
    """Raises InputError where what the server is made with is not installed."""
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise InputError("nmt serve: needs FastAPI and uvicorn: pip install 'nmt[serve]'") from None
