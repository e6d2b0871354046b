"""Speed."""

from __future__ import annotations

from nmt.plugins import Command, Plugin

PLUGIN = Plugin(
    commands={"doctor": Command("nmt.extras.speed.doctor:doctor", "More", 20)},
    parts={
        "accelerate": "nmt.extras.speed.optimize:register",
        "training_threads": "nmt.extras.speed.threads:on_idle_cores",
    },
)
