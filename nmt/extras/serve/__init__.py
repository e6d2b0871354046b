"""Translation over HTTP: a queue that requests share, the routes, the pages. What translates is an ``Engine``."""

from __future__ import annotations

from importlib.util import find_spec

from nmt.core.errors import InputError


def check_installed() -> None:
    """Raises InputError where a package of the server is not installed."""
    if not all(find_spec(name) for name in ("fastapi", "prometheus_client", "uvicorn")):
        raise InputError("nmt serve: needs FastAPI, uvicorn and prometheus-client: pip install 'nmt[serve]'")
