"""Translation of text as it comes, line by line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import BinaryIO

import torch

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import is_written_directly, refuse_overwriting
from nmt.core.lines import Line, LineReader, windows
from nmt.translator.find_run import typed
from nmt.translator.translator import EngineName, Loader, Translator
from nmt.translator.windows import OutputFormat, OutputOptions, Window
from nmt.translator.workers import LoadOptions, Workers
from nmt.workflows.output_files import output_file

WINDOW_LINES = 2000
"""Lines that are sorted by length and translated together: more lines are faster, and take more memory."""

SHARED_LINES = 500
"""The same for a given number of processes, so that all have work sooner."""

AFTER = 3
"""Full windows in a row after which several processes are started by default: less work is done before they are up."""

BESIDE = 2
"""Windows at once where another engine translates: it computes for one while Python reads and writes the other's."""

LIMIT_BYTES = 1 << 16
"""The longest line; the rest of a longer one is left out, with a warning."""


def translate(
    model: str | None,
    overrides: Sequence[str],
    *,
    input: Path | None,
    output: Path | None,
    prefix: Path | None,
    constraints: Path | None,
    ensemble: Sequence[str],
    format: OutputFormat,
    alignment: bool,
    engine: EngineName,
    workers: int | None,
    device: str,
    precision: str,
    load: Loader,
) -> None:
    """Writes one line for each line read, in order, or one for each translation of it in ``format`` tsv; None stands
    for stdin and stdout. ``prefix`` and ``constraints`` have a line for each line of the input: what its translation
    begins with, and words or phrases, with tabs between, that it contains. ``alignment`` adds to each translation in
    jsonl how it is aligned. ``workers`` processes translate; None: several, where there is much to translate.

    A blank line gives a blank line. Whatever in a line cannot be translated as it stands is warned about with its
    line number, and the line is translated as far as it goes.
    """
    refuse_overwriting(output, input, prefix, constraints)
    translator = load(model, device=device, precision=precision, overrides=overrides, ensemble=ensemble, engine=engine)
    options = OutputOptions(format, alignment)
    options.check(translator.search.n_best)
    if alignment:
        translator.aligner.check_method("attention")
    with ExitStack() as stack:
        source = LineReader(stack.enter_context(_reading(input, "--input")), limit_bytes=LIMIT_BYTES)
        prefixes, phrases = (
            None if path is None else _Beside(option, path, stack.enter_context(_reading(path, option)))
            for option, path in (("--prefix", prefix), ("--constraints", constraints))
        )
        sink = stack.enter_context(output_file(output))
        interactive = input is None and sys.stdin.isatty()
        bar = stack.enter_context(log.progress(description="translate", unit="line"))
        loading: LoadOptions | None = LoadOptions(
            load, str(translator.trained.checkpoint), overrides, device, precision, ensemble
        )
        if engine != "nmt":
            loading, count, size, after = None, BESIDE, WINDOW_LINES, 1
        elif workers is None:
            on_cpu = translator.trained.compute.device.type == "cpu"
            count, size, after = torch.get_num_threads() if on_cpu else 1, WINDOW_LINES, AFTER
        else:
            count, size, after = workers, SHARED_LINES if workers > 1 else WINDOW_LINES, 1
        shared = stack.enter_context(Workers(translator, options, loading, count=count, full=size, after=after))
        read = (
            Window(
                window,
                None if prefixes is None else prefixes.of(window),
                None if phrases is None else [line.split("\t") for line in phrases.of(window)],
            )
            for window in windows(source, size, interactive=interactive)
        )
        started, lines, tokens = time.monotonic(), 0, 0
        for window, result in shared.translate(read):
            translation = result()
            for warning in translation.warnings:
                log.warning(warning)
            sink.write(translation.text.encode())
            sink.flush()
            lines += len(window.lines)
            tokens += translation.subwords
            bar.update(len(window.lines))
        for beside in filter(None, (prefixes, phrases)):
            beside.end(lines)
        seconds = max(time.monotonic() - started, 1e-9)
        log.detail(
            f"{lines} lines in {seconds:.2f} s, {lines / seconds:.1f} lines/s, {tokens / seconds:.1f} subwords/s"
        )
    if input and output and not is_written_directly(output) and format == "text" and lines:
        log.info(f"next: {_next_step(translator, model, input, output)}")


def _next_step(translator: Translator, model: str | None, source: Path, target: Path) -> str:
    """Writes the command that shows the alignment of a translation."""
    method = translator.aligner.methods[0]
    option = "" if method == "attention" else f" --method {method}"
    files = f"--source {quote(str(source))} --target {quote(str(target))}"
    page = quote(f"{target}.html")
    return f"nmt align {typed(model, translator.trained.checkpoint)} {files}{option} --format html --output {page}"


class _Beside:
    """A file that has a line for each line of the input."""

    def __init__(self, option: str, path: Path, stream: BinaryIO) -> None:
        self._name = f"{option} {path}"
        self._lines = LineReader(stream, limit_bytes=LIMIT_BYTES)

    def of(self, window: Sequence[Line]) -> list[str]:
        """Reads the lines for those of the next window."""
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
        """Raises InputError where there is a line too many."""
        if next(self._lines, None) is not None:
            raise InputError(f"{self._name}: has more than the {lines} lines of the input")


@contextmanager
def _reading(path: Path | None, option: str) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be read: {error.strerror}") from None
    with file:
        yield file
