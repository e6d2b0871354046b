"""Whatever bytes a file holds, and however it ends: ``translate`` gives a line for each of its lines; of two files
``align`` and ``score`` give a line for each pair, with links inside the sentences, ``evaluate`` scores them, and
``prepare`` takes or drops each pair; or they are refused in one line, where a few lines of Python find a reason. All
that are not refused are also aligned together, in every format."""

from __future__ import annotations

import io
import json
import math
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nmt as package
from nmt.core import log
from nmt.data.store import Store
from nmt.data.words import text_words
from nmt.search.config import SearchConfig
from nmt.search.hypothesis import Constraint, Hypothesis
from nmt.translator import find_run
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputFormat, OutputOptions
from nmt.workflows import translate as workflow
from tests.fuzz.readers import SENTENCES, make_run
from tests.workflows.runs import Command, in_process, searching, write_lines

PIECES = [
    b"\r\n", b"\r", b" ", b"\t", b"\x00", b"\x0b", b"\x0c", b"\x1b[31m", b"\xe2\x80\xa8", b"\xc2\x85", b"\xef\xbb\xbf",
    b"\xe2\x96\x81", b"Hund", b"Katze und ", b"eins. ", b"<b>", b"</b>", b"&amp;", b"{n}", b"%s", b"http://a.b/c?d ",
    b"12,5", b"?! ", b"x" * 300, b"Hund " * 30, b"0-0", b"\xe2\x81\x87",
    *(each.encode() for each in ("é", "e\u0301", "字", "漢字かな", "\u202e\u200b", "\u200b", "👩\u200d🚒", "ﬀ½")),
    *(each.encode() for each in ("\u3000", "\ufffd")),
]  # fmt: skip
INVALID = [b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf5\x80\x80\x80"]

BYTES = [*PIECES, *INVALID, b"\n", b"\x1c", b"\xe2\x80\xa9", b"Z. B. ", b"Hund " * 60]
TEXTS = st.one_of(st.lists(st.sampled_from(BYTES), max_size=12).map(b"".join), st.binary(max_size=60))
FORMATS = st.sampled_from(["text", "tsv", "jsonl"])

FILES = 40
"""Pairs of files in a quick run."""

TOGETHER = 250
"""Pairs of files that ``prepare`` is given, and that are aligned, at once."""

REFUSED = 10
"""One pair of refused files in so many is refused by ``prepare`` too, which takes longer."""

ENDS = [b"\n"] * 6 + [b"\r\n", b"\r\n", b"\r\r\n", b" \n"]
COMPUTING = ("--device", "cpu", "--precision", "float32", "--quiet")


def some_file(draw: random.Random, lines: int) -> bytes:
    """Free bytes, or text that is hard to read with some ends of lines, the last of which may be missing."""
    if draw.random() < 0.1:
        return b"\n".join(draw.randbytes(draw.randrange(20)) for _ in range(lines + 1))
    pieces = PIECES + INVALID if draw.random() < 0.1 else PIECES
    data = draw.choice([b"", b"", b"\xef\xbb\xbf"])
    for _ in range(lines):
        data += b"".join(draw.choices(pieces, k=draw.randrange(5))) + draw.choice(ENDS)
    return data if draw.random() < 0.8 else data.removesuffix(b"\n")


def lines_of(data: bytes) -> list[bytes]:
    """Lines end at LF or CR LF, the last one at the end of the file too; a byte order mark is not a text."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def texts_of(data: bytes) -> list[str] | None:
    """The lines; None where they are not UTF-8."""
    try:
        return [line.decode() for line in lines_of(data)]
    except UnicodeDecodeError:
        return None


def pairs_of(source: bytes, target: bytes) -> list[tuple[str, str]]:
    """The pairs of two files; none where there is a reason to refuse them."""
    sources, targets = texts_of(source), texts_of(target)
    if sources is None or targets is None or len(sources) != len(targets):
        return []
    return list(zip(sources, targets, strict=True))


def check_links(written: str, pairs: Sequence[tuple[str, str]], *, text: bool) -> None:
    """Checks that there are as many lines as pairs, and no link outside of its pair."""
    lines = written.split("\n")
    assert lines.pop() == ""
    for line, (source, target) in zip(lines, pairs, strict=True):
        sides = [len(text_words(side) if text else side.split()) for side in (source, target)]
        for link in line.split():
            assert all(0 <= int(place) < words for place, words in zip(link.split("-"), sides, strict=True))


class Backwards:
    """An engine that says the source's subwords backwards, at once."""

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
        constraints: Sequence[Sequence[Constraint]] | None = None,
        scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:
        assert all(sources)
        return [(Hypothesis(tuple(reversed(source)), -1.0, -1.0),) for source in sources]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("any") / "run"
    make_run(run)
    return run


@pytest.fixture
def loaded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is made once. What translates says the source backwards; what aligns and scores is the model."""
    model = package.load(run, device="cpu", precision="float32")
    backwards = replace(model, engine=Backwards())

    def once(*_: Any, **__: Any) -> Translator:
        return backwards

    monkeypatch.setattr(package, "load", once)
    monkeypatch.setattr(find_run, "validate_model", lambda model, overrides, **_: None)


class Files:
    """Pairs of files, one after the other, and what the commands make of each."""

    def __init__(self, folder: Path, run: Path, command: Command) -> None:
        self._folder, self._run, self._command = folder, run, command
        self._taken: list[tuple[Path, Path, int]] = []

    def try_pair(self, number: int, source: bytes, target: bytes) -> None:
        files = self._folder / f"{number}.source", self._folder / f"{number}.target"
        for path, data in zip(files, (source, target), strict=True):
            path.write_bytes(data)
        self._translate(files[0], source)
        pairs = pairs_of(source, target)
        if pairs:
            self._taken.append((*files, len(pairs)))
        self._align(files, pairs, text=number % 2 == 1)
        self._score(files, pairs)
        self._evaluate(files, pairs)
        if len(self._taken) >= TOGETHER:
            self.align_together()
            self.prepare()
        if pairs:
            return
        if number % REFUSED == 0:
            self._refuse(files, "prepare", self._config([files]), "--quiet")
        for path in files:
            path.unlink()

    def _translate(self, file: Path, data: bytes) -> None:
        out = self._folder / "out"
        done = self._command("translate", self._run, "--input", file, "--output", out, *COMPUTING)
        assert done.code == 0
        written = out.read_bytes()
        assert written.count(b"\n") == len(lines_of(data))
        assert written == b"" or written.endswith(b"\n")

    def _align(self, files: Sequence[Path], pairs: Sequence[tuple[str, str]], *, text: bool) -> None:
        asked = ("align", self._run, "-s", files[0], "-t", files[1], *(["--text"] if text else []), *COMPUTING)
        if not pairs:
            self._refuse(files, *asked)
            return
        done = self._command(*asked)
        assert done.code == 0
        check_links(done.stdout, pairs, text=text)

    def _score(self, files: Sequence[Path], pairs: Sequence[tuple[str, str]]) -> None:
        asked = ("score", self._run, "-s", files[0], "-t", files[1], *COMPUTING)
        if not pairs:
            self._refuse(files, *asked)
            return
        done = self._command(*asked)
        assert done.code == 0
        scores = [float(line) for line in done.stdout.split("\n")[:-1]]
        assert len(scores) == len(pairs)
        assert all(math.isfinite(each) for each in scores)

    def _evaluate(self, files: Sequence[Path], pairs: Sequence[tuple[str, str]]) -> None:
        asked = ("evaluate", "--hypothesis", files[0], "--reference", files[1], "--quiet")
        if not pairs:
            self._refuse(files, *asked)
            return
        assert self._command(*asked).code == 0

    def _refuse(self, files: Sequence[Path], *arguments: str | Path) -> None:
        done = self._command(*arguments)
        assert done.code == 2
        *warnings, line = done.stderr.splitlines()
        assert all(each.endswith("give --text") for each in warnings)
        assert line.startswith("error: ")
        assert any(str(path) in line for path in files)

    def _config(self, corpora: Sequence[Sequence[Path]], subwords: dict[str, object] | None = None) -> Path:
        train = [{"source": str(source), "target": str(target)} for source, target, *_ in corpora]
        path = self._folder / "config.yaml"
        tree = {
            "run": str(self._folder / "prepared"),
            "data": {"train": train, "subwords": subwords or {"model": str(self._run)}},
            "training": {"stopping": {"updates": 1}},
        }
        path.write_text(json.dumps(tree), encoding="utf-8")
        return path

    def align_together(self) -> None:
        """Aligns all that were not refused since it was last asked: in every way that has a line for each pair."""
        pairs = [
            pair for source, target, _ in self._taken for pair in pairs_of(*map(Path.read_bytes, (source, target)))
        ]
        paths = [self._folder / name for name in ("source", "target", "out", "again", "table", "jsonl", "npz", "html")]
        source, target, out, again, *others = paths
        for path, texts in zip(paths, zip(*pairs, strict=True), strict=False):
            write_lines(path, texts)
        given = ("--source", source, "--target", target, "--quiet")
        for options in (("align", self._run, *COMPUTING[:-1]), ("align", "--learn")):
            assert self._command(*options, *given, "--output", out).code == 0
            check_links(out.read_text(), pairs, text=False)
        for path, kind in zip(others, ("tsv", "jsonl", "npz", "html"), strict=True):
            options = ("links", out) if kind == "tsv" else ("align", self._run, *COMPUTING[:-1])
            assert self._command(*options, *given, "--format", kind, "--output", path).code == 0
            if kind != "html":
                assert self._command("links", path, *given, "--output", again).code == 0
                check_links(again.read_text(), pairs, text=False)
            assert kind != "tsv" or again.read_bytes() == out.read_bytes()

    def prepare(self, subwords: dict[str, object] | None = None) -> None:
        """Prepares all that were not refused since it was last asked."""
        assert self._command("prepare", self._config(self._taken, subwords), "--quiet").code == 0
        prepared = self._folder / "prepared" / "prepared"
        corpora = json.loads((prepared / "report.json").read_text(encoding="utf-8"))["corpora"]
        for corpus, (*_, lines) in zip(corpora, self._taken, strict=True):
            dropped = sum(each["pairs"] for each in corpus["dropped"].values())
            assert corpus["kept"] + dropped == lines == corpus["pairs"]
        assert len(Store.open(prepared / "train")) == sum(corpus["kept"] for corpus in corpora)
        for *files, _ in self._taken:
            for path in files:
                path.unlink()
        self._taken.clear()


def try_files(files: Files, count: int, seed: int) -> None:
    draw = random.Random(seed)
    for number in range(count):
        lines = draw.randrange(1, 5)
        others = lines if draw.random() < 0.9 else draw.randrange(5)
        files.try_pair(number, some_file(draw, lines), some_file(draw, others))
    files.align_together()
    # something to learn subwords from
    sides = ("".join(f"{line}\n" for line in side * 5) for side in zip(*SENTENCES, strict=True))
    files.try_pair(count, *map(str.encode, sides))
    files.prepare({"kind": "char", "size": 1000, "byte_fallback": True})


@pytest.mark.usefixtures("loaded")
def test_no_line_is_lost(tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try_files(Files(tmp_path, run, in_process(capsys)), FILES, seed=1)


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("seed", range(6))
def test_bytes_that_are_no_text_are_refused_with_their_line(
    seed: int, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(seed)
    sides = {name: [b"".join(draw.choices(PIECES, k=draw.randrange(6))) for _ in range(9)] for name in "st"}
    number, side = draw.randrange(9), draw.choice("st")
    sides[side][number] += draw.choice(INVALID)
    for name, lines in sides.items():
        (tmp_path / name).write_bytes(b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines))
    for command in ("align", "score"):
        error = in_process(capsys, command)(run, "-s", tmp_path / "s", "-t", tmp_path / "t", "--quiet").error
        assert f"{tmp_path / side}:{number + 1}: not UTF-8" in error


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"], ids=["nothing", "byte order mark"])
def test_two_empty_files_are_refused_by_name(
    data: bytes, tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Files(tmp_path, run, in_process(capsys)).try_pair(0, data, data)


@pytest.mark.slow
@pytest.mark.usefixtures("loaded")
def test_no_line_of_fifty_thousand_files_is_lost(tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try_files(Files(tmp_path, run, in_process(capsys)), int(os.environ.get("FUZZ_FILES", "50000")), seed=2)


# ------------------------------------------------------------------------------------- translations of any bytes


def written(translator: Translator, text: bytes, format: OutputFormat, patch: pytest.MonkeyPatch) -> bytes:
    sink = io.BytesIO()
    patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text), isatty=lambda: False))
    patch.setattr(sys, "stdout", SimpleNamespace(buffer=sink, isatty=lambda: False))
    workflow.translate(
        None,
        lambda **_: translator,
        input=None,
        output=None,
        prefix=None,
        constraints=None,
        options=OutputOptions(format),
        workers=1,
    )
    return sink.getvalue()


@pytest.fixture(scope="module")
def translator(trained: Path) -> Iterator[Translator]:
    log.set_verbosity(log.Verbosity.QUIET)
    yield package.load(trained / "run", precision="float32", overrides=["search.beam=1"])
    log.set_verbosity(log.Verbosity.NORMAL)


def check(translator: Translator, text: bytes, format: OutputFormat) -> None:
    with pytest.MonkeyPatch.context() as patch:
        out = written(translator, text, format, patch)
    lines = len(lines_of(text))
    assert len(out.decode().splitlines()) == lines  # other programs also end a line at U+2028 and the like
    if translator.search.document and format == "text":
        # keeps what the input ends its lines with; U+FEFF at the beginning is text here
        assert out.count(b"\n") + bool(out and not out.endswith(b"\n")) == lines
        return
    assert out.count(b"\n") == lines
    assert out == b"" or out.endswith(b"\n")
    rows = out.decode().split("\n")[:-1]
    if format == "tsv":
        assert [row.split("\t")[:2] for row in rows] == [[str(number), "1"] for number in range(1, lines + 1)]
    if format == "jsonl":
        assert [json.loads(row)["line"] for row in rows] == list(range(1, lines + 1))


@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(
    text=TEXTS,
    format=st.sampled_from(["text", "tsv", "jsonl"]),
    document=st.booleans(),
    limit=st.sampled_from([3, 1000]),
)
def test_as_many_lines_go_out(
    translator: Translator, text: bytes, format: OutputFormat, document: bool, limit: int
) -> None:
    backwards = replace(translator, engine=Backwards())
    check(searching(backwards, document=document, max_source_tokens=limit), text, format)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, format=FORMATS, document=st.booleans())
def test_as_many_lines_go_out_with_markup(
    translator: Translator, text: bytes, format: OutputFormat, document: bool
) -> None:
    check(searching(translator, markup=True, document=document, max_length_ratio=0.1), text, format)
