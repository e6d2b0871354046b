"""Translations that contain given phrases, and simultaneous ones."""

from __future__ import annotations

from nmt.plugins import Plugin

PLUGIN = Plugin(
    options={
        "evaluate": ["nmt.extras.decoding.options:EvaluateWaiting", "nmt.extras.decoding.options:EvaluateNeighbors"],
        "serve": ["nmt.extras.decoding.options:ServeNeighbors"],
        "translate": ["nmt.extras.decoding.options:TranslateWaiting", "nmt.extras.decoding.options:TranslateNeighbors"],
    },
    parts={
        "constrained_search": "nmt.extras.decoding.constrained_search:constrained_search",
        "neighbors": "nmt.extras.decoding.nearest_neighbors:with_neighbors",
        "wait": "nmt.extras.decoding.wait_k:waiting",
        "wait_training": "nmt.extras.decoding.wait_training:WaitKTraining",
    },
)
