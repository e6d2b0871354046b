"""Arguments of the functions and methods of ``import nmt``: their checks, and errors in the terms of Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from nmt.core.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")

Pair: TypeAlias = Sequence[str] | Mapping[str, Any]
"""A source and a target; or a row of a data set of Hugging Face, such as ``{"translation": {"de": …, "en": …}}``."""

_OPTION = re.compile(r"(?<![a-z-])--([a-z][a-z-]*+) ([^\s:;,]+)")

_OTHER_NAMES = {
    **dict.fromkeys(("num_beams", "beam_size"), "beam in translate, or overrides=['search.beam=…'] in nmt.load"),
    **dict.fromkeys(("num_return_sequences", "nbest"), "n_best in translate"),
    **dict.fromkeys(("max_length", "max_new_tokens"), "max_length_ratio, a multiple of the length of the source"),
    **dict.fromkeys(("do_sample", "temperature", "top_k", "top_p"), "overrides=['search.sampling={…}'] in nmt.load"),
    **dict.fromkeys(("batch_size",), "overrides=['search.batch_tokens=…'] in nmt.load"),
    **dict.fromkeys(("to", "tgt_lang", "language"), "target_language"),
    **dict.fromkeys(("dtype", "torch_dtype"), "precision in nmt.load"),
}
"""Names of arguments in other libraries, and their names here."""


def library(function: Callable[P, R]) -> Callable[P, R]:
    """Wraps a function for callers from Python: its errors name arguments and not options of the command line,
    ``device='gpu'`` and not ``--device gpu``, and an argument name of another library raises an InputError with the
    right one."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            for name in filter(_OTHER_NAMES.__contains__, kwargs):
                raise InputError(f"{name}: no such argument; use {_OTHER_NAMES[name]}") from None
            raise
        except InputError as error:
            messages = (_OPTION.sub(_argument, each) for each in error.messages)
            raise InputError(*messages, exit_code=error.exit_code) from None

    return checked


def _argument(match: re.Match[str]) -> str:
    name = {"set": "overrides", "to": "target_language"}.get(match[1], match[1].replace("-", "_"))
    return f"{name}={match[2]!r}"


def check_texts(values: Iterable[str], name: str) -> list[str]:
    """Returns the texts as a list. Raises InputError for values that are not text."""
    if isinstance(values, bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{name}: expected a text or several of them, found {values!r}")
    texts = list(values)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{index}]: expected text, found {text!r}")
    return texts


def check_pairs(
    sources: str | Iterable[str] | Iterable[Pair],
    targets: str | Iterable[str] | None = None,
    languages: Sequence[str] | None = None,
) -> tuple[list[str], list[str]]:
    """Returns both sides as lists: of one pair, of several, or, without ``targets``, of the rows of ``sources``, which
    is a list, a generator or a data set of Hugging Face, whose fields may have the names of the ``languages``. Raises
    InputError for values that are not text, and for different numbers of sources and targets."""
    if targets is None:
        if isinstance(sources, str | bytes | Mapping) or not isinstance(sources, Iterable):
            raise InputError(f"pairs: expected pairs of a source and a target, found {sources!r}")
        rows = [_pair(row, index, languages or ()) for index, row in enumerate(sources)]
        return [source for source, _ in rows], [target for _, target in rows]
    if isinstance(sources, str) and isinstance(targets, str):
        return [sources], [targets]
    if isinstance(sources, str) or isinstance(targets, str):
        raise InputError("sources and targets: one is a text and the other a list; give two texts or two lists")
    sides = check_texts(sources, "sources"), check_texts(targets, "targets")  # type: ignore[arg-type]
    if len(sides[0]) != len(sides[1]):
        raise InputError(f"{len(sides[0])} sources but {len(sides[1])} targets: give one target for each source")
    return sides


def _pair(row: Any, index: int, languages: Sequence[str]) -> tuple[str, str]:
    """Returns the texts of a row: the fields named after the languages or source and target, else the only two
    texts."""
    texts = row
    if isinstance(row, Mapping):
        fields = row.get("translation", row)
        known = (some for some in (languages, ("source", "target")) if some and set(some) <= fields.keys())
        names = next(known, fields)
        texts = [fields[name] for name in names if isinstance(fields[name], str)]
    if isinstance(texts, list | tuple) and len(texts) == 2 and all(isinstance(text, str) for text in texts):
        return texts[0], texts[1]
    raise InputError(f"pairs[{index}]: expected a source and a target, found {row!r}")
