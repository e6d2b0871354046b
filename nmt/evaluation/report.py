"""All figures of one corpus, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nmt.evaluation import by_length, translation
from nmt.evaluation.by_length import LengthScores
from nmt.evaluation.translation import Score

if TYPE_CHECKING:
    from nmt.evaluation.perplexity import Prediction


@dataclass(frozen=True)
class Evaluation:
    """All figures of one corpus."""

    scores: tuple[Score, ...]
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    """Of the references, by the name of the feed, as in ``perplexity.FEEDS``; empty where there is no model."""
    lengths: Sequence[LengthScores] | None = None
    """By source length; None where it was not asked for."""

    @property
    def exposure_bias(self) -> float | None:
        """Free-running over teacher-forced perplexity; None where there is no model."""
        if not self.predictions:
            return None
        return self.predictions["free_running"].perplexity / self.predictions["teacher_forcing"].perplexity

    def lines(self) -> list[str]:
        """For people."""
        lines = [score.line() for score in self.scores]
        lines += [
            f"{name.replace('_', ' ')}: perplexity {each.perplexity:.3f}, "
            f"token accuracy {each.accuracy:.1f}% of {each.tokens:,} tokens"
            for name, each in self.predictions.items()
        ]
        if self.exposure_bias is not None:
            lines.append(f"exposure bias: {self.exposure_bias:.2f} (free-running over teacher-forced perplexity)")
        if self.lengths is not None:
            lines += ["", *by_length.table(self.lengths)]
        return lines

    def tree(self) -> dict[str, Any]:
        """For JSON, not rounded, with stable keys."""
        tree: dict[str, Any] = dict(translation.as_tree(self.scores))
        for name, each in self.predictions.items():
            tree[name] = {
                "perplexity": each.perplexity,
                "token_accuracy": each.accuracy,
                "tokens": each.tokens,
            }
        if self.exposure_bias is not None:
            tree["exposure_bias"] = self.exposure_bias
        if self.lengths is not None:
            tree["by_length"] = by_length.as_tree(self.lengths)
        return tree
