"""The former name of a part of `nmt.extras.pages.draw`."""

from __future__ import annotations

from nmt.extras.pages.draw import plot_by_length

__all__ = ["plot_by_length"]
