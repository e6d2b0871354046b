from __future__ import annotations

import gzip
import lzma
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.core.errors import InputError
from nmt.data import corpus as corpus_module
from nmt.data.config import CorpusConfig
from nmt.data.corpus import PairBlock, read_blocks, read_lines
from nmt.data.misalignment import locate_misalignment

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


@settings(deadline=None)
@given(text=NASTY, bom=st.booleans(), read_bytes=st.integers(1, 8))
def test_lines_end_at_lf_and_crlf_alone(
    tmp_path_factory: pytest.TempPathFactory, text: str, bom: bool, read_bytes: int
) -> None:
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
    with pytest.raises(InputError) as error:
        list(read_blocks(corpus, size=10))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("line", [1, 5, 30])
def test_invalid_utf8_names_file_line_and_byte(tmp_path: Path, line: int) -> None:
    lines = [b"gut"] * 40
    lines[line - 1] = b"gr\xfcn"
    (tmp_path / "bad").write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines))
    (tmp_path / "good").write_bytes(b"x\n" * 40)
    message = failure(CorpusConfig(source=tmp_path / "bad", target=tmp_path / "good"))
    assert message.startswith(f"{tmp_path / 'bad'}:{line}: not UTF-8: byte 0xfc at byte 3 of the line")


def test_invalid_utf8_far_into_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"some words in a line\n" * 100_000 + b"\xff\n")
    assert ":100001: not UTF-8" in failure(CorpusConfig(source=tmp_path / "bad", target=tmp_path / "bad"))


@pytest.mark.parametrize(("line", "tabs"), [("none", 0), ("", 0), ("a\tb\tc", 2)])
def test_a_line_of_pairs_has_one_tab(tmp_path: Path, line: str, tabs: int) -> None:
    (tmp_path / "tsv").write_text("a\tb\n" * 11 + line + "\na\tb\n")
    assert failure(CorpusConfig(pairs=tmp_path / "tsv")).startswith(f"{tmp_path / 'tsv'}:12: {tabs} TABs")


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


def synthetic(pairs: int, seed: int) -> tuple[list[str], list[str]]:
    """Lengths as of translations: log-normal, the target's log length 0.2 around the source's (correlation 0.9)."""
    draw = random.Random(seed)
    lengths = [draw.gauss(4, 0.45) for _ in range(pairs)]
    sources = ["s" * round(2.718**length) for length in lengths]
    return sources, ["t" * round(2.718 ** (length + draw.gauss(0, 0.2))) for length in lengths]


@pytest.mark.parametrize("place", [0, 10, 500, 2500, 4800, 4990])
@pytest.mark.parametrize("change", ["insert in source", "insert in target", "delete in source", "insert three"])
def test_misalignment_is_located(place: int, change: str) -> None:
    sources, targets = synthetic(5000, seed=place)
    if change == "insert in source":
        sources.insert(place, "s" * 60)
    elif change == "insert in target":
        targets.insert(place, "")
    elif change == "delete in source":
        del sources[place]
    else:
        sources[place:place] = ["s" * 50, "s" * 70, "s" * 20]
    assert abs(locate_misalignment(sources, targets) - (place + 1)) <= 50


def test_the_first_of_several_misalignments_is_located() -> None:
    sources, targets = synthetic(5000, seed=1)
    sources.insert(3500, "s" * 50)
    sources.insert(1200, "s" * 50)
    assert abs(locate_misalignment(sources, targets) - 1201) <= 50


def test_misalignment_of_lines_that_say_nothing_is_still_a_line() -> None:
    assert 1 <= locate_misalignment(["a"] * 10, ["a"] * 7) <= 8
    assert locate_misalignment([], ["a"]) == 1


def test_reading_is_lazy(tmp_path: Path) -> None:
    (tmp_path / "tsv").write_bytes(b"a\tb\n" * 1_000_000 + b"\xff")
    first = next(read_blocks(CorpusConfig(pairs=tmp_path / "tsv"), size=10))
    assert len(first.sources) == 10
    assert re.fullmatch("a+", "".join(first.sources))
