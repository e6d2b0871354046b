"""Which release this is, for whoever may not import ``nmt`` itself."""

from __future__ import annotations

VERSION = "0.1.0"
