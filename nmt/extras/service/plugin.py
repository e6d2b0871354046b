"""A server."""

from __future__ import annotations

from nmt.plugins import Command, Plugin

PLUGIN = Plugin(commands={"serve": Command("nmt.extras.service.command:serve", "Use", 40)})
