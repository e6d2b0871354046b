from __future__ import annotations

import gzip
import lzma
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nmt.data import corpus as corpus_module
from nmt.data.config import CorpusConfig
from nmt.data.corpus import PairBlock, read_blocks, read_lines
from tests.data.conftest import refusal

WRITERS: dict[str, Callable[[bytes], bytes]] = {"plain": lambda data: data, "gzip": gzip.compress, "xz": lzma.compress}


def pairs_of(blocks: list[PairBlock]) -> list[tuple[str, str]]:
    return [pair for block in blocks for pair in zip(block.sources, block.targets, strict=True)]


def naive_lines(text: str) -> list[str]:
    """The definition, character by character."""
    lines, line = [], ""
    for character in text:
        if character == "\n":
            lines.append(line[:-1] if line.endswith("\r") else line)
            line = ""
        else:
            line += character
    return [*lines, line] if line else lines


NASTY = st.text(st.sampled_from("ab \n\r\t\v\f\0\x1c\x1d\x1e\x85\u2028\u2029\ufeffä€😀"), max_size=40)


@given(text=NASTY, bom=st.booleans(), read_bytes=st.integers(1, 8))
def test_lines_end_at_lf_and_crlf_alone(
    tmp_path_factory: pytest.TempPathFactory, text: str, bom: bool, read_bytes: int
) -> None:
    assume("\n" in text or text.count("\r") < 3)  # an old Mac's, which is refused
    path = tmp_path_factory.getbasetemp() / "text"
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_READ_BYTES", read_bytes + 3)  # the byte order mark is looked for in one piece
        found = list(read_lines(path))
    # A text that itself begins with U+FEFF is one with a byte order mark.
    assert found == naive_lines(text if bom else text.removeprefix("\ufeff"))


@pytest.mark.parametrize("writer", WRITERS)
def test_compression_is_told_by_content(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "name.says.nothing.gz"
    path.write_bytes(WRITERS[writer]("\ufeffä\r\nb\n\nc".encode()))
    assert list(read_lines(path)) == ["ä", "b", "", "c"]


def test_blocks_are_consecutive_in_both_forms(tmp_path: Path) -> None:
    sides = [(f"s{number}" * (number % 7), f"t{number}") for number in range(100)]
    (tmp_path / "s").write_text("".join(f"{source}\n" for source, _ in sides))
    (tmp_path / "t.gz").write_bytes(gzip.compress("\r\n".join(target for _, target in sides).encode()))
    (tmp_path / "tsv.xz").write_bytes(lzma.compress("".join(f"{s}\t{t}\n" for s, t in sides).encode()))
    two = CorpusConfig(source=tmp_path / "s", target=tmp_path / "t.gz")
    one = CorpusConfig(pairs=tmp_path / "tsv.xz")
    for corpus in (two, one):
        blocks = list(read_blocks(corpus, size=7))
        assert pairs_of(blocks) == sides
        assert [block.first_line for block in blocks] == list(range(1, 101, 7))


def failure(corpus: CorpusConfig) -> str:
    return refusal(lambda: list(read_blocks(corpus, size=10)))


@pytest.mark.parametrize("line", [1, 5, 30])
def test_invalid_utf8_names_file_line_and_byte(tmp_path: Path, line: int) -> None:
    lines = [b"gut"] * 40
    lines[line - 1] = b"gr\xfcn"
    (tmp_path / "bad").write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines))
    message = refusal(lambda: list(read_lines(tmp_path / "bad")))
    assert message.startswith(f"{tmp_path / 'bad'}:{line}: not UTF-8: byte 0xfc at byte 3 of the line")


def messy(folder: Path, rows: int, broken: dict[int, bytes]) -> CorpusConfig:
    (folder / "tsv").write_bytes(b"".join(broken.get(row, b"gut\tgood") + b"\n" for row in range(1, rows + 1)))
    return CorpusConfig(pairs=folder / "tsv")


BROKEN = {3: b"none", 7: b"", 50: b"a\tb\tc", 64: b"gr\xfcn\tgreen", 99: b"grue\xfcn\tgreen"}


def test_rows_that_are_no_pairs_are_blank_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = messy(tmp_path, 100, BROKEN)
    blocks = list(read_blocks(corpus, size=30))
    assert pairs_of(blocks) == [("", "") if row in BROKEN else ("gut", "good") for row in range(1, 101)]
    assert [block.first_line + index for block in blocks for index in block.faulty] == list(BROKEN)
    told = "3 without exactly one TAB, 2 not UTF-8 (lines 3, 7, 50, 64, 99); left out"
    assert f"tsv: 5 of 100 rows are no pairs: {told}" in capsys.readouterr().err
    list(read_blocks(corpus))
    assert capsys.readouterr().err == ""  # once is enough


def test_too_many_rows_that_are_no_pairs_are_refused_in_one_line(tmp_path: Path) -> None:
    corpus = messy(tmp_path, 99, BROKEN)
    listed = "3 without exactly one TAB, 2 not UTF-8 (lines 3, 7, 50, 64, 99)"
    message = f"{corpus.name}: 5 of 99 rows are no pairs: {listed}; mend them, in UTF-8 (up to 5% are left out)"
    assert failure(corpus) == message
    message = refusal(lambda: list(read_blocks(messy(tmp_path, 999, BROKEN), faulty="refuse")))
    assert re.search("5 of 999 rows are no pairs.*data.faulty: drop leaves them out", message)
    message = failure(messy(tmp_path, 300, dict.fromkeys(range(301), b"none")))
    assert "110 of 110 rows are no pairs: 110 without exactly one TAB (lines 1, 2," in message
    assert message.endswith("; give lines of source, TAB, target in UTF-8, or a file of lines for each side")


def test_a_line_that_is_not_utf8_takes_its_pair_along(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"some words in a line\n" * 100_000 + b"\xff\nlast\n")
    (tmp_path / "t").write_bytes(b"x\n" * 100_002)
    *_, last = read_blocks(CorpusConfig(source=tmp_path / "s", target=tmp_path / "t"))
    assert (last.sources[-2:], last.targets[-2:]) == (["", "last"], ["", "x"])
    assert [last.first_line + index for index in last.faulty] == [100_001]


@pytest.mark.parametrize("place", [0, 6000, 9700])
def test_shifted_lines_are_refused_or_told(tmp_path: Path, place: int, capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["s" * (5 + number * 7919 % 83) for number in range(10_000)]
    targets = [text.replace("s", "t") + "!" for text in sources]
    sources = [*sources[:place], "one line more", *sources[place:-1]]
    (tmp_path / "s").write_text("\n".join(sources) + "\n")
    (tmp_path / "t").write_text("\n".join(targets) + "\n")
    corpus = CorpusConfig(source=tmp_path / "s", target=tmp_path / "t")
    if place == 9700:  # few
        list(read_blocks(corpus))
        text = capsys.readouterr().err
    else:
        text = refusal(lambda: list(read_blocks(corpus)))
    lines, line = re.search(r"([\d,]+) of 10,000 pairs are shifted; from about line ([\d,]+) on, each", text).groups()
    assert abs(int(line.replace(",", "")) - place) < 600
    assert abs(int(lines.replace(",", "")) - 10_000 + place) < 600
    assert "each source stands 1 line later than its translation: mend the files there, or shuffle the pairs" in text


def test_html_entities_are_replaced_on_request(tmp_path: Path) -> None:
    (tmp_path / "tsv").write_text("A &amp; B&#10;C\t&quot;D&quot; 5 &lt; 7\n")
    assert pairs_of(list(read_blocks(CorpusConfig(pairs=tmp_path / "tsv", unescape=True)))) == [
        ("A & B C", '"D" 5 < 7')
    ]


@pytest.mark.parametrize("writer", ["gzip", "xz"])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_compression_names_the_file(tmp_path: Path, writer: str, damage: str) -> None:
    random.seed(1)
    data = WRITERS[writer]("\n".join(str(random.random()) for _ in range(5000)).encode())
    middle = len(data) // 2
    damaged = data[:middle] if damage == "cut" else data[:middle] + bytes(40) + data[middle + 40 :]
    (tmp_path / "bad.gz").write_bytes(damaged)
    message = failure(CorpusConfig(source=tmp_path / "bad.gz", target=tmp_path / "bad.gz"))
    assert message == f"{tmp_path / 'bad.gz'}: the compressed file is damaged or cut short; fetch it again"


def test_empty_missing_and_irregular_files(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbf")
    assert "empty; a corpus needs at least one pair" in failure(CorpusConfig(pairs=tmp_path / "empty"))
    assert "empty" in failure(CorpusConfig(source=tmp_path / "bom", target=tmp_path / "empty"))
    assert failure(CorpusConfig(pairs=tmp_path / "nowhere")) == f"{tmp_path / 'nowhere'}: no such file"
    assert failure(CorpusConfig(pairs=tmp_path)) == f"{tmp_path}: is a folder; name a file"


def test_a_file_without_line_ends_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zeros").write_bytes(bytes(20 << 20))
    assert "is this a text file?" in failure(CorpusConfig(pairs=tmp_path / "zeros"))


def test_different_line_counts_name_both_counts(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a\n" * 25)
    (tmp_path / "t").write_text("a\n" * 12)
    message = failure(CorpusConfig(source=tmp_path / "s", target=tmp_path / "t"))
    assert f"{tmp_path / 's'} has 25 lines but {tmp_path / 't'} has 12; their lengths stop correlating at" in message


def test_reading_is_lazy(tmp_path: Path) -> None:
    (tmp_path / "tsv").write_bytes(b"a\tb\n" * 1_000_000 + b"\xff")
    first = next(read_blocks(CorpusConfig(pairs=tmp_path / "tsv"), size=10))
    assert len(first.sources) == 10
    assert re.fullmatch("a+", "".join(first.sources))
