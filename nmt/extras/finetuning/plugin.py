"""Training that starts from what is trained already: a model, with all of its weights or by adapters, the hypotheses
that it prefers, or word vectors."""

from __future__ import annotations

from nmt.plugins import Plugin

PLUGIN = Plugin(
    parts={
        "adapters": "nmt.extras.finetuning.adapters:restrict",
        "merged_adapters": "nmt.extras.finetuning.adapters:merged",
        "minimum_risk": "nmt.extras.finetuning.risk:MinimumRisk",
        "vocabulary_transfer": "nmt.extras.finetuning.vocabulary_transfer:load_weights_by_piece",
        "word_vectors": "nmt.extras.finetuning.pretrained:start_from_vectors",
    }
)
