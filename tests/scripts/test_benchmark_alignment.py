"""The measurement of word alignment: what eflomal is given, and a run on a few pairs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import benchmark_alignment  # noqa: E402

from nmt.alignment.formats import Alignment, read_gold  # noqa: E402
from nmt.data.words import text_words  # noqa: E402
from nmt.extras.aligner.align import TextAligner, learn_word_aligner  # noqa: E402
from nmt.extras.aligner.aligner import load_aligner, save_aligner  # noqa: E402
from nmt.extras.aligner.word_units import Subwords  # noqa: E402

DATA = ROOT / "data" / "de-en"
GOLD = ["--gold", *(str(DATA / f"valid.{kind}") for kind in ("de", "en", "align"))]


def test_eflomal_gets_words_and_signs_in_lower_case() -> None:
    assert benchmark_alignment.plain(["Ein Hund, ﬁnde ich.", "", "Don't!"]) == ["ein hund , finde ich .", "", "don't !"]


@pytest.mark.slow
def test_a_measurement_prints_a_line_for_each_figure(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("eflomal", reason="needs the extra eflomal")
    text = [str(DATA / f"train.{side}") for side in ("de", "en")]
    options = ["--pairs", "300", "--rounds", "1", "--threads", "1"]
    assert benchmark_alignment.main([*text, *GOLD, *options]) == 0
    figures = {each["name"]: each["value"] for each in map(json.loads, capfd.readouterr().out.splitlines())}
    for unit, suffix in (("seconds", ""), ("processor_seconds", ", processor")):
        learning, aligning, both = (
            figures[f"nmt (1 threads): {what}{suffix}"] for what in ("learning", "aligning", "learning and aligning")
        )
        assert both == pytest.approx(learning + aligning, rel=0.01)
        for what, ours in (("aligning", aligning), ("learning and aligning", both)):
            ratio = figures[f"nmt (1 threads): {what}, times as fast as eflomal, {unit}"]
            assert ratio == pytest.approx(figures[f"eflomal: learning and aligning{suffix}"] / ours, rel=0.01)
    for name in ("eflomal", "nmt, all granularities", "nmt, mean of granularities 1 to 2"):
        errors = [figures[f"{name}, {way}: AER"] for way in ("forward", "backward", "joined")]
        assert all(0 < error < 60 for error in errors), name
    assert figures["nmt (1 threads): aligning, memory"] > 50
    assert 0 < figures["eflomal: learning and aligning, memory of its own programs"] < 50  # PyTorch alone is more


def test_links_of_eflomal_are_brought_to_white_space_words() -> None:
    text = benchmark_alignment.Text(["Ja .", "Ein Hund, ja."], ["Yes .", "A dog , yes."])
    links = ["9-9", "0-0 1-1", "0-0 1-1 2-2 3-3 3-4 4-4"]
    expected = [((0, 0), (1, 1)), ((0, 0), (1, 1), (1, 2), (2, 3))]
    assert benchmark_alignment._of_words(links, text) == expected


def test_words_of_a_text_without_spaces_are_linked_where_half_of_their_characters_are() -> None:
    text = benchmark_alignment.Text(["Ab, cde 12"], ["x, y z"])
    together = benchmark_alignment.without_spaces(text, 0)
    assert together == (["乡乢,乣乤乥12"], ["x, y z"])
    source, target = (text_words(line) for (line,) in together)
    words = [
        tuple(line[begin:end] for begin, end in spans)
        for (line,), spans in zip(together, [source, target], strict=True)
    ]
    weights_TS = np.zeros((len(target), len(source)))
    links = ((0, 0), (3, 2), (4, 3), (5, 3), (6, 2))
    found = Alignment(*words, links, weights_TS, source_spans=tuple(source), target_spans=tuple(target))
    assert benchmark_alignment._of_characters(found, "Ab, cde 12", "x, y z", 0) == ((1, 2), (2, 1))


def test_pieces_align_a_text_whose_spaces_are_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = benchmark_alignment.read(*(DATA / f"train.{side}" for side in ("de", "en")), 1000)
    gold_text = benchmark_alignment.read(*(DATA / f"valid.{side}" for side in ("de", "en")), 100)
    lengths = [(len(one.split()), len(other.split())) for one, other in zip(*gold_text, strict=True)]
    lines = (DATA / "valid.align").read_text().splitlines(keepends=True)
    (tmp_path / "gold").write_text("".join(lines[:100]))
    gold = read_gold(tmp_path / "gold", lengths)

    def error_rate(name: str) -> float:
        save_aligner(learn_word_aligner(*benchmark_alignment.without_spaces(train, 0)), tmp_path / name)
        aligner = TextAligner(load_aligner(tmp_path / name), text=True)
        found = aligner.align(*benchmark_alignment.without_spaces(gold_text, 0))
        links = [benchmark_alignment._of_characters(*row, 0) for row in zip(found, *gold_text, strict=True)]
        return benchmark_alignment.score(links, gold).aer

    by_pieces = error_rate("pieces")
    save_aligner(load_aligner(tmp_path / "pieces"), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "pieces").read_bytes()
    monkeypatch.setattr(Subwords, "learn_runs", lambda *_: None)
    assert by_pieces < 0.4 < error_rate("characters")


def test_a_gold_file_that_does_not_fit_is_one_plain_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "de").write_text("Ein Hund .\nEin Hund .\n")
    (tmp_path / "en").write_text("A dog .\nA dog .\n")
    (tmp_path / "links").write_text("0-0\n" * 3)
    files = [str(tmp_path / name) for name in ("de", "en", "links")]
    assert benchmark_alignment.main([*files[:2], "--gold", *files]) == 2
    assert capsys.readouterr().err.startswith(f"error: {files[2]}: 3 lines for 2 sentence pairs")
