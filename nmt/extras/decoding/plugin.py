"""Translations that contain given phrases, and simultaneous ones."""

from __future__ import annotations

from nmt.plugins import Plugin

PLUGIN = Plugin(
    options={
        "evaluate": ["nmt.extras.decoding.options:EvaluateWaiting"],
        "translate": ["nmt.extras.decoding.options:TranslateWaiting"],
    },
    parts={
        "constrained_search": "nmt.extras.decoding.constrained_search:constrained_search",
        "wait": "nmt.extras.decoding.wait_k:waiting",
        "wait_training": "nmt.extras.decoding.wait_training:WaitKTraining",
    },
)
