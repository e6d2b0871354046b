"""Greedy search: the most probable token at every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from nmt.models.step_model import StepModel
from nmt.search.hypothesis import Hypothesis
from nmt.search.logits_processors import Rules
from nmt.search.scoring import Ranking
from nmt.search.sequential import MostProbable, paths


@dataclass(frozen=True)
class Greedy:
    """One hypothesis for each source row; see ``Search``."""

    eos: int
    ranking: Ranking
    scored: bool = True
    """See ``paths``."""

    def __call__(self, model: StepModel[Any, Any], source_BS: Tensor, rules: Rules) -> list[tuple[Hypothesis, ...]]:
        """See ``Search``."""
        return paths(model, source_BS, rules, MostProbable(), eos=self.eos, ranking=self.ranking, scored=self.scored)
