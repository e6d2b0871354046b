"""`nmt aligner --output`, and `nmt align --aligner` and `--learn`. The command line runs in this process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.formats import read_jsonl, read_npz
from nmt.core.errors import InputError
from nmt.extras.aligner import align as learning
from nmt.extras.aligner.align import TextAligner
from nmt.extras.aligner.aligner import IndexedSentences, WordAligner, learn_aligner, load_aligner, save_aligner
from tests.extras.aligner.compounds import LINES, ODD
from tests.workflows.runs import Command

FILES = ["x.de", "x.en"]


def test_a_file_is_what_python_learns(nmt: Command, text: Path, tmp_path: Path) -> None:
    options = ("-s", text / "x.de", "-t", text / "x.en", "-o", "x.aligner")
    done = nmt("aligner", *options)
    assert (done.code, done.stdout) == (0, "")
    few = "only 80 different pairs, so many links will be wrong; give it some thousand pairs"
    warning, use = f"warning: the aligner has learnt from {few}", "use it with nmt align --aligner x.aligner"
    assert done.stderr.splitlines() == ["aligner  learning from 80 pairs", warning, f"wrote x.aligner; {use}"]
    lines = [IndexedSentences(line.split() for line in (text / name).read_text().splitlines()) for name in FILES]
    save_aligner(learn_aligner(*lines), tmp_path / "y")
    assert (tmp_path / "x.aligner").read_bytes() == (tmp_path / "y").read_bytes()
    assert nmt("aligner", *options, "--quiet").stderr == done.stderr.splitlines(True)[1]


def test_continue_learns_on_from_a_file(nmt: Command, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning from two halves of a text in turn equals learning from both as two blocks; words that only the second
    half has are known."""
    for name in FILES:
        lines = [*(text / name).read_text().splitlines(keepends=True)[:79], f"neu{name[2:]}\n"]
        for file, part in ((f"1{name}", lines[:40]), (f"2{name}", lines[40:]), (name, lines), (name[2:], lines[79:])):
            Path(file).write_text("".join(part))
    assert nmt("aligner", "-s", "1x.de", "-t", "1x.en", "-o", "half").code == 0
    assert nmt("aligner", "--continue", "half", "-s", "2x.de", "-t", "2x.en", "-o", "both").code == 0
    monkeypatch.setattr(learning, "BLOCK_PAIRS", 40)
    assert nmt("aligner", "-s", "x.de", "-t", "x.en", "-o", "blocks").code == 0
    assert Path("both").read_bytes() == Path("blocks").read_bytes()
    assert weights(nmt("align", "--aligner", "both", "-s", "de", "-t", "en", "--format", "jsonl").stdout)[0, 0] > 0.5


def weights(line: str) -> np.ndarray:
    """The weights of a line of jsonl, as long as there are any."""
    return np.array(json.loads(line)["weights"])


def test_aligner_is_python(nmt: Command, folder: Path, given: list[str]) -> None:
    by_file = nmt("align", "--aligner", folder / "x.aligner", *given, "--gold", folder / "gold")
    learnt = nmt("align", "--learn", *given, "--gold", folder / "gold")
    for done in (by_file, learnt):
        assert done.code == 0
        assert float(done.stderr.splitlines()[-1].split()[1]) < 5  # AER
    lines = by_file.stdout.split("\n")
    assert lines[-len(ODD) - 1 : -3] == ["", "0-0", ""]
    sources, targets = map(list, zip(*LINES, strict=True))
    aligner = TextAligner(load_aligner(folder / "x.aligner"))
    expected = aligner.align(sources, targets)
    assert lines == [*(" ".join(f"{s}-{t}" for s, t in each.links) for each in expected), ""]
    with pytest.raises(InputError, match="give one target for each source"):
        aligner.align(sources, targets[1:])


@pytest.mark.parametrize("text", [[], ["--text"]], ids=["tokens", "text"])
def test_pairs_learnt_from_are_aligned_as_by_learn(nmt: Command, tmp_path: Path, text: list[str]) -> None:
    """Byte for byte; and up to rounding with other pairs among them that the aligner has not learnt from."""
    for name, side in zip(FILES, zip(*LINES, strict=True), strict=True):
        Path(name).write_text("".join(f"{line}.\n" for line in side), encoding="utf-8", newline="\n")
        more = "".join(f"{line}.\nblauer neuer\n" for line in side)
        Path(f"more.{name}").write_text(more, encoding="utf-8", newline="\n")
    pairs, more_pairs = ("-s", "x.de", "-t", "x.en"), ("-s", "more.x.de", "-t", "more.x.en")

    def lines(*options: str) -> list[str]:
        return nmt("align", *options, "--format", "jsonl", *text).stdout.splitlines()

    learnt = lines("--learn", *pairs)
    assert nmt("aligner", *pairs, "-o", "aligner").code == 0
    assert lines("--aligner", "aligner", *pairs) == learnt
    mixed = lines("--aligner", "aligner", *more_pairs)
    save_aligner(WordAligner(load_aligner(tmp_path / "aligner").members), tmp_path / "old")  # does not know its pairs
    by_old = lines("--aligner", "old", *more_pairs)
    assert mixed[1::2] == by_old[1::2]
    for found, is_alike in ((mixed, True), (by_old, False)):
        both = zip(map(weights, found[::2]), map(weights, learnt), strict=True)
        assert all(np.allclose(*pair, atol=2e-6) for pair in both) == is_alike


@pytest.mark.parametrize("command", [["align", "--learn"], ["aligner", "-o", "out"]], ids=["learn", "aligner"])
def test_few_pairs_are_warned_of_once(nmt: Command, command: list[str]) -> None:
    # Blank sides teach nothing, and a pair again teaches little.
    for lines, different in ((1, 1), (2, 2), (600, 450), (500, 500)):
        text = "".join(f"rot {number % different}\n" for number in range(lines)) + "\n" * 600
        for name in ("s", "t"):
            Path(name).write_text(text)
        warnings = [line for line in nmt(*command, "-s", "s", "-t", "t").stderr.splitlines() if "warning" in line]
        assert len(warnings) == (different < 500)
        assert all(f"learnt from only {different} different pairs" in each for each in warnings)


@pytest.mark.parametrize("text", [False, True], ids=["tokens", "text"])
def test_every_format(nmt: Command, folder: Path, given: list[str], text: bool) -> None:
    arguments = ["align", "--aligner", folder / "x.aligner", *given, *(["--text"] if text else [])]
    for format_ in ("pharaoh", "gold", "tsv", "jsonl", "npz", "html"):
        done = nmt(*arguments, "--format", format_, "-o", format_)
        assert (done.code, done.stdout) == (0, ""), done.stderr
    found = list(read_jsonl(Path("jsonl")))
    links = "".join(" ".join(f"{s}-{t}" for s, t in each.links) + "\n" for each in found)
    assert Path("pharaoh").read_text() == Path("gold").read_text() == links
    assert [each.links for each in read_npz(Path("npz"))] == [each.links for each in found]
    rows = [row.split("\t") for row in Path("tsv").read_text("utf-8").split("\n")[1:-1]]
    assert sum(bool(row[1]) for row in rows) == sum(len(each.links) for each in found)
    for (source, _), each in zip(LINES, found, strict=True):
        assert each.source_spans is not None
        assert [source[begin:end] for begin, end in each.source_spans] == list(each.source_words)
        assert np.isfinite(each.weights_TS).all()
        assert each.weights_TS.max(initial=0) <= 1.001


def test_a_higher_probability_gives_some_of_the_links(nmt: Command, folder: Path, given: list[str]) -> None:
    found = []
    for least in ("0.1", "0.5", "0.95"):
        options = ("--min-probability", least, "--format", "jsonl", "-o", "x")
        assert nmt("align", "--aligner", folder / "x.aligner", *given, *options).code == 0
        alignments = list(read_jsonl(Path("x")))
        assert all(each.weights_TS[t, s] >= float(least) - 1e-6 for each in alignments for s, t in each.links)
        found.append(sum(len(each.links) for each in alignments))
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] > 0


def test_pictures_and_reports(nmt: Command, folder: Path, given: list[str]) -> None:
    Path("s").write_text("roter Hund\n\n")
    Path("t").write_text("red dog\n\n")
    options = ("-s", "s", "-t", "t", "--format", "svg", "-o", "svg")
    assert nmt("align", "--aligner", folder / "x.aligner", *options).code == 0
    assert {each.name for each in Path("svg").iterdir()} == {"000001.svg", "000002.svg"}
    done = nmt("align", "--aligner", folder / "x.aligner", *given, "--lexicon", "lexicon")
    assert (done.code, done.stdout) == (0, "")
    assert "roter\tred" in Path("lexicon").read_text()


def test_two_pairs_and_a_line_that_is_too_long(nmt: Command, folder: Path) -> None:
    Path("two").write_text("a\nb\n")
    Path("gold").write_text("0-0\n9-9\n")
    assert nmt("align", "--learn", "-s", "two", "-t", "two", "--gold", "gold").error.startswith("gold:2: link '9-9'")
    alone = nmt("align", "--learn", "-s", "two", "-t", "two")
    assert (alone.code, alone.stdout) == (0, "0-0\n0-0\n")
    Path("long").write_text("roter\n" + "Hund " * 1001 + "\n" + "Hund " * 300 + "\n")
    done = nmt("align", "--aligner", folder / "x.aligner", "-s", "long", "-t", "long")
    said = "line 2: left blank: more than 1000 words and signs on a side are too many to align; split it"
    assert f"warning: {said}\n" in done.stderr
    assert (done.code, done.stdout.split("\n")[:2], done.stdout.count("\n")) == (0, ["0-0", ""], 3)
