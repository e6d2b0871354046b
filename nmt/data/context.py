"""Previous sentences as context: the encoder reads those before a sentence in its document, each with the token
`<break>` behind it, and then the sentence; the decoder writes that sentence only (Tiedemann & Scherrer 2017, "Neural
Machine Translation with Extended Context", the systems 2+1).

A blank line ends a document.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Self

BREAK = "<break>"
MOST = 10
"""Most sentences before a sentence that a model may read."""


class Sentence(str):
    """A text that knows the sentences before it in its document, in order: a model with context reads the last ones
    wherever it reads the text."""

    previous: tuple[str, ...]

    def __new__(cls, text: str, previous: Iterable[str] = ()) -> Self:
        sentence = super().__new__(cls, text)
        sentence.previous = tuple(previous)
        return sentence


class Document:
    """Follows lines in document order, which may come in parts."""

    def __init__(self) -> None:
        self._previous: deque[str] = deque(maxlen=MOST)

    def sentences(self, lines: Iterable[str]) -> list[Sentence]:
        """The next lines as they are, each with the lines before it up to a blank one."""
        found: list[Sentence] = []
        for line in lines:
            if not line.strip():
                self._previous.clear()
            found.append(Sentence(line, self._previous))
            if line.strip():
                self._previous.append(str(line))  # a Sentence would keep all that was before it
        return found


def rows_of_sentences(sources: Sequence[str], targets: Sequence[str]) -> list[int]:
    """The pairs that are not blank on both sides, as between two documents."""
    return [row for row, sides in enumerate(zip(sources, targets, strict=True)) if "".join(sides).strip()]


def with_context_of(sentence: str, text: str) -> str:
    """A text with the sentences before another one, which it is a version of."""
    return Sentence(text, sentence.previous) if isinstance(sentence, Sentence) else text


def context_tokens(
    text: str, encode: Callable[[str], Sequence[int]], end: int | None, *, number: int, room: int
) -> list[int]:
    """The tokens of up to `number` sentences before a `Sentence`, each with the token `end` behind it; of more than
    `room` the last ones. A plain text has none."""
    if not (number and isinstance(text, Sentence)):
        return []
    assert end is not None, "a vocabulary for models with context"
    tokens = [token for sentence in text.previous[-number:] for token in (*encode(sentence), end)]
    return tokens[max(len(tokens) - max(room, 0), 0) :]
