"""The version, for modules that may not import ``nmt`` itself."""

from __future__ import annotations

VERSION = "0.2.0"
