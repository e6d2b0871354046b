"""Models for other engines, and of other toolkits."""

from __future__ import annotations

from nmt.plugins import Choice, Command, Plugin

_EXPORT = "nmt.extras.exchange.export"

PLUGIN = Plugin(
    commands={
        "import": Command("nmt.extras.exchange.convert.command:import_", "Train", 40),
        "export": Command(f"{_EXPORT}.command:export", "Use", 50),
    },
    engines={
        "ctranslate2": Choice(
            f"{_EXPORT}.engine:exported_engine", "translate with the files that nmt export wrote for MODEL"
        ),
        "auto": Choice(
            f"{_EXPORT}.automatic:automatic_engine", "ctranslate2 for a Transformer on a CPU, exported once, else nmt"
        ),
    },
    parts={"save_model": f"{_EXPORT}.export_model:save"},
)
