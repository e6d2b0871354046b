"""Previous sentences as context: the encoder reads the sentences before a sentence in its document, each followed by
the token `<break>`, and then the sentence itself; the decoder writes that sentence only (Tiedemann & Scherrer 2017,
"Neural Machine Translation with Extended Context", the systems 2+1).

A blank line ends a document.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Self

BREAK = "<break>"
MOST = 10
"""Maximum number of previous sentences that a model may read."""


class Sentence(str):
    """A text that knows the sentences before it in its document, in order: a model with context reads the last ones
    wherever it reads the text."""

    previous: tuple[str, ...]

    def __new__(cls, text: str, previous: Iterable[str] = ()) -> Self:
        sentence = super().__new__(cls, text)
        sentence.previous = tuple(previous)
        return sentence


class DocumentContext:
    """Follows lines in document order, which may come in parts."""

    def __init__(self) -> None:
        self._previous: deque[str] = deque(maxlen=MOST)

    def sentences(self, lines: Iterable[str]) -> list[Sentence]:
        """Returns the next lines unchanged, each with the lines before it up to a blank one."""
        found: list[Sentence] = []
        for line in lines:
            if not line.strip():
                self._previous.clear()
            found.append(Sentence(line, self._previous))
            if line.strip():
                self._previous.append(str(line))  # a Sentence would keep all sentences before it
        return found


def rows_of_sentences(sources: Sequence[str], targets: Sequence[str]) -> list[int]:
    """Returns the indices of pairs that are not blank on both sides; such blank pairs separate documents."""
    return [row for row, sides in enumerate(zip(sources, targets, strict=True)) if "".join(sides).strip()]


def with_context_of(sentence: str, text: str) -> str:
    """Gives a text, which is a version of a sentence, the sentences before that sentence."""
    return Sentence(text, sentence.previous) if isinstance(sentence, Sentence) else text


def context_tokens(
    text: str, encode: Callable[[str], Sequence[int]], end: int | None, *, number: int, room: int
) -> list[int]:
    """Returns the tokens of up to `number` sentences before a `Sentence`, each followed by the token `end`; if there
    are more than `room`, only the last ones. A plain text has no context."""
    if not (number and isinstance(text, Sentence)):
        return []
    assert end is not None, "a vocabulary for models with context"
    tokens = [token for sentence in text.previous[-number:] for token in (*encode(sentence), end)]
    return tokens[max(len(tokens) - max(room, 0), 0) :]
