from __future__ import annotations

from tests.workflows.runs import trained

__all__ = ["trained"]
