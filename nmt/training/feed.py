"""The decoder's inputs in training: gold words, the model's own, or a mixture that shifts from the former to the
latter.

Like a schedule of the learning rate, a schedule is a pure function of the update's number, so a resumed run needs no
state of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nmt.config.kinds import BareKind
from nmt.config.structure import Structure

if TYPE_CHECKING:
    from nmt.models.feed import Feed

Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class GoldSchedule(Structure, ABC):
    """epsilon_i, the probability that a word read is gold (Bengio et al. 2015, section 2.4), i updates after ``warmup``
    updates of teacher forcing."""

    kind: str
    warmup: Annotated[int, Field(ge=0)] = 0
    """Updates with full teacher forcing before i starts to count."""

    def gold_probability(self, update: int) -> float:
        """Computes epsilon at ``update``, counted from 1; the first update after ``warmup`` has i = 0."""
        if update <= self.warmup:
            return 1.0
        return self._after_warmup(update - self.warmup - 1)

    @abstractmethod
    def _after_warmup(self, i: int) -> float: ...


class LinearDecay(GoldSchedule):
    """max(end, start - c i) with c = (start - end) / updates: a straight line from ``start`` to ``end``.

    The paper's epsilon is ``end`` and its k is ``start``.
    """

    kind: Literal["linear"] = "linear"
    start: Probability = 1.0
    """Probability of a gold word at the start."""
    end: Probability = 0.5
    """Final probability of a gold word, which is kept once it is reached."""
    updates: Annotated[int, Field(gt=0)] = 5000
    """Number of updates from ``start`` to ``end``."""

    @model_validator(mode="after")
    def _falls(self) -> LinearDecay:
        if self.end > self.start:
            raise ValueError(f"end ({self.end:g}) is above start ({self.start:g}): gold words are to get fewer")
        return self

    def _after_warmup(self, i: int) -> float:
        return self.end if i >= self.updates else self.start - (self.start - self.end) * (i / self.updates)


class ExponentialDecay(GoldSchedule):
    """k^i: falls to a half after about ln 2 / (1 - k) updates, which is 3,500 for the default k."""

    kind: Literal["exponential"] = "exponential"
    k: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.9998
    """Factor of the probability at each update."""

    def _after_warmup(self, i: int) -> float:
        return float(self.k**i)


class InverseSigmoidDecay(GoldSchedule):
    """k / (k + exp(i / k)): near 1 at the start, a half after k ln k updates (3,100 for the default k), and soon after
    it near 0."""

    kind: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    k: Annotated[float, Field(ge=1.0)] = 500.0
    """Speed of the fall: the larger k is, the later and the more slowly the probability falls."""

    def _after_warmup(self, i: int) -> float:
        exponent = i / self.k - math.log(self.k)
        if exponent <= 0.0:
            return 1.0 / (1.0 + math.exp(exponent))
        inverse = math.exp(-exponent)  # exp(exponent) itself would overflow
        return inverse / (1.0 + inverse)


AnyGoldSchedule = Annotated[LinearDecay | ExponentialDecay | InverseSigmoidDecay, Field(discriminator="kind"), BareKind]


class TeacherForcingConfig(Structure):
    """Gold words (Williams & Zipser 1989): all steps at once if the model allows it."""

    kind: Literal["teacher_forcing"] = "teacher_forcing"

    def gold_probability(self, update: int) -> float:
        """Returns 1, the probability that a word read at ``update``, counted from 1, is gold."""
        return 1.0

    def at(self, update: int) -> Feed:
        """Creates teacher forcing."""
        from nmt.models.feed import TeacherForcing

        return TeacherForcing()


class FreeRunningConfig(Structure):
    """The model's most probable words from the first update, as in translation. Learns slowly."""

    kind: Literal["free_running"] = "free_running"

    def gold_probability(self, update: int) -> float:
        """Returns 0, the probability that a word read at ``update``, counted from 1, is gold."""
        return 0.0

    def at(self, update: int) -> Feed:
        """Creates free running."""
        from nmt.models.feed import FreeRunning

        return FreeRunning()


class ScheduledSamplingConfig(Structure):
    """Gold words at first, then more and more of the model's own (Bengio et al. 2015)."""

    kind: Literal["scheduled_sampling"] = "scheduled_sampling"
    schedule: AnyGoldSchedule = LinearDecay()
    """Schedule by which the probability of a gold word falls."""
    unit: Literal["token", "sentence"] = "token"
    """Unit of a draw. The paper draws for each token, and reports that one draw for each sentence is much worse."""
    guess: Literal["argmax", "sample"] = "argmax"
    """Choice of the model's own word: its most probable one, or one drawn from its distribution."""

    def gold_probability(self, update: int) -> float:
        """Returns the schedule's epsilon."""
        return self.schedule.gold_probability(update)

    def at(self, update: int) -> Feed:
        """Creates scheduled sampling with that epsilon or, if it is 1, teacher forcing, which need not run step by
        step."""
        from nmt.models.feed import TeacherForcing
        from nmt.models.scheduled_sampling import ScheduledSampling

        epsilon = self.gold_probability(update)
        return TeacherForcing() if epsilon == 1.0 else ScheduledSampling(epsilon, unit=self.unit, guess=self.guess)


AnyFeed = Annotated[
    TeacherForcingConfig | FreeRunningConfig | ScheduledSamplingConfig, Field(discriminator="kind"), BareKind
]
