"""All figures of one corpus, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nmt.evaluation import by_length, latency, translation
from nmt.evaluation.by_length import LengthScores
from nmt.evaluation.latency import WaitScore
from nmt.evaluation.translation import MetricScore

if TYPE_CHECKING:
    from nmt.evaluation.perplexity import Prediction


@dataclass(frozen=True)
class TermRecall:
    """Number of terms of a glossary that occur in the sources, and of those that the translations contain."""

    found: int
    total: int

    @property
    def percent(self) -> float | None:
        """Percentage of the terms that are found; None if there are no terms."""
        return 100 * self.found / self.total if self.total else None

    def line(self) -> str:
        """Formats the recall on one line."""
        share = "" if self.percent is None else f"{self.percent:.1f} % "
        return f"terms {share}({self.found:,} of {self.total:,})"


class RiskTable(Protocol):
    """The quality of the most confident translations, which a plug-in computes."""

    def lines(self) -> list[str]:
        """Formats a table."""

    def tree(self) -> dict[str, Any]:
        """Returns the figures for JSON."""


@dataclass(frozen=True)
class Evaluation:
    """All figures of one corpus."""

    scores: tuple[MetricScore, ...]
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    """Predictions of the references, by the names of ``workflows.evaluate.feeds``; empty without a model."""
    lengths: Sequence[LengthScores] | None = None
    """Scores by source length; None unless requested."""
    waits: Sequence[WaitScore] = ()
    """Scores of simultaneous translations."""
    terms: TermRecall | None = None
    """The recall of terms; None without a glossary."""
    risk: RiskTable | None = None
    """The quality of the most confident translations; None unless requested."""

    @property
    def exposure_bias(self) -> float | None:
        """Ratio of free-running to teacher-forced perplexity; None without a model."""
        if not self.predictions:
            return None
        return self.predictions["free_running"].perplexity / self.predictions["teacher_forcing"].perplexity

    @property
    def bleu(self) -> float:
        """BLEU, not rounded."""
        return self.scores[0].value

    def lines(self) -> list[str]:
        """Formats all figures as lines of text."""
        lines = [score.line() for score in self.scores]
        lines += [self.terms.line()] if self.terms is not None else []
        lines += [
            f"{name.replace('_', ' ')}: perplexity {prediction.perplexity:.3f}, "
            f"token accuracy {prediction.accuracy:.1f}% of {prediction.tokens:,} tokens"
            for name, prediction in self.predictions.items()
        ]
        if self.exposure_bias is not None:
            lines.append(f"exposure bias: {self.exposure_bias:.2f} (free-running over teacher-forced perplexity)")
        if self.lengths is not None:
            lines += ["", *by_length.table(self.lengths)]
        if self.waits:
            lines += ["", *latency.table(self.waits)]
        if self.risk is not None:
            lines += ["", *self.risk.lines()]
        return lines

    def tree(self) -> dict[str, Any]:
        """Returns the figures for JSON, not rounded, with stable keys."""
        tree: dict[str, Any] = dict(translation.as_tree(self.scores))
        for name, of in self.predictions.items():
            tree[name] = {"perplexity": of.perplexity, "token_accuracy": of.accuracy, "tokens": of.tokens}
        if self.exposure_bias is not None:
            tree["exposure_bias"] = self.exposure_bias
        if self.lengths is not None:
            tree["by_length"] = by_length.as_tree(self.lengths)
        if self.terms is not None:
            tree["terms"] = {"recall": self.terms.percent, **asdict(self.terms)}
        if self.waits:
            tree["wait"] = [asdict(each) for each in self.waits]
        if self.risk is not None:
            tree["risk_coverage"] = self.risk.tree()
        return tree
