"""The confidence of translations: which ones, and which of their words, to look at."""

from __future__ import annotations

from nmt.plugins import Command, Plugin

PLUGIN = Plugin(
    commands={"calibrate": Command("nmt.extras.trust.command:calibrate", "Train", 40)},
    options={
        "align": ["nmt.extras.trust.options:AlignConfidence"],
        "evaluate": ["nmt.extras.trust.options:EvaluateRisk"],
        "score": ["nmt.extras.trust.options:ShowConfidence"],
        "serve": ["nmt.extras.trust.options:ShowConfidence"],
        "translate": ["nmt.extras.trust.options:TranslateConfidence"],
    },
    parts={
        "calibrate": "nmt.extras.trust.calibrate:calibrate_after_training",
        "confidence": "nmt.extras.trust.confidence:with_confidence",
    },
)
