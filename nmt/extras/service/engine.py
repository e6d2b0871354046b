"""The server's interface to a translator: plain text in, plain trees out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class RequestOptions:
    """The options of a request. Texts with the same options are translated together."""

    n_best: int | None = None
    """Translations of each text; None: as many as the configuration says."""
    beam: int | None = None
    """Beam size; None: the configuration's."""
    alignment: bool = False
    """Each translation comes with its alignment."""
    to: str | None = None
    """Target language; None: the model's only one, or the server's."""
    context: bool = False
    """The texts of a request are sentences of a document, in order, each of which knows those before it."""


@dataclass(frozen=True)
class Answer:
    """The translations of one text."""

    tree: dict[str, Any]
    """A tree for JSON: ``source`` and ``translations``, as in a line of ``nmt translate --format jsonl``."""
    tokens: int
    """Subwords of all its translations."""
    warning: str | None = None
    """A note on the part of the text that was left out; None: nothing."""


class Engine(Protocol):
    """A loaded model. All calls of ``answer`` come from one thread."""

    @property
    def name(self) -> str:
        """The model's name for people."""

    @property
    def aligns(self) -> bool:
        """Tells if the engine can align translations."""

    @property
    def languages(self) -> tuple[str, str] | None:
        """Source and target language, where they are known."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Target languages that a request may choose from, the server's own first; none for a model without."""

    @property
    def context(self) -> int:
        """The number of previous sentences that the model reads."""

    def check(self, options: RequestOptions) -> None:
        """Raises InputError for options that the model cannot fulfil or the server does not allow; from any thread."""

    def subwords(self, texts: Sequence[str]) -> list[int]:
        """The number of subwords of each text; from any thread."""

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        """Translates each text, in order, apart from the others. Calls a function before each step of its search, which
        may ask for other translations within it or, by an exception, end it."""
