"""Aligners learnt from text, and an alignment layer that is trained for a model."""

from __future__ import annotations

from nmt.plugins import AlignmentMethod, Command, Plugin

PLUGIN = Plugin(
    commands={"aligner": Command("nmt.extras.aligner.command:aligner", "Train", 30)},
    options={"align": ["nmt.extras.aligner.command:AlignByText"]},
    methods={
        "trained": AlignmentMethod(
            "nmt.extras.aligner.model_aligner:load_model_aligner",
            "the layer trained by nmt aligner, which is best",
            files=("aligner.safetensors", "alignment_layer.safetensors"),
        )
    },
    parts={
        "align_pairs": "nmt.extras.aligner.align:align_pairs",
        "write_links": "nmt.extras.aligner.align:write_links",
    },
)
