"""Learning-rate schedules: the factor of the peak rate at each update.

Each is a pure function of the update's number (from 1), of the number of the last update, and of the plateaus
of the validation metric so far; so a resumed run needs no state of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from nmt.config.kinds import BareKind
from nmt.config.structure import Structure

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Schedule(Structure, ABC):
    """A linear warm-up from 0, followed by the formula of the kind."""

    needs_horizon: ClassVar[bool] = False
    """Declares that the schedule depends on the number of the last update."""

    kind: str
    warmup: Annotated[int, Field(ge=0)] = 0
    """Number of updates until the peak."""

    def factor(self, update: int, *, last: int | None, plateaus: int) -> float:
        """Computes the factor of the peak rate at ``update``, from 1 to ``last``."""
        if update <= self.warmup:
            return update / self.warmup
        return self._after_warmup(update, last, plateaus)

    @abstractmethod
    def _after_warmup(self, update: int, last: int | None, plateaus: int) -> float: ...


class _ToTheEnd(Schedule):
    needs_horizon: ClassVar[bool] = True

    final: Share = 0.0
    """Factor of the peak rate at the last update."""

    def _progress(self, update: int, last: int | None, start: int) -> float:
        assert last is not None
        # 0 at the start of the fall, 1 from the last update on
        return min(1.0, max(0.0, (update - start) / max(1, last - start)))


class Constant(Schedule):
    """The peak rate at all updates."""

    kind: Literal["constant"] = "constant"

    def _after_warmup(self, update: int, last: int | None, plateaus: int) -> float:
        return 1.0


class InverseSqrt(Schedule):
    """sqrt(warmup / update) (Vaswani et al. 2017, equation 3, scaled so that the peak is the learning rate)."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup: Annotated[int, Field(gt=0)] = 4000

    def _after_warmup(self, update: int, last: int | None, plateaus: int) -> float:
        # 1 at the end of the warm-up, 1/2 after four times as many updates
        return math.sqrt(self.warmup / update)


class CosineDecay(_ToTheEnd):
    """Half a cosine from the peak to ``final`` (Loshchilov & Hutter 2017, equation 5, without restarts)."""

    kind: Literal["cosine"] = "cosine"

    def _after_warmup(self, update: int, last: int | None, plateaus: int) -> float:
        progress = self._progress(update, last, self.warmup)
        # 0.5 (1 + cos(pi progress)) falls from 1 to 0; it is stretched to fall to the final factor
        return self.final + (1.0 - self.final) * 0.5 * (1.0 + math.cos(math.pi * progress))


class Linear(_ToTheEnd):
    """The peak rate until the share ``hold`` of all updates, then a straight line to ``final``."""

    kind: Literal["linear"] = "linear"
    hold: Share = 0.0
    """Share of all updates during which the rate stays at the peak."""

    def _after_warmup(self, update: int, last: int | None, plateaus: int) -> float:
        assert last is not None
        # the fall begins after the warm-up or after the share ``hold``, whichever ends later
        progress = self._progress(update, last, max(self.warmup, round(self.hold * last)))
        return 1.0 - (1.0 - self.final) * progress


class Plateau(Schedule):
    """``decay`` to the power of the number of plateaus; a plateau is ``patience`` validations in a row without a better
    metric."""

    kind: Literal["plateau"] = "plateau"
    decay: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.5
    """Factor of the rate at each plateau."""
    patience: Annotated[int, Field(gt=0)] = 2
    """Number of validations in a row without a better metric that make a plateau."""

    def _after_warmup(self, update: int, last: int | None, plateaus: int) -> float:
        return self.decay**plateaus


AnySchedule = Annotated[Constant | InverseSqrt | CosineDecay | Linear | Plateau, Field(discriminator="kind"), BareKind]
