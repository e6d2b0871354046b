"""Arguments of a translator's methods, checked."""

from __future__ import annotations

from collections.abc import Iterable

from nmt.config.structure import dump, validate
from nmt.config.yaml_source import Override, parse_document
from nmt.core.errors import InputError
from nmt.search.config import SearchConfig


def searching(
    search: SearchConfig,
    beam: int | None,
    n_best: int | None,
    length_penalty: float | None,
    max_length_ratio: float | None,
) -> SearchConfig:
    """The search with the options that are not None. Raises InputError in the words of the arguments."""
    options = {"beam": beam, "n_best": n_best, "length_penalty": length_penalty, "max_length_ratio": max_length_ratio}
    changes = [Override(f"{key}={value}", f"{key}={value!r}") for key, value in options.items() if value is not None]
    return validate(SearchConfig, parse_document(dump(search), "search", changes))


def texts_of(values: Iterable[str], name: str) -> list[str]:
    """The texts as a list. Raises InputError for what is not text."""
    texts = list(values)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}[{index}]: expected text, found {text!r}")
    return texts


def pairs_of(sources: str | Iterable[str], targets: str | Iterable[str]) -> tuple[list[str], list[str]]:
    """Both sides as lists: of one pair, or of several. Raises InputError for what is not text."""
    if isinstance(sources, str) and isinstance(targets, str):
        return [sources], [targets]
    if isinstance(sources, str) or isinstance(targets, str):
        raise InputError("sources and targets: one is a text and the other a list; give two texts or two lists")
    return texts_of(sources, "sources"), texts_of(targets, "targets")
