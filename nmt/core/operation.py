"""Functions that may be replaced by faster implementations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Operation(Generic[P, R]):
    """A function whose body, its formula, may be replaced by a faster implementation.

    The implementation has the same signature, decides by device, type and shape what it can do, and calls
    ``operation.body`` for the rest.
    """

    def __init__(self, body: Callable[P, R]) -> None:
        self.body = body
        self.implementation = body
        self.__doc__ = body.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.implementation(*args, **kwargs)

    def register(self, implementation: Callable[P, R]) -> None:
        """Puts an implementation in the place of the body."""
        self.implementation = implementation
