"""The package ``nmt``: what it lists, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nmt


def test_importing_it_is_cheap() -> None:
    program = "import nmt, sys; print(nmt.__version__, 'torch' in sys.modules, 'load' in dir(nmt))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{nmt.__version__} False True\n"
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        nmt.lode  # noqa: B018


def test_only_what_is_meant_for_users_is_listed() -> None:
    assert dir(nmt) == sorted(nmt.__all__)
    assert all(getattr(nmt, name) is not None for name in dir(nmt))
