"""Whatever bytes two files hold: a line for each pair of lines from ``align`` and ``score``, with links inside the
sentences, no line lost by ``prepare``, or one plain line that refuses the files."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from nmt.cli.app import main
from nmt.data.corpus import read_lines
from nmt.data.words import text_words
from tests.fuzz.readers import SENTENCES, make_run

PIECES = [
    b"\r\n", b"\r", b" ", b"\t", b"\x00", b"\x0b", b"\x0c", b"\x1b[31m", b"\xe2\x80\xa8", b"\xc2\x85", b"\xef\xbb\xbf",
    b"\xe2\x96\x81", b"Hund", b"Katze und ", b"eins. ", b"<b>", b"</b>", b"&amp;", b"{n}", b"%s", b"http://a.b/c?d ",
    b"12,5", b"?! ", b"x" * 300, b"Hund " * 30, b"0-0", b"\xe2\x81\x87",
    *(each.encode() for each in ("é", "e\u0301", "字", "漢字かな", "\u202e\u200b", "\u200b", "👩\u200d🚒", "ﬀ½")),
    *(each.encode() for each in ("\u3000", "\ufffd")),
]  # fmt: skip
INVALID = [b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf5\x80\x80\x80"]

FILES = 40
"""Pairs of files in a quick run, each of a few lines."""


def some_lines(draw: random.Random) -> list[bytes]:
    """The lines of a file, without their ends."""
    return [
        b"".join(draw.choices(PIECES, k=draw.randrange(6))).replace(b"\n", b" ") for _ in range(draw.randrange(1, 5))
    ]


def write_files(folder: Path, draw: random.Random, files: int) -> int:
    """The lines of many pairs of files as one pair; how many there are."""
    source, target = folder / "source", folder / "target"
    pairs = []
    for _ in range(files):
        lines = some_lines(draw)
        pairs += [(line, other) for line, other in zip(lines, (some_lines(draw) * 4), strict=False)]
    source.write_bytes(b"".join(line + b"\n" for line, _ in pairs))
    target.write_bytes(b"".join(line + b"\n" for _, line in pairs))
    return len(pairs)


def words_of(path: Path, *, text: bool) -> list[int]:
    """Counts the words of each line, by readers that have tests of their own."""
    return [len(text_words(line)) if text else len(line.split()) for line in read_lines(path)]


def check_links(folder: Path, links: Path, *, text: bool) -> None:
    """Checks that there are as many lines as pairs, and no link outside of its pair."""
    sources, targets = (words_of(folder / name, text=text) for name in ("source", "target"))
    written = links.read_bytes()
    assert written.endswith(b"\n")
    lines = written.decode("ascii").split("\n")[:-1]
    assert len(lines) == len(sources) == len(targets)
    for line, source_words, target_words in zip(lines, sources, targets, strict=True):
        for link in line.split():
            source, target = map(int, link.split("-"))
            assert 0 <= source < source_words
            assert 0 <= target < target_words


def run(*arguments: object) -> int:
    """Runs the command line and returns its exit code."""
    with pytest.raises(SystemExit) as exit_:
        main([str(each) for each in arguments])
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("any")
    make_run(folder / "run")
    return folder


def align_all(folder: Path) -> None:
    """Every way that `align` has, each with a line for each pair."""
    model = folder / "run"
    pair = ("--source", folder / "source", "--target", folder / "target", "--quiet")
    out = folder / "out"
    computing = ("--device", "cpu", "--precision", "float32")
    assert run("align", model, *pair, *computing, "--output", out) == 0
    check_links(folder, out, text=False)
    assert run("links", out, *pair, "--format", "tsv", "--output", folder / "table") == 0
    assert run("links", folder / "table", *pair, "--output", folder / "again") == 0
    assert (folder / "again").read_bytes() == out.read_bytes()
    assert run("align", model, *pair, *computing, "--text", "--output", out) == 0
    check_links(folder, out, text=True)
    for kind in ("jsonl", "npz", "html"):
        assert run("align", model, *pair, *computing, "--format", kind, "--output", folder / kind) == 0
        if kind != "html":
            assert run("links", folder / kind, *pair, "--output", folder / "again") == 0
            check_links(folder, folder / "again", text=False)
    assert run("align", *pair, "--learn", "--output", out) == 0
    check_links(folder, out, text=False)


def score_and_evaluate(folder: Path, lines: int) -> None:
    model, out = folder / "run", folder / "scores"
    computing = ("--device", "cpu", "--precision", "float32", "--quiet")
    pair = ("--source", folder / "source", "--target", folder / "target")
    assert run("score", model, *pair, *computing, "--output", out) == 0
    assert out.read_bytes().count(b"\n") == lines
    assert run("evaluate", "--hypothesis", folder / "source", "--reference", folder / "target", "--quiet") == 0


def test_a_line_for_each_pair_and_links_inside(folder: Path) -> None:
    lines = write_files(folder, random.Random(1), FILES)
    align_all(folder)
    score_and_evaluate(folder, lines)


@pytest.mark.parametrize("seed", range(6))
def test_bytes_that_are_no_text_are_refused_with_their_line(
    folder: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(seed)
    lines = write_files(folder, draw, 5)
    number = draw.randrange(lines)
    side = draw.choice(("source", "target"))
    parts = (folder / side).read_bytes().split(b"\n")
    parts[number] += draw.choice(INVALID)
    (folder / side).write_bytes(b"\n".join(parts))
    pair = ("--source", folder / "source", "--target", folder / "target", "--quiet")
    for command in (("align", folder / "run", *pair), ("score", folder / "run", *pair)):
        capsys.readouterr()
        assert run(*command) == 2
        (message,) = capsys.readouterr().err.splitlines()
        assert f"{folder / side}:{number + 1}: not UTF-8" in message


def test_prepare_takes_or_drops_every_line(folder: Path) -> None:
    lines = write_files(folder, random.Random(3), FILES)
    for name in ("source", "target"):  # something to learn from
        more = "".join(f"{pair[name == 'target']}\n" for pair in SENTENCES * 5).encode()
        (folder / name).write_bytes(more + (folder / name).read_bytes())
    config = folder / "prepare.yaml"
    config.write_text(
        f"run: {folder / 'prepared-run'}\n"
        f"data:\n  train: {{source: {folder / 'source'}, target: {folder / 'target'}}}\n"
        "  subwords: {kind: char, size: 1000, byte_fallback: true}\n"
        "training: {stopping: {updates: 1}}\n",
        encoding="utf-8",
    )
    assert run("prepare", config, "--quiet") == 0
    report = (folder / "prepared-run" / "prepared" / "report.json").read_text(encoding="utf-8")
    (corpus,) = json.loads(report)["corpora"]
    dropped = sum(each["pairs"] for each in corpus["dropped"].values())
    assert corpus["kept"] + dropped == lines + 5 * len(SENTENCES)


@pytest.mark.slow
def test_fifty_thousand_files(folder: Path) -> None:
    left, draw = int(os.environ.get("FUZZ_FILES", "50000")), random.Random(7)
    while left > 0:
        files = min(left, 2500)
        left -= files
        lines = write_files(folder, draw, files)
        align_all(folder)
        score_and_evaluate(folder, lines)
