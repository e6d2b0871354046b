"""Errors of the functions of ``import nmt`` in the terms of Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from nmt.core.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


def library(function: Callable[P, R]) -> Callable[P, R]:
    """Wraps a function for callers from Python: its errors name arguments and not options of the command line,
    ``device='gpu'`` and not ``--device gpu``, and an argument name of another library raises an InputError with the
    right one."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            from nmt.translator.arguments import refuse_other_names

            refuse_other_names(kwargs)
            raise
        except InputError as error:
            from nmt.translator.arguments import in_python

            raise in_python(error) from None

    return checked
