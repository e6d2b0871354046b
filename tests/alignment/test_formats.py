from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.error_rate import Gold, score
from nmt.alignment.formats import (
    Alignment,
    LineWriter,
    NpzWriter,
    gold_line,
    jsonl_line,
    parse_gold,
    parse_pharaoh,
    pharaoh_line,
    read_gold,
    read_jsonl,
    read_npz,
)
from nmt.core.errors import InputError

WORDS = [
    Alignment(("Er", "schläft"), ("He", "sleeps", "."), ((0, 0), (1, 1)), np.array([[0.75, 0.25], [0, 1], [0.5, 0.5]])),
    Alignment((), (), (), np.zeros((0, 0))),
    Alignment((), ("alone",), (), np.zeros((1, 0))),
    Alignment(("allein", "hier"), (), (), np.zeros((0, 2))),
    Alignment(("😀", 'q"\\', "nul\x00", "a\u2028b", "\x85"), ("日本",), ((4, 0),), np.full((1, 5), 0.2)),
]
PIECES = [
    Alignment(
        source_words=("Hallo",),
        target_words=("Hello",),
        links=((0, 0),),
        weights_TS=np.array([[0.5, 0.25, 0.25], [0, 0, 1]]),
        level="subword",
        source_tokens=("▁Hal", "lo", "</s>"),
        target_tokens=("▁Hello", "</s>"),
    ),
    Alignment((), (), (), np.ones((1, 1)), "subword", ("</s>",), ("</s>",)),
]


def same(left: Alignment, right: Alignment) -> None:
    for name in ("source_words", "target_words", "links", "level", "source_tokens", "target_tokens"):
        assert getattr(left, name) == getattr(right, name)
    assert left.weights_TS.shape == right.weights_TS.shape
    np.testing.assert_allclose(left.weights_TS, right.weights_TS, atol=1e-6)


# ------------------------------------------------------------------------------------------------- Pharaoh and gold


def test_pharaoh_lines_are_sorted_source_first_and_come_back() -> None:
    assert pharaoh_line([(10, 2), (0, 0), (2, 1), (0, 0)]) == "0-0 2-1 10-2"
    assert parse_pharaoh(" 2-1\t0-0  10-2\r") == ((0, 0), (2, 1), (10, 2))
    assert (pharaoh_line([]), parse_pharaoh("")) == ("", ())


def test_pharaoh_writes_one_line_per_pair(tmp_path: Path) -> None:
    path = tmp_path / "out.align"
    with path.open("w", newline="") as stream, LineWriter(stream, lambda pair: pharaoh_line(pair.links)) as writer:
        for alignment in WORDS:
            writer.write(alignment)
    assert path.read_bytes() == b"0-0 1-1\n\n\n\n4-0\n"


def test_gold_lines() -> None:
    gold = parse_gold("1p2 0-0 1-2 3p1")
    assert gold == Gold(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2), (3, 1)}))
    assert gold_line(gold) == "0-0 1-2 3p1"


def test_a_compressed_gold_file(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_bytes(gzip.compress(b"0-0 1p1\n"))
    assert [gold_line(gold) for gold in read_gold(path, [(2, 2)])] == ["0-0 1p1"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="gold: the compressed file is damaged or cut short"):
        list(read_gold(path, [(2, 2)]))


def test_a_gold_file_with_bom_crlf_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_bytes(b"\xef\xbb\xbf0-0 1p1\r\n\r\n0-1")
    assert [gold_line(gold) for gold in read_gold(path, [(2, 2), (0, 3), (1, 2)])] == ["0-0 1p1", "", "0-1"]


@pytest.mark.parametrize("token", ["-1-2", "1--2", "3", "3-", "3:4", "a-b", "1.0-2", "3P4", "²-1", "0-0,1-1"])
def test_a_malformed_token_is_named_with_file_and_line(token: str, tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text(f"0-0\n0-0 {token}\n")
    with pytest.raises(InputError) as error:
        read_gold(path)
    assert str(error.value) == (
        f"{path}:2: {token!r} is not a link: write 3-4 (sure) or 3p4 (possible), source index first, counted from 0"
    )


@pytest.mark.parametrize(("token", "side", "index", "length"), [("3-0", "source", 3, 3), ("2p2", "target", 2, 2)])
def test_an_index_out_of_range_is_named(token: str, side: str, index: int, length: int, tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text(f"2-1 {token}\n")
    with pytest.raises(InputError) as error:
        read_gold(path, [(3, 2)])
    assert str(error.value) == (
        f"{path}:1: link {token!r} points at {side} word {index}, but that sentence has {length} words: "
        "write the source index first, and count from 0; if the file counts from 1, say so (such as --gold-base 1)"
    )


def test_a_file_that_counts_from_1_is_noticed_where_no_link_is_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gold"
    path.write_text("1-1 2-2\n" * 10)
    read_gold(path, [(4, 4)] * 10)
    assert "no link is at word 0; if the file counts from 1, say so with --gold-base 1" in capsys.readouterr().err
    path.write_text("1-1 2-2\n" * 9 + "0-1\n")
    read_gold(path, [(4, 4)] * 10)
    assert capsys.readouterr().err == ""


def test_gold_of_the_first_pairs_judges_these_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gold"
    path.write_text("0-0 1p1\n\n")
    found = read_gold(path, [(2, 2)] * 5)
    assert "judges the first 2 of 5 sentence pairs" in capsys.readouterr().err
    links = [(0, 0), (1, 0)]
    assert score([links] * 5, found) == score([links] * 2, found[:2]) == score([links] * 2, read_gold(path))
    assert score([links] * 5, [gold.turned() for gold in found]).sentences == 2


def test_other_faults_of_gold_files(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_bytes(b"0-0\n0-0 \xff\n")
    with pytest.raises(InputError, match=r"gold:2: not valid UTF-8"):
        read_gold(path)
    path.write_text("0-0\n" * 4)
    with pytest.raises(InputError, match=r"gold: 4 lines for 3 sentence pairs"):
        read_gold(path, [(1, 1)] * 3)
    with pytest.raises(InputError, match=r"missing: no such file"):
        read_gold(tmp_path / "missing")
    with pytest.raises(InputError, match=r"links:1: 1p1 is a possible link"):
        parse_pharaoh("0-0 1p1", place="links:1")


# ------------------------------------------------------------------------------------------------------- JSON lines


@pytest.mark.parametrize("alignments", [WORDS, PIECES], ids=["word", "subword"])
def test_jsonl_comes_back(alignments: list[Alignment], tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with path.open("w", newline="", encoding="utf-8") as stream, LineWriter(stream, jsonl_line) as writer:
        for alignment in alignments:
            writer.write(alignment)
    back = list(read_jsonl(path))
    assert len(back) == len(alignments)
    for left, right in zip(back, alignments, strict=True):
        same(left, right)
    # However a reader splits lines, it finds as many.
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(alignments)


def test_jsonl_keys_and_rounding() -> None:
    weights_TS = np.array([[1 / 3, 2 / 3]], dtype=np.float32)
    assert json.loads(jsonl_line(Alignment(("a", "b"), ("c",), ((1, 0),), weights_TS))) == {
        "source_words": ["a", "b"],
        "target_words": ["c"],
        "links": [[1, 0]],
        "level": "word",
        "source_tokens": ["a", "b"],
        "target_tokens": ["c"],
        "weights": [[0.333333, 0.666667]],
        "scores": [0.666667],
        "sure": [[1, 0]],
        "source_spans": None,
        "target_spans": None,
    }


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"weights": 1}', "nonsense"])
def test_a_foreign_jsonl_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=r"out.jsonl:1: not an alignment that nmt align --format jsonl wrote"):
        list(read_jsonl(path))


# ------------------------------------------------------------------------------------------------------ npz archives


def write_npz(path: Path, alignments: Iterable[Alignment]) -> None:
    with NpzWriter(path) as writer:
        for alignment in alignments:
            writer.write(alignment)


@pytest.mark.parametrize("alignments", [WORDS, PIECES, []], ids=["word", "subword", "none"])
def test_npz_comes_back(alignments: list[Alignment], tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    write_npz(path, alignments)
    assert [each.name for each in tmp_path.iterdir()] == ["out.npz"]
    back = list(read_npz(path))
    assert len(back) == len(alignments)
    for left, right in zip(back, alignments, strict=True):
        same(left, right)


def test_npz_is_read_with_numpy_alone_as_the_documentation_shows(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    write_npz(path, WORDS)
    code = """
import sys
import numpy as np
file = np.load(sys.argv[1])
ends = file["shapes"].prod(axis=1).cumsum()
matrices = [part.reshape(shape) for part, shape in zip(np.split(file["weights"], ends[:-1]), file["shapes"])]
links = np.split(file["links"], file["link_counts"].cumsum()[:-1])
words = file["source_words"].tobytes().decode().split("\\n")[:-1]
print([m.shape for m in matrices], matrices[0].tolist(), [l.tolist() for l in links], len(words), file["level"])
"""
    printed = subprocess.check_output([sys.executable, "-c", code, str(path)], text=True)
    assert printed.strip() == (
        "[(3, 2), (0, 0), (1, 0), (0, 2), (1, 5)] [[0.75, 0.25], [0.0, 1.0], [0.5, 0.5]] "
        "[[[0, 0], [1, 1]], [], [], [], [[4, 0]]] 9 word"
    )


def test_npz_is_deterministic_and_replaces_only_when_complete(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.npz", "b.npz")]
    for path in paths:
        write_npz(path, WORDS[:1])

    def interrupted() -> Iterator[Alignment]:
        yield WORDS[4]
        raise KeyboardInterrupt

    before = paths[0].read_bytes()
    assert before == paths[1].read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_npz(paths[0], interrupted())
    assert paths[0].read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_npz_memory_does_not_grow_with_the_number_of_pairs(tmp_path: Path) -> None:
    words = tuple(f"word{number}" for number in range(30))
    alignment = Alignment(words, words, ((0, 0),), np.full((30, 30), 1 / 30))
    tracemalloc.start()
    write_npz(tmp_path / "out.npz", itertools.repeat(alignment, 2500))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.getinfo("weights.npy").file_size > 9_000_000
    assert peak < 4_000_000


def test_npz_refuses_what_it_could_not_give_back(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="levels"):
        write_npz(tmp_path / "out.npz", [WORDS[0], PIECES[0]])
    with pytest.raises(ValueError, match="newline"):
        write_npz(tmp_path / "out.npz", [Alignment(("a\nb",), (), (), np.zeros((0, 1)))])
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


def test_an_alignment_checks_itself() -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 2\) for 1 x 1 tokens"):
        Alignment(("a",), ("b",), (), np.zeros((1, 2)))
    for link in ((1, 0), (0, 1), (-1, 0)):
        with pytest.raises(ValueError, match="lies outside"):
            Alignment(("a",), ("b",), (link,), np.ones((1, 1)))
    with pytest.raises(ValueError, match="2 scores for 1 links"):
        Alignment(("a",), ("b",), ((0, 0),), np.ones((1, 1)), scores=(0.5, 0.5))
    with pytest.raises(ValueError, match="0 places for 1 words"):
        Alignment(("a",), ("b",), (), np.ones((1, 1)), target_spans=())


def test_importing_is_light() -> None:
    code = (
        "import sys, nmt.alignment.words, nmt.alignment.extract, nmt.alignment.formats, nmt.extras.pages.formats, "
        "nmt.alignment.symmetrize, nmt.alignment.error_rate; "
        "print([m for m in ('torch', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
