"""What `nmt translate` has for a person at a terminal: a prompt, and the number of lines that a file has."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from nmt.core import log
from nmt.core.lines import Line
from nmt.data.corpus import open_bytes, unpacking


def count_lines(path: Path) -> int | None:
    """The line ends in a plain or compressed file; None for what is not a file."""
    if not path.is_file():
        return None
    with open_bytes(path) as file, unpacking(path):
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def typed_lines() -> Iterator[list[Line]]:
    """The lines typed at a prompt, each by itself, until the end of the input. Where Python has GNU Readline or
    libedit, lines can be edited and recalled."""
    with suppress(ImportError):
        import readline  # noqa: F401
    log.info("type a text and press Enter; Ctrl-D ends")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for number in count(1):
        try:
            # `input` edits lines only where stdout is a terminal, too; else its prompt would be among the results
            if sys.stdout.isatty():
                text = input("> ")
            else:
                print("> ", end="", file=sys.stderr, flush=True)
                text = input()
        except EOFError:
            print(file=sys.stderr)
            return
        yield [Line(number, text)]
