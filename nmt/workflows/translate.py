"""Translation of text line by line, as it is read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import is_written_directly, refuse_overwriting
from nmt.core.lines import Line, LineReader, windows
from nmt.translator.find_run import shell_argument
from nmt.translator.translator import Loader, Translator
from nmt.translator.windows import OutputOptions, Window
from nmt.translator.workers import Workers
from nmt.workflows.output_files import output_file
from nmt.workflows.terminal import count_lines, interactive_lines

if TYPE_CHECKING:
    from nmt.data.context import DocumentContext

WINDOW_LINES = 2000
"""Number of lines that are sorted by length and translated together; more lines are faster, and take more memory."""

SHARED_LINES = 500
"""Number of lines that are translated together by threads, or a given number of processes, so that all have work
sooner."""

IN_THREADS = 2
"""Number of simultaneous windows for which threads are as fast as processes."""

AFTER = 3
"""Number of successive full windows after which several processes are started by default; less work is done before they
are ready."""

BESIDE = 2
"""Number of simultaneous windows with another engine, which translates one while Python reads and writes the text of
the other."""

CHECKED_CHARACTERS = 40
"""Length of the text from which on its language is checked."""

LIMIT_BYTES = 1 << 16
"""Maximum length of a line; the rest of a longer line is left out, with a warning."""


def translate(
    model: str | None, load: Loader, *, input: Path | None, output: Path | None, options: OutputOptions,
    prefix: Path | None = None, constraints: Path | None = None, workers: int | None = None, context: bool = False,
) -> None:  # fmt: skip
    """Writes one line for each line read, in order, or in tsv one for each of its translations, by the translator that
    ``load`` returns; ``model`` is the name by which the user has called it, and ``options`` are the form of the output.
    None means stdin and stdout. ``prefix`` and ``constraints`` have a line for each line of the input: the beginning of
    its translation, and words or phrases, separated by tabs, that the translation must contain. ``workers`` windows are
    translated at once; None means several if there is much to translate. With ``context`` lines are sentences, which
    are read with the preceding ones in their document; a blank line ends a document. A blank line gives a blank line.
    If a part of a line cannot be translated, a warning names the line, and the rest of it is translated."""
    refuse_overwriting(output, input, prefix, constraints)
    translator = load()
    document = translator.document() if context else None
    options.check(translator.search.n_best)
    if options.alignment:
        translator.aligner.check_method("attention")
    with ExitStack() as stack:
        stream = stack.enter_context(_reading(input, "--input"))
        prefixes, phrases = (
            None if path is None else ParallelLines(f"{option} {path}", stack.enter_context(_reading(path, option)))
            for option, path in (("--prefix", prefix), ("--constraints", constraints))
        )
        sink = stack.enter_context(output_file(output))
        interactive = input is None and sys.stdin.isatty()
        encoding = sys.stdout.encoding if output is None and sys.stdout.isatty() else "utf-8"
        bar = None
        if not interactive:
            total = count_lines(input) if input is not None and log.is_watched() else None
            bar = stack.enter_context(log.progress(total=total, description="translate", unit="line"))
        own = translator.has_own_engine
        on_cpu = own and translator.trained.compute.device.type == "cpu"
        count = workers or (translator.threads if on_cpu else 1 if own else BESIDE)
        in_threads = not own or (on_cpu and count == IN_THREADS)
        loads = None if in_threads else partial(load, model=str(translator.trained.checkpoint), engine="nmt")
        size = SHARED_LINES if own and count > 1 and (workers or in_threads) else WINDOW_LINES
        after = 1 if workers or in_threads else AFTER
        shared = stack.enter_context(Workers(translator, options, loads, count=count, full=size, after=after))
        reader = LineReader(stream, limit_bytes=LIMIT_BYTES)
        opened = interactive_lines() if interactive else windows(reader, size, pauses=True)
        read = (
            Window(
                window,
                None if prefixes is None else prefixes.next_lines(window),
                None if phrases is None else [line.split("\t") for line in phrases.next_lines(window)],
            )
            for window in (in_document(each, document) for each in opened)
        )
        started, lines, tokens, characters = time.monotonic(), 0, 0, 0
        for window, result in shared.translate(read):
            translation = result()
            for warning in translation.warnings:
                log.warning(warning)
            sink.write(translation.text.encode(encoding, "replace"))
            sink.flush()
            characters += sum(len(line.text) for line in window.lines)
            if characters >= CHECKED_CHARACTERS:
                translator.trained.warn_of_language(line.text for line in window.lines)
            lines += len(window.lines)
            tokens += translation.subwords
            if bar is not None:
                bar.update(len(window.lines))
        for parallel in filter(None, (prefixes, phrases)):
            parallel.check_end(lines)
        seconds = max(time.monotonic() - started, 1e-9)
        if not interactive:
            log.detail(
                f"{lines} lines in {seconds:.2f} s, {lines / seconds:.1f} lines/s, {tokens / seconds:.1f} subwords/s"
            )
    is_text = options.format == "text" and lines
    if input and output and not is_written_directly(output) and is_text and options.hint:
        log.info(f"next: {_next_step(translator, model, input, output)}")


def in_document(lines: Sequence[Line], document: DocumentContext | None) -> list[Line]:
    """Returns the next lines of a document, each of which knows those before it; without a document, the lines
    themselves."""
    texts = [line.text for line in lines] if document is None else document.sentences(line.text for line in lines)
    return [replace(line, text=text) for line, text in zip(lines, texts, strict=True)]


def _next_step(translator: Translator, model: str | None, source: Path, target: Path) -> str:
    """Writes the command that shows the alignment of a translation."""
    method = translator.aligner.methods[0]
    option = "" if method == "attention" else f" --method {method}"
    files = f"--source {quote(str(source))} --target {quote(str(target))}"
    to, page = translator.search.to, quote(f"{target}.html")
    named = shell_argument(model, translator.trained.checkpoint) + (f" --to {to}" if to else "")
    return f"nmt align {named} {files}{option} --format html --output {page}"


class ParallelLines:
    """Reads a file of `--prefix` or `--constraints`, which has a line for each line of the input."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        """``name`` is the name of the file in messages."""
        self._name = name
        self._lines = LineReader(stream, limit_bytes=LIMIT_BYTES)

    def next_lines(self, window: Sequence[Line]) -> list[str]:
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

    def check_end(self, lines: int) -> None:
        """Raises InputError if the file has more lines."""
        if next(self._lines, None) is not None:
            raise InputError(f"{self._name}: has more than the {lines} lines of the input")


@contextmanager
def _reading(path: Path | None, option: str) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdin.buffer
        return
    from nmt.data.corpus import open_text, refuse_records, unpacking

    refuse_records(path)
    try:
        file = open_text(path) if path.is_file() else path.open("rb")  # a pipe is read only once, not unpacked
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be read: {error.strerror}") from None
    with file, unpacking(path):
        yield file
