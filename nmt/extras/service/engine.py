"""The server's interface to a translator: plain text in, plain trees out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class RequestOptions:
    """The options of a request. Texts with the same options are translated together."""

    n_best: int | None = None
    """Number of translations of each text; None means the number in the configuration."""
    beam: int | None = None
    """Beam size; None means that of the configuration."""
    alignment: bool = False
    """If True, each translation comes with its alignment."""
    to: str | None = None
    """Target language; None means the model's only one, or the server's."""
    context: bool = False
    """If True, the texts of a request are sentences of a document, in order, each of which knows the preceding ones."""


@dataclass(frozen=True)
class Answer:
    """The translations of one text."""

    tree: dict[str, Any]
    """Tree for JSON: ``source`` and ``translations``, as in a line of ``nmt translate --format jsonl``."""
    tokens: int
    """Number of subwords of all its translations."""
    warning: str | None = None
    """A note on the part of the text that was left out, or None."""


class Engine(Protocol):
    """A loaded model. All calls of ``answer`` come from one thread."""

    @property
    def name(self) -> str:
        """Name of the model for users."""

    @property
    def aligns(self) -> bool:
        """Returns True if the engine can align translations."""

    @property
    def languages(self) -> tuple[str, str] | None:
        """Source and target language, or None if they are unknown."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Target languages that a request may choose from, the server's own first; empty for a model without
        languages."""

    @property
    def context(self) -> int:
        """Number of previous sentences that the model reads."""

    def check(self, options: RequestOptions) -> None:
        """Raises InputError for options that the model does not support or the server does not allow; may be called
        from any thread."""

    def subwords(self, texts: Sequence[str]) -> list[int]:
        """Counts the subwords of each text; may be called from any thread."""

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        """Translates each text, in order, independently of the others. Calls a function before each step of the search,
        which may request other translations within it or, by an exception, end it."""
