"""Finds every mechanism: one file in ``scores`` or ``weights`` is all that a new one needs.

What is found becomes the choice in a configuration (``score: additive``, or ``score: {kind: additive, size: 512}``),
its error messages, the table of docs/attention.md and the contract tests. The environment variable NMT_MECHANISMS may
name a folder with ``scores`` and ``weights`` of one's own, which are found as those here are.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias, TypeVar, Union

from pydantic import Field

from nmt.attention import scores, weights
from nmt.attention.mechanism import Mechanism, Score, Weighting
from nmt.core.errors import InputError
from nmt.core.structure import BareKind

Kind = TypeVar("Kind", bound=Mechanism)

FOLDER = "NMT_MECHANISMS"


class NoScore(Mechanism):
    """No attention: one vector for the whole sentence, passed on in one of the four ways of ``model.context``."""

    formula: ClassVar[str] = "none: one fixed vector, see model.context"
    source: ClassVar[str] = "Sutskever et al. 2014; Cho et al. 2014"

    kind: Literal["none"] = "none"


def _extend(package: ModuleType) -> None:
    """Lets the user's own folder count as part of the package."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    if not Path(folder).is_dir():
        raise InputError(f"{FOLDER}: {folder}: there is no such folder; name one with scores/ or weights/ in it")
    package.__path__.append(str(Path(folder) / package.__name__.rsplit(".", 1)[-1]))


def _discover(package: ModuleType, base: type[Kind]) -> dict[str, type[Kind]]:
    _extend(package)
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
    AnyScoreOrNone: TypeAlias = Score | NoScore
    AnyWeighting: TypeAlias = Weighting
else:
    _WITH_NONE = (NoScore, *SCORES.values())
    _SCORE, _WEIGHTING = Union[_WITH_NONE], Union[tuple(WEIGHTS.values())]  # noqa: UP007
    AnyScoreOrNone = Annotated[_SCORE, Field(discriminator="kind"), BareKind]
    AnyWeighting = Annotated[_WEIGHTING, Field(discriminator="kind"), BareKind]
