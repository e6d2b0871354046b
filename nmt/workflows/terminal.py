"""Features of `nmt translate` at a terminal: a prompt, and the number of lines of a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from nmt.core import log
from nmt.core.lines import Line


def count_lines(path: Path) -> int | None:
    """Counts the line ends in a plain or compressed file; returns None if it is not a file."""
    from nmt.data.corpus import open_bytes, unpacking

    if not path.is_file():
        return None
    with open_bytes(path) as file, unpacking(path):
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def interactive_lines() -> Iterator[list[Line]]:
    """Yields the lines typed at a prompt, one by one, until the end of the input. If Python has GNU Readline or
    libedit, lines can be edited and recalled."""
    with suppress(ImportError):
        import readline  # noqa: F401
    log.info("type a text and press Enter; Ctrl-D ends")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for number in count(1):
        try:
            # `input` edits lines only if stdout is a terminal, too; otherwise its prompt would be part of the results
            if sys.stdout.isatty():
                text = input("> ")
            else:
                print("> ", end="", file=sys.stderr, flush=True)
                text = input()
        except EOFError:
            print(file=sys.stderr)
            return
        yield [Line(number, text)]
