"""The names that this package adds to nmt, and where nmt finds them."""

from __future__ import annotations

from nmt.plugins import Command, Plugin

PLUGIN = Plugin(
    scores={"manhattan": "nmt_example.score:Manhattan"},
    metrics={"exact": "nmt_example.metric:exact"},
    commands={"words": Command("nmt_example.command:words", group="Look")},
)
