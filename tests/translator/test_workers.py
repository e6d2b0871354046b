"""Several threads or processes translate as one does."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.core.lines import Line
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions, Window, WindowTranslation
from nmt.translator.workers import Workers
from tests.workflows.runs import error, nmt, sentences


def windows(count: int, size: int) -> list[Window]:
    texts = [source for source, _ in sentences(count * size, seed=5)]
    lines = [Line(number, text, None) for number, text in enumerate(texts, 1)]
    return [Window(lines[first : first + size]) for first in range(0, len(lines), size)]


OPTIONS = OutputOptions("tsv")


def workers(translator: Translator, *, count: int = 2, full: int, after: int, threads: bool = False) -> Workers:
    load = partial(package.load, str(translator.trained.checkpoint), precision="float32")
    return Workers(translator, OPTIONS, None if threads else load, count=count, full=full, after=after)


@pytest.mark.parametrize("count", [1, 2])
def test_answers_come_in_order_and_are_the_same(translator: Translator, count: int) -> None:
    given = [*windows(6, 4), Window([Line(25, "Hund", None)])]
    with workers(translator, count=count, full=4, after=3) as shared:
        for number, (window, result) in enumerate(shared.translate(iter(given))):
            assert window is given[number]
            assert bool(multiprocessing.active_children()) == (count == 2 and number >= 2)
            assert result() == OPTIONS.translate(translator, window)
        misspelt = Window(windows(1, 2)[0].lines, None, [["one"], ["xyz"]])
        with pytest.raises(InputError, match="^line 2: 'xyz' cannot be spelt"):
            next(shared.translate([misspelt]))[1]()
    assert multiprocessing.active_children() == []


def test_who_writes_less_than_a_window_is_answered_at_once(translator: Translator) -> None:
    taken = 0

    def read() -> Iterator[Window]:
        nonlocal taken
        for window in [*windows(1, 2), Window([Line(3, "Hund", None)]), *windows(1, 2), Window([])]:
            taken += 1
            yield window

    with workers(translator, count=1, full=2, after=1) as alone:
        assert len([result() for _, result in alone.translate([*windows(1, 2), Window([])])]) == 1
    with workers(translator, full=2, after=1, threads=True) as shared:
        seen = [(result(), taken)[1] for _, result in shared.translate(read())]
    # the first two as soon as the short one is there, before the third is read, and the third when the input pauses
    assert seen == [2, 2, 4]


def test_threads_answer_the_same_in_order_at_once(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    given = windows(6, 4)
    expected = [OPTIONS.translate(translator, window) for window in given]
    meeting = threading.Barrier(2)
    translate = OutputOptions.translate

    def with_another(options: OutputOptions, translator: Translator, window: Window) -> WindowTranslation:
        meeting.wait(60)
        return translate(options, translator, window)

    monkeypatch.setattr(OutputOptions, "translate", with_another)
    with workers(translator, full=4, after=1, threads=True) as shared:
        found = [(window, result()) for window, result in shared.translate(given)]
    assert [answer for _, answer in found] == expected
    assert all(window is one for (window, _), one in zip(found, given, strict=True))
    assert multiprocessing.active_children() == []


def test_threads_end_with_the_context(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at Ctrl-C: a search that has begun stops at its next step, and the other windows are never begun."""
    over, began, ended, translate = threading.Event(), list[Window](), list[Window](), OutputOptions.translate

    def late(options: OutputOptions, translator: Translator, window: Window) -> WindowTranslation:
        began.append(window)
        assert over.wait(60)
        try:
            return translate(options, translator, window)
        except CancelledError:
            ended.append(window)
            raise

    def interrupted() -> None:
        with workers(translator, full=2, after=1, threads=True) as shared:
            next(shared.translate(windows(9, 2)))
            threads.extend(thread for thread in threading.enumerate() if thread not in others)
            raise KeyboardInterrupt

    monkeypatch.setattr(OutputOptions, "translate", late)
    others, threads = threading.enumerate(), list[threading.Thread]()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    over.set()
    for thread in threads:
        thread.join(60)
    assert len(ended) == len(began) == len(threads) == 2


def test_a_process_that_is_ended_is_told(translator: Translator) -> None:
    def translate_and_kill() -> None:
        with workers(translator, full=2, after=1) as shared:
            for _, result in shared.translate(windows(40, 2)):
                result()
                for child in multiprocessing.active_children():
                    child.kill()

    with pytest.raises(InputError, match="^--workers 2: a process was ended"):
        translate_and_kill()


def test_the_command_says_the_same(trained: Path) -> None:
    text = "".join(f"{source}\n" for source, _ in sentences(1100, seed=6)).encode()
    options = ("translate", "run", "--precision", "float32", "--beam", "1", "--format", "jsonl")
    one, *others = [nmt(*options, "--workers", count, folder=trained, stdin=text) for count in ("1", "2", "3")]
    assert one.stdout.count(b"\n") == 1100
    for done in others:  # threads, processes
        assert done.returncode == 0, done.stderr.decode()
        assert (done.stdout, done.stderr) == (one.stdout, one.stderr)
    refused = nmt("translate", "run", "--engine", "ctranslate2", "--workers", "2", folder=trained)
    assert "--workers: --engine ctranslate2 shares out its work by itself" in error(refused)
