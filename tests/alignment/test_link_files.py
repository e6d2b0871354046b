"""Links in files of every format, written and read."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.alignment import formats
from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment, AlignmentWriter, LineWriter, NpzWriter
from nmt.alignment.link_files import TsvWriter, read_links
from nmt.core.errors import InputError

FORMATS = ["pharaoh", "gold", "tsv", "jsonl", "npz"]
COLUMNS = "pair source target source_word target_word score kind source_begin source_end target_begin target_end"
HEADER = COLUMNS.replace(" ", "\t") + "\n"


@st.composite
def alignments(draw: st.DrawFn) -> Alignment:
    words = st.lists(st.sampled_from(['"', "a", "ß", "{", "0-0", "pair", "x,y", "\u200b"]), max_size=4)
    source, target = tuple(draw(words)), tuple(draw(words))
    cells = [(s, t) for s in range(len(source)) for t in range(len(target))]
    links = tuple(draw(st.lists(st.sampled_from(cells), unique=True))) if cells else ()
    sure = frozenset(link for link in links if draw(st.booleans())) if draw(st.booleans()) else None
    weights = np.array(draw(st.lists(st.integers(0, 8), min_size=len(cells), max_size=len(cells)))) / 8
    return Alignment(source, target, links, weights.reshape(len(target), len(source)), sure=sure)


def write(path: Path, format: str, pairs: Sequence[Alignment], base: int = 0) -> None:
    with ExitStack() as stack:
        stream = stack.enter_context(path.open("w", encoding="utf-8", newline=""))
        writers: dict[str, Callable[[], AlignmentWriter]] = {
            "pharaoh": lambda: LineWriter(stream, lambda pair: formats.pharaoh_line(pair.links, base)),
            "gold": lambda: LineWriter(stream, lambda pair: formats.gold_line(pair.as_gold(), base)),
            "tsv": lambda: TsvWriter(stream, base),
            "jsonl": lambda: LineWriter(stream, formats.jsonl_line),
            "npz": lambda: NpzWriter(path),
        }
        writer = stack.enter_context(writers[format]())
        for each in pairs:
            writer.write(each)


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=30)
@given(pairs=st.lists(alignments(), max_size=4), base=st.integers(0, 1))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, format: str, pairs: list[Alignment], base: int
) -> None:
    path = tmp_path_factory.mktemp("links") / "no-ending"
    counts_from_0 = format in ("jsonl", "npz")
    write(path, format, pairs, base)
    found = list(read_links(path, base=None if counts_from_0 else base))
    assert [each.links for each in found] == [tuple(sorted(each.links)) for each in pairs]
    for each, pair in zip(found, pairs, strict=True):
        if format in ("gold", "tsv", "jsonl"):
            assert each.gold.sure == (set(pair.links) if pair.sure is None else pair.sure)
        if format in ("tsv", "jsonl", "npz"):
            cells = {(s, t): pair.weights_TS[t, s] for s, t in pair.links}
            assert each.scores == pytest.approx(cells, abs=1e-6)
        if format == "tsv":
            assert each.words == {(s, t): (pair.source_words[s], pair.target_words[t]) for s, t in pair.links}
        turned = each.turned()
        assert turned.links == tuple(sorted((t, s) for s, t in each.links))
        assert turned.turned().links == each.links
        assert turned.turned().scores == each.scores


def test_a_table() -> None:
    stream = io.StringIO()
    writer = TsvWriter(stream, 1)
    weights = np.array([[0.25, 0.75], [1, 0]])
    spans = ((0, 2), (3, 7)), ((1, 4), (4, 5))
    writer.write(Alignment(("Er", "geht"), ("yes", '"'), ((1, 0), (0, 1)), weights, "word", (), (), *spans))
    writer.write(Alignment((), ("x",), (), np.zeros((1, 0))))
    writer.write(Alignment(("a",), ("b",), ((0, 0),), np.array([[0.5]]), sure=frozenset()))
    assert stream.getvalue() == HEADER + (
        '1\t1\t2\tEr\t"\t1.000000\tsure\t0\t2\t4\t5\n'
        "1\t2\t1\tgeht\tyes\t0.750000\tsure\t3\t7\t1\t4\n"
        "2\t\t\t\t\t\t\t\t\t\t\n"
        "3\t1\t1\ta\tb\t0.500000\tpossible\t\t\t\t\n"
    )


def test_a_score_between_words_is_kept_beside_a_matrix_of_subwords(tmp_path: Path) -> None:
    alignment = Alignment(("ab",), ("c",), ((0, 0),), np.eye(2), "subword", ("a", "b"), ("c", "</s>"), scores=(0.5,))
    for format in ("jsonl", "tsv", "npz"):
        write(tmp_path / format, format, [alignment])
        (pair,) = read_links(tmp_path / format)
        assert (pair.links, pair.scores) == (((0, 0),), {} if format == "npz" else {(0, 0): 0.5})


def test_an_older_jsonl_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old"
    words = '"source_words": ["a", "b"], "target_words": ["c"], "source_tokens": ["a", "b"], "target_tokens": ["c"]'
    path.write_text(f'{{{words}, "links": [[1, 0]], "level": "word", "weights": [[0.25, 0.75]]}}\n')
    (pair,) = read_links(path)
    assert (pair.links, pair.scores, pair.gold) == (((1, 0),), {(1, 0): 0.75}, Gold(frozenset({(1, 0)})))


def test_pairs_without_a_row_have_no_links(tmp_path: Path) -> None:
    path = tmp_path / "tsv"
    path.touch()
    assert list(read_links(path)) == []
    path.write_text("\ufeff" + HEADER + "2\t0\t0\ta\tb\t\t\t\t\t\t\n4\t0\t1\ta\tb\t\tsure\t\t\t\t\n", newline="\r\n")
    found = list(read_links(path))
    assert [each.links for each in found] == [(), ((0, 0),), (), ((0, 1),)]
    assert [each.place for each in found] == [f"{path}:2", f"{path}:2", f"{path}:3", f"{path}:3"]


def row(*cells: str) -> str:
    return HEADER + "\t".join([*cells, *[""] * (11 - len(cells))]) + "\n"


@pytest.mark.parametrize(
    ("content", "base", "message"),
    [
        ("0-0\n0-0 x\n", 0, ":2: 'x' is not a link: write 3-4 (sure) or 3p4 (possible), source first, from"),
        ("1-1\n0-1\n", 1, ":2: link '0-1' points at word 0, but the file was to count from 1"),
        ("{}\n", 0, ":1: not an alignment that nmt align --format jsonl wrote"),
        ('{"links": []}\n', 1, ": a file of jsonl always counts from 0; do not say that it counts from 1"),
        (HEADER + "1\t0\n", 0, ":2: 2 columns, not the 11 that its header names"),
        (row("x", "0", "0"), 0, ":2: pair 'x' is not a number from 0 up"),
        (row("0", "0", "0"), 0, ":2: pair 0 after pair 0; rows stand in the order of pairs, from 1"),
        (row("1", "0", ""), 0, ":2: target '' is not a number from 0 up"),
        (row("1", "²", "0"), 0, ":2: source '²' is not a number from 0 up"),
        (row("1", "0", "1"), 1, ":2: link '0-1' points at word 0, but the file was to count from 1"),
        (row("1", "0", "0", "a", "b", "high"), 0, ":2: score 'high' is not a number"),
        (row("2", "0", "0") + row("1", "0", "0").removeprefix(HEADER), 0, ":3: pair 1 after pair 2; rows stand in"),
        ("0-0\n\udcff\n", 0, ":2: not valid UTF-8"),
        ("PK\x03\x04", 0, ": not an archive that nmt align --format npz wrote"),
        (None, 0, ": no such file"),
    ],
)
def test_faults_are_named_with_file_and_line(tmp_path: Path, content: str | None, base: int, message: str) -> None:
    path = tmp_path / "links"
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(InputError) as error:
        list(read_links(path, base=base))
    assert str(error.value).startswith(f"{path}{message}")
    assert "\n" not in str(error.value)
