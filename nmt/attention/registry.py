"""Finds every mechanism: one file in ``scores`` or ``weights`` is all that a new one needs.

What is found becomes the choice in a configuration (``score: additive``, or ``score: {kind: additive, size: 512}``),
its error messages, the table of docs/attention.md and the contract tests.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar, Union

from pydantic import Field

from nmt.attention import scores, weights
from nmt.attention.mechanism import Mechanism, Score, Weighting
from nmt.core.structure import BareKind

Kind = TypeVar("Kind", bound=Mechanism)


def _discover(package: ModuleType, base: type[Kind]) -> dict[str, type[Kind]]:
    found: dict[str, type[Kind]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__:
                kind = value.model_fields["kind"].default
                assert kind not in found, f"two mechanisms are called {kind}"
                found[kind] = value
    return dict(sorted(found.items()))


SCORES: dict[str, type[Score]] = _discover(scores, Score)  # type: ignore[type-abstract]
WEIGHTS: dict[str, type[Weighting]] = _discover(weights, Weighting)  # type: ignore[type-abstract]

if TYPE_CHECKING:
    AnyScore: TypeAlias = Score
    AnyWeighting: TypeAlias = Weighting
else:
    _SCORE, _WEIGHTING = Union[tuple(SCORES.values())], Union[tuple(WEIGHTS.values())]  # noqa: UP007
    AnyScore = Annotated[_SCORE, Field(discriminator="kind"), BareKind]
    AnyWeighting = Annotated[_WEIGHTING, Field(discriminator="kind"), BareKind]
