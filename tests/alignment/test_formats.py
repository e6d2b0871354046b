from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.alignment import formats
from nmt.alignment.error_rate import Gold, score
from nmt.alignment.formats import Alignment, LineWriter, NpzWriter, read_gold, read_jsonl, read_npz
from nmt.core.errors import InputError

WORDS = [
    Alignment(("Er", "schläft"), ("He", "sleeps", "."), ((0, 0), (1, 1)), np.array([[0.75, 0.25], [0, 1], [0.5, 0.5]])),
    Alignment((), (), (), np.zeros((0, 0))),
    Alignment((), ("alone",), (), np.zeros((1, 0))),
    Alignment(("allein", "hier"), (), (), np.zeros((0, 2))),
    Alignment(("😀", 'q"\\', "nul\x00", "a\u2028b\u2029", "\x85"), ("日本",), ((4, 0),), np.full((1, 5), 0.2)),
]
TOKENS = ("▁Hal", "lo", "</s>"), ("▁Hello", "</s>")
PIECES = [
    Alignment(("Hallo",), ("Hello",), ((0, 0),), np.array([[0.5, 0.25, 0.25], [0, 0, 1]]), "subword", *TOKENS),
    Alignment((), (), (), np.ones((1, 1)), "subword", ("</s>",), ("</s>",)),
]


def assert_same(found: Iterable[Alignment], expected: Iterable[Alignment]) -> None:
    for left, right in zip(found, expected, strict=True):
        for name in ("source_words", "target_words", "links", "level", "source_tokens", "target_tokens"):
            assert getattr(left, name) == getattr(right, name)
        assert left.weights_TS.shape == right.weights_TS.shape
        np.testing.assert_allclose(left.weights_TS, right.weights_TS, atol=1e-6)


def write_lines(path: Path, alignments: Iterable[Alignment], line: Callable[[Alignment], str]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream, LineWriter(stream, line) as writer:
        for alignment in alignments:
            writer.write(alignment)


def write_npz(path: Path, alignments: Iterable[Alignment]) -> None:
    with NpzWriter(path) as writer:
        for alignment in alignments:
            writer.write(alignment)


# ------------------------------------------------------------------------------------------------- Pharaoh and gold


def test_pharaoh_and_gold_lines(tmp_path: Path) -> None:
    assert formats.pharaoh_line([(10, 2), (0, 0), (2, 1), (0, 0)]) == "0-0 2-1 10-2"
    assert formats.parse_pharaoh(" 2-1\t0-0  10-2\r") == ((0, 0), (2, 1), (10, 2))
    assert (formats.pharaoh_line([]), formats.parse_pharaoh("")) == ("", ())
    with pytest.raises(InputError, match=r"links:1: 1p1 is a possible link"):
        formats.parse_pharaoh("0-0 1p1", place="links:1")
    gold = formats.parse_gold("1p2 0-0 1-2 3p1")
    assert gold == Gold(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2), (3, 1)}))
    assert formats.gold_line(gold) == "0-0 1-2 3p1"
    write_lines(tmp_path / "out", WORDS, lambda pair: formats.pharaoh_line(pair.links))
    assert (tmp_path / "out").read_bytes() == b"0-0 1-1\n\n\n\n4-0\n"


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"\xef\xbb\xbf0-0 1p1\r\n\r\n0-1", ["0-0 1p1", "", "0-1"]),
        (gzip.compress(b"0-0 1p1\n\n1-0\n", mtime=0), ["0-0 1p1", "", "1-0"]),
    ],
    ids=["bom, crlf, blank", "compressed"],
)
def test_gold_files(data: bytes, lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "gold").write_bytes(data)
    assert [formats.gold_line(gold) for gold in read_gold(tmp_path / "gold", [(2, 2), (0, 3), (2, 2)])] == lines


OUTSIDE = "write the source index first, and count from 0; if the file counts from 1, say so (such as --gold-base 1)"
NO_LINK = "is not a link: write 3-4 (sure) or 3p4 (possible), source first, from 0 on"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *(
            (f"0-0\n0-0 {token}\n".encode(), f":2: {token!r} {NO_LINK}")
            for token in ["-1-2", "1--2", "3", "3-", "3:4", "a-b", "1.0-2", "3P4", "²-1", "0-0,1-1"]
        ),
        (b"2-1 3-0\n", f":1: link '3-0' points at source word 3, but that sentence has 3 words: {OUTSIDE}"),
        (b"2-1 2p2\n", f":1: link '2p2' points at target word 2, but that sentence has 2 words: {OUTSIDE}"),
        (b"0-0\n0-0 \xff\n", ":2: not valid UTF-8"),
        (b"0-0\n" * 4, ": 4 lines for 3 sentence pairs"),
        (gzip.compress(b"0-0 1p1\n", mtime=0)[:-9], ": the compressed file is damaged or cut short"),
        (None, ": no such file"),
    ],
)
def test_faults_of_gold_files(data: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "gold"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError) as error:
        read_gold(path, [(3, 2)] * 3)
    assert str(error.value).startswith(f"{path}{message}")


def test_a_file_that_counts_from_1_is_noticed_where_no_link_is_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = (
        f"warning: {tmp_path / 'gold'}: no link is at word 0; if the file counts from 1, say so with --gold-base 1\n"
    )
    for last, said in (("1-1", warning), ("0-1", "")):
        (tmp_path / "gold").write_text("1-1 2-2\n" * 9 + f"{last}\n")
        read_gold(tmp_path / "gold", [(4, 4)] * 10)
        assert capsys.readouterr().err == said


def test_gold_of_the_first_pairs_judges_these_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gold"
    path.write_text("0-0 1p1\n\n")
    found = read_gold(path, [(2, 2)] * 5)
    assert "judges the first 2 of 5 sentence pairs" in capsys.readouterr().err
    links = [(0, 0), (1, 0)]
    assert score([links] * 5, found) == score([links] * 2, found[:2]) == score([links] * 2, read_gold(path))
    assert score([links] * 5, [gold.turned() for gold in found]).sentences == 2


# ------------------------------------------------------------------------------------------------------- JSON lines


@pytest.mark.parametrize("alignments", [WORDS, PIECES, []], ids=["word", "subword", "none"])
def test_jsonl_and_npz_come_back(alignments: list[Alignment], tmp_path: Path) -> None:
    lines, archive = tmp_path / "out.jsonl", tmp_path / "out.npz"
    write_lines(lines, alignments, formats.jsonl_line)
    write_npz(archive, alignments)
    assert {*tmp_path.iterdir()} == {lines, archive}
    assert_same(read_jsonl(lines), alignments)
    assert_same(read_npz(archive), alignments)
    # However a reader splits lines, it finds as many.
    assert len(lines.read_text(encoding="utf-8").splitlines()) == len(alignments)


def test_jsonl_keys_and_rounding() -> None:
    weights_TS = np.array([[1 / 3, 2 / 3]], dtype=np.float32)
    assert json.loads(formats.jsonl_line(Alignment(("a", "b"), ("c",), ((1, 0),), weights_TS))) == {
        "source_words": ["a", "b"], "target_words": ["c"], "links": [[1, 0]], "level": "word",
        "source_tokens": ["a", "b"], "target_tokens": ["c"], "weights": [[0.333333, 0.666667]],
        "scores": [0.666667], "sure": [[1, 0]], "source_spans": None, "target_spans": None,
    }  # fmt: skip


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"weights": 1}', "nonsense"])
def test_a_foreign_jsonl_line_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r"out.jsonl:1: not an alignment that nmt align --format jsonl wrote"):
        list(read_jsonl(tmp_path / "out.jsonl"))


# ------------------------------------------------------------------------------------------------------ npz archives


def test_npz_is_read_with_numpy_alone_as_the_documentation_shows(tmp_path: Path) -> None:
    write_npz(tmp_path / "out.npz", WORDS)
    file = np.load(tmp_path / "out.npz")
    ends = file["shapes"].prod(axis=1).cumsum()
    parts = zip(np.split(file["weights"], ends[:-1]), file["shapes"], strict=True)
    links = np.split(file["links"], file["link_counts"].cumsum()[:-1])
    for part, shape, expected, alignment in zip(*zip(*parts, strict=True), links, WORDS, strict=True):
        np.testing.assert_allclose(part.reshape(shape), alignment.weights_TS)
        assert expected.tolist() == list(map(list, alignment.links))
    assert len(file["source_words"].tobytes().decode().split("\n")[:-1]) == 9
    assert file["level"] == "word"


def test_npz_is_deterministic_and_replaces_only_when_complete(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Alignment]:
        yield WORDS[4]
        raise KeyboardInterrupt

    one, other = tmp_path / "a.npz", tmp_path / "b.npz"
    for path in (one, other):
        write_npz(path, WORDS[:1])
    with pytest.raises(KeyboardInterrupt):
        write_npz(one, interrupted())
    assert one.read_bytes() == other.read_bytes()
    assert sorted(tmp_path.iterdir()) == [one, other]


def test_npz_memory_does_not_grow_with_the_number_of_pairs(tmp_path: Path) -> None:
    words = tuple(f"word{number}" for number in range(30))
    alignment = Alignment(words, words, ((0, 0),), np.full((30, 30), 1 / 30))
    tracemalloc.start()
    write_npz(tmp_path / "out.npz", itertools.repeat(alignment, 1500))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.getinfo("weights.npy").file_size > 5_300_000
    assert peak < 3_000_000


def test_npz_refuses_what_it_could_not_give_back(tmp_path: Path) -> None:
    two_lines = Alignment(("a\nb",), (), (), np.zeros((0, 1)))
    for alignments, message in (([WORDS[0], PIECES[0]], "levels"), ([two_lines], "newline")):
        with pytest.raises(ValueError, match=message):
            write_npz(tmp_path / "out.npz", alignments)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"nowhere/out.npz: cannot write there: No such file or directory"):
        NpzWriter(tmp_path / "nowhere" / "out.npz")


def test_npz_reader_names_a_foreign_file_and_never_unpickles(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.npz: no such file"):
        list(read_npz(tmp_path / "missing.npz"))
    path = tmp_path / "out.npz"
    write_npz(path, WORDS)
    arrays = dict(np.load(path))
    for write in (
        lambda: np.savez(path, **{**arrays, "links": arrays["links"][1:]}),
        lambda: np.savez(path, **{**arrays, "source_words": arrays["source_words"][:3]}),
        lambda: path.write_text("no archive"),
        lambda: path.write_bytes(b""),
        lambda: np.savez(path, weights=np.zeros(3)),
        lambda: np.savez(path, weights=np.array([{}], dtype=object), allow_pickle=True),
    ):
        write()
        with pytest.raises(InputError, match=r"out.npz: not an archive that nmt align --format npz wrote"):
            list(read_npz(path))


# ----------------------------------------------------------------------------------------------------------- records


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights_TS": np.zeros((1, 2))}, r"shape \(1, 2\) for 1 x 1 tokens"),
        *(({"links": (link,)}, "lies outside") for link in ((1, 0), (0, 1), (-1, 0))),
        ({"links": ((0, 0),), "scores": (0.5, 0.5)}, "2 scores for 1 links"),
        ({"target_spans": ()}, "0 places for 1 words"),
    ],
)
def test_an_alignment_checks_itself(changes: dict[str, Any], message: str) -> None:
    fields = {"source_words": ("a",), "target_words": ("b",), "links": (), "weights_TS": np.ones((1, 1)), **changes}
    with pytest.raises(ValueError, match=message):
        Alignment(**fields)


def test_importing_is_light() -> None:
    modules = "alignment.words, nmt.alignment.extract, nmt.alignment.link_files, nmt.extras.pages.formats"
    code = f"import sys, nmt.{modules}; print([m for m in ('torch', 'matplotlib') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
