"""Several models as one: the mean of their probabilities at each step (Sutskever et al. 2014, section 3.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch
from torch import Tensor

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Step
from nmt.models.step_model import StepModel
from nmt.nn.output import top_tokens_in_parts


@dataclass(frozen=True)
class Parts(BatchRecord):
    """The memories or the states of the members."""

    members: tuple[BatchRecord, ...]


@final
class Ensemble:
    """Models of one vocabulary, of any kinds, that translate together; see ``StepModel``.

    The weights of a step are those of all members, head after head.
    """

    training = False

    def __init__(self, members: Sequence[StepModel[Any, Any]]) -> None:
        """``members`` are in eval mode."""
        assert members
        assert not any(member.training for member in members)
        self.members = tuple(members)
        self.pad = members[0].pad

    def encode(self, source_BS: Tensor) -> Parts:
        """See ``StepModel``."""
        return Parts(tuple(member.encode(source_BS) for member in self.members))

    def start(self, memory: Parts) -> Parts:
        """See ``StepModel``."""
        return Parts(tuple(member.start(part) for member, part in zip(self.members, memory.members, strict=True)))

    def step(self, token_N: Tensor, memory: Parts, state: Parts) -> Step[Parts]:
        """See ``StepModel``; the logits are log-probabilities, in float32 or wider."""
        steps = [
            member.step(token_N, part, before)
            for member, part, before in zip(self.members, memory.members, state.members, strict=True)
        ]

        def logits(rows: slice) -> Tensor:
            # p = mean over members of p_m, in logarithms: log sum exp(log p_m) - log M
            logits_MNV = torch.stack([step.logits(rows) for step in steps])
            log_probs_MNV = logits_MNV.log_softmax(dim=2, dtype=torch.promote_types(logits_MNV.dtype, torch.float32))
            return log_probs_MNV.logsumexp(dim=0) - math.log(len(steps))

        vocabulary = steps[0].vocabulary
        return Step(
            vocabulary,
            logits,
            partial(top_tokens_in_parts, logits, token_N, vocabulary),
            # the heads of each member follow those of the member before
            lambda: torch.cat([step.weights() for step in steps], dim=1),
            Parts(tuple(step.state for step in steps)),
        )

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """See ``StepModel``."""
        first_N: Tensor = self.members[0].first_token(rows, device)
        return first_N
