"""Compressed files, by the ends of their names."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from nmt.core.installation import missing

PACKED = (".gz", ".xz", ".bz2", ".zst")
"""Endings of compressed files."""


def zstandard() -> Any:
    """Imports the module that reads and writes .zst. Raises InputError if its package is missing."""
    try:
        return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        raise missing("backports.zstd, which reads and writes .zst, is", "zstd") from None
