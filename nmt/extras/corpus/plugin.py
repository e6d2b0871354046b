"""More pairs, wrong pairs, languages of pairs, and a corpus to try nmt with."""

from __future__ import annotations

from nmt.plugins import Command, Plugin

_GROUP = "Your own data"

PLUGIN = Plugin(
    commands={
        "filter": Command("nmt.extras.corpus.pair_filter.command:filter", _GROUP, 30),
        "languages": Command("nmt.extras.corpus.languages.command:languages", _GROUP, 40),
        "augment": Command("nmt.extras.corpus.augment.command:augment", _GROUP, 50),
    },
    options={"init": ["nmt.extras.corpus.options:InitExample"]},
)
