"""Texts below the fields of a class, which Python does not keep."""

from __future__ import annotations

import ast
import sys
from inspect import getsource
from itertools import pairwise


def field_docstrings(cls: type) -> dict[str, str]:
    """Reads the string literals below the fields of a class in its source, not those of its bases. Raises OSError,
    TypeError or KeyError if there is no source."""
    docstrings: dict[str, str] = {}
    for node in ast.walk(ast.parse(getsource(sys.modules[cls.__module__]))):
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            for pair in pairwise(node.body):
                match pair:
                    case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text)))):
                        docstrings[name] = text
    return docstrings
