"""Ray: corpora prepared, and files translated, on many machines."""

from __future__ import annotations

from nmt.plugins import Plugin

PLUGIN = Plugin(
    options={
        "prepare": ["nmt.extras.cluster.options:PrepareOnCluster"],
        "translate": ["nmt.extras.cluster.options:TranslateOnCluster"],
    }
)
