"""What the server asks of a translator: plain text in, plain trees out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Asked:
    """How a request wants its texts translated. Those that want the same are translated together."""

    n_best: int | None = None
    """Translations of each text; None: as many as the configuration says."""
    beam: int | None = None
    """Beam size; None: the configuration's."""
    alignment: bool = False
    """Whether each translation comes with its alignment."""


@dataclass(frozen=True)
class Answer:
    """What was found for one text."""

    tree: dict[str, Any]
    """What JSON says of it: ``source`` and ``translations``, as in a line of ``nmt translate --format jsonl``."""
    tokens: int
    """Subwords of all its translations."""
    warning: str | None = None
    """What was left out of the text; None: nothing."""


class Engine(Protocol):
    """A loaded model. All calls of ``answer`` come from one thread."""

    @property
    def name(self) -> str:
        """What the model is called, for people."""

    @property
    def aligns(self) -> bool:
        """Whether it can say how translations are aligned."""

    def check(self, asked: Asked) -> None:
        """Raises InputError for what the model cannot do or the server does not allow; from any thread."""

    def answer(self, texts: Sequence[str], asked: Asked) -> list[Answer]:
        """One answer for each text, in order, whatever the others are."""
