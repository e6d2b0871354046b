"""Output of a command: stdout, or the file of `--output`, which replaces an older one only when it is complete."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from nmt.core import log
from nmt.core.files import whole_file, writing
from nmt.data.packed import PACKED, zstandard


@contextmanager
def output_file(path: Path | None) -> Iterator[BinaryIO]:
    """Opens a file beside ``path`` that gets its name at the end; devices and pipes, and stdout for None, are written
    directly. A file whose name ends in .gz, .xz, .bz2 or .zst is compressed.

    After an error or Ctrl-C the old file is unchanged, and a warning says where the incomplete one is. Raises
    InputError if no file can be written."""
    if path is None:
        yield sys.stdout.buffer
        return
    with ExitStack() as stack:
        with writing(f"--output {path}"):
            file = stack.enter_context(stack.enter_context(whole_file(path, keep=True)).open("wb"))
            stream = stack.enter_context(packed(file, path.suffix))
        yield stream
        stream.flush()


@contextmanager
def packed(file: BinaryIO, ending: str) -> Iterator[BinaryIO]:
    """Compresses what is written to a file as the ending of its name says; the same text gives the same bytes."""
    ending = ending.lower()
    if ending not in PACKED:
        yield file
        return
    opened: Any = {
        ".gz": lambda: gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0),
        ".xz": lambda: lzma.LZMAFile(file, "wb"),  # noqa: SIM115 - is a context manager below
        ".bz2": lambda: bz2.BZ2File(file, "wb"),
        ".zst": lambda: zstandard().ZstdFile(file, "wb"),
    }[ending]
    with opened() as stream:
        yield stream


@contextmanager
def text_file(path: Path | None) -> Iterator[TextIO]:
    """Opens a file for lines of text, like ``output_file``."""
    if path is None:
        yield log.results()
        return
    with output_file(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # also flushes
