"""Translation of text as it comes, line by line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.core.lines import read_lines, windows
from nmt.workflows.translator import load

WINDOW_LINES = 2000
"""Lines that are sorted by length and translated together: more are faster, and are held in memory."""

LIMIT_BYTES = 1 << 16
"""Of one line; the rest of a longer one is left out, with a warning."""


def translate(
    model: str | None,
    overrides: Sequence[str],
    *,
    input: Path | None,
    output: Path | None,
    device: str,
    precision: str,
) -> None:
    """Writes one line for each line read, in order; None stands for stdin and stdout.

    A blank line gives a blank line. Whatever in a line cannot be translated as it stands is warned about with its
    line number, and the line is translated as far as it goes.
    """
    refuse_overwriting(output, input)
    translator = load(model, device=device, precision=precision, overrides=overrides)
    with ExitStack() as stack:
        source = stack.enter_context(_reading(input))
        sink = stack.enter_context(_writing(output))
        interactive = input is None and sys.stdin.isatty()
        bar = stack.enter_context(log.progress(description="translate", unit="line"))
        started, count = time.monotonic(), 0
        for window in windows(read_lines(source, limit_bytes=LIMIT_BYTES), WINDOW_LINES, interactive=interactive):
            translations = translator.translate([line.text for line in window])
            for line in window:
                if line.warning is not None:
                    log.warning(line.warning)
            translator.warn_of_cuts(translations, first_line=window[0].number)
            sink.write("".join(f"{translation.text}\n" for translation in translations).encode())
            sink.flush()
            count += len(window)
            bar.update(len(window))
        seconds = time.monotonic() - started
        log.detail(f"{count} lines in {seconds:.2f} s, {count / max(seconds, 1e-9):.1f} lines/s")


@contextmanager
def _reading(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"--input {path}: cannot be read: {error.strerror}") from None
    with file:
        yield file


@contextmanager
def _writing(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        return
    try:
        file = path.open("wb")
    except OSError as error:
        raise InputError(f"--output {path}: cannot be written: {error.strerror}") from None
    with file:
        yield file
