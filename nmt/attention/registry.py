"""Finds every mechanism: a new one needs no more than a file in ``scores`` or ``weights``.

They are the choices in a configuration (``score: additive``, or ``score: {kind: additive, size: 512}``), its error
messages, the table of docs/attention.md and the contract tests. The environment variable NMT_MECHANISMS may
name a folder with ``scores`` and ``weights`` of one's own, which are found as those here are; plug-ins bring others.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias, TypeVar, Union

from pydantic import Field

from nmt import plugins
from nmt.attention import scores, weights
from nmt.attention.mechanism import Mechanism, Score, Weighting
from nmt.config.kinds import BareKind
from nmt.core.errors import InputError

Kind = TypeVar("Kind", bound=Mechanism)

FOLDER = "NMT_MECHANISMS"


class NoScore(Mechanism):
    """No attention: one vector for the whole sentence, see ``model.decoder.start`` and ``model.decoder.context``."""

    formula: ClassVar[str] = "none: one fixed vector, see model.decoder.context"
    source: ClassVar[str] = "Sutskever et al. 2014; Cho et al. 2014"

    kind: Literal["none"] = "none"


def _own(package: ModuleType) -> Path | None:
    """Returns the user's own folder for mechanisms of a package, or None if there is none."""
    named = os.environ.get(FOLDER)
    if not named:
        return None
    if not any((Path(named) / part).is_dir() for part in ("scores", "weights")):
        raise InputError(f"{FOLDER}: {named}: has no folder scores and no folder weights; name one that has")
    folder = Path(named) / package.__name__.rsplit(".", 1)[-1]
    return folder if folder.is_dir() else None


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yields the module of every file of the package, then those of the user's own folder, which become part of the
    package."""
    shipped = {info.name for info in pkgutil.iter_modules(package.__path__)}
    for name in sorted(shipped):
        yield importlib.import_module(f"{package.__name__}.{name}")
    folder = _own(package)
    if folder is None:
        return
    package.__path__.append(str(folder))
    for info in pkgutil.iter_modules([str(folder)]):
        file = folder / f"{info.name}.py"
        if info.name in shipped:
            raise InputError(f"{FOLDER}: {file}: has the name of a file that ships; give it another")
        try:
            yield importlib.import_module(f"{package.__name__}.{info.name}")
        except SyntaxError as error:
            raise InputError(f"{FOLDER}: {error.filename}:{error.lineno}: {error.msg}") from None
        except Exception as error:  # importing a file of the user's may raise anything
            raise InputError(f"{FOLDER}: {file}: cannot be imported: {type(error).__name__}: {error}") from error


def _discover(package: ModuleType, base: type[Kind]) -> dict[str, type[Kind]]:
    mechanisms: dict[str, type[Kind]] = {}
    for module in _modules(package):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__:
                kind = value.model_fields["kind"].default
                if kind in mechanisms or kind == "none":
                    raise InputError(f"{FOLDER}: {module.__file__}: kind: {kind} is taken; give it another")
                mechanisms[kind] = value
    mechanisms |= plugins.loaded(package.__name__.rpartition(".")[2], base, mechanisms)
    return dict(sorted(mechanisms.items()))


SCORES: dict[str, type[Score]] = _discover(scores, Score)  # type: ignore[type-abstract]
WEIGHTS: dict[str, type[Weighting]] = _discover(weights, Weighting)  # type: ignore[type-abstract]

if TYPE_CHECKING:
    AnyScore: TypeAlias = Score
    AnyScoreOrNone: TypeAlias = Score | NoScore
    AnyWeighting: TypeAlias = Weighting
else:
    _WITH_NONE = (NoScore, *SCORES.values())
    _SCORE, _OR_NONE = Union[tuple(SCORES.values())], Union[_WITH_NONE]  # noqa: UP007
    _WEIGHTING = Union[tuple(WEIGHTS.values())]  # noqa: UP007
    AnyScore = Annotated[_SCORE, Field(discriminator="kind"), BareKind]
    AnyScoreOrNone = Annotated[_OR_NONE, Field(discriminator="kind"), BareKind]
    AnyWeighting = Annotated[_WEIGHTING, Field(discriminator="kind"), BareKind]
