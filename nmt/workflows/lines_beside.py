"""Files of `--prefix` and `--constraints`, with a line for each line of the input."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.lines import Line, LineReader


class LinesBeside:
    """A file that has a line for each line of the input."""

    def __init__(self, name: str, lines: LineReader) -> None:
        """``name`` is the name of the file in messages."""
        self._name = name
        self._lines = lines

    def of(self, window: Sequence[Line]) -> list[str]:
        """Reads the lines that belong to those of the next window."""
        lines = list(islice(self._lines, len(window)))
        for line in lines:
            if line.warning is not None:
                log.warning(f"{self._name}: {line.warning}")
        if len(lines) < len(window):
            raise InputError(
                f"{self._name}: has no line {window[0].number + len(lines)}; it needs one for each line of the input, "
                "blank where its translation is free"
            )
        return [line.text for line in lines]

    def end(self, lines: int) -> None:
        """Raises InputError if the file has more lines."""
        if next(self._lines, None) is not None:
            raise InputError(f"{self._name}: has more than the {lines} lines of the input")
