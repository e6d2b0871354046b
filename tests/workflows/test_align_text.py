"""`nmt align --text`, and tables and gold lines of a model's links, on a tiny run. The command line runs in this
process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.alignment.formats import read_gold, read_jsonl, read_npz
from nmt.alignment.link_files import read_links
from nmt.data.words import text_words
from tests.workflows.runs import CONFIG, Command, in_process, nmt, write_corpus

PRECISE = ("--precision", "float32")
SOURCES = ["„Hund  und Katze.“", "", "zwei\u00a0Hund,eins", "eins!", " \u200b ", "日本語 ﬁn"]
TARGETS = ["“dog and cat.”", "x", " ", "one three…", "", "green 日本 half-½"]


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt align` in ``tmp_path``, where ``s`` and ``t`` are files of pairs."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", SOURCES), ("t", TARGETS)):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    return in_process(capsys, "align")


@pytest.fixture(scope="module")
def reverse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates the other way."""
    folder = tmp_path_factory.mktemp("reverse")
    write_corpus(folder)
    config = CONFIG.replace(".de", ".x").replace(".en", ".de").replace(".x", ".en").replace("size: 60", "size: 52")
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    done = nmt("train", "config.yaml", *PRECISE, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "run"


@pytest.mark.parametrize("joined", [False, True], ids=["one", "both"])
def test_every_format_knows_the_words_of_the_text(trained: Path, reverse: Path, align: Command, joined: bool) -> None:
    given = (trained / "run", "-s", "s", "-t", "t", "--text", *PRECISE, *(("--reverse", reverse) if joined else ()))
    for format_ in ("pharaoh", "gold", "tsv", "jsonl", "npz", *(() if joined else ("png",))):
        code, out, err = align(*given, "--format", format_, "-o", format_)
        assert (code, out) == (0, ""), err
    found = list(read_jsonl(Path("jsonl")))
    assert len(found) == len(SOURCES)
    assert joined or len(list(Path("png").iterdir())) == len(SOURCES)
    for each, source, target in zip(found, SOURCES, TARGETS, strict=True):
        for line, words, spans in (
            (source, each.source_words, each.source_spans),
            (target, each.target_words, each.target_spans),
        ):
            assert spans == tuple(text_words(line))
            assert words == tuple(line[begin:end] for begin, end in spans)
        if each.source_words and each.target_words:
            assert each.links
        if not joined:
            np.testing.assert_allclose(each.weights_TS.sum(axis=1), 1 if each.source_words else 0, atol=2e-5)
    assert found[0].source_words == ("„", "Hund", "und", "Katze", ".", "“")
    for name in ("pharaoh", "gold", "tsv", "npz"):
        assert [each.links for each in read_links(Path(name))] == [each.links for each in found]
    for each, archived in zip(found, read_npz(Path("npz")), strict=True):
        np.testing.assert_allclose(each.weights_TS, archived.weights_TS, atol=2e-6)
    sure = [gold.sure for gold in read_gold(Path("gold"))]
    assert sure == [each.sure for each in found]
    if joined:
        pairs = [(SOURCES, TARGETS, trained / "run"), (TARGETS, SOURCES, reverse)]
        forward, backward = (
            package.load(run, precision="float32").align(one, other, text=True) for one, other, run in pairs
        )
        for each, one, other in zip(found, forward, backward, strict=True):
            assert each.sure == set(one.links) & {(s, t) for t, s in other.links} & set(each.links)
        assert sure != [set(each.links) for each in found]
    else:
        assert sure == [set(each.links) for each in found]


def test_subwords_are_the_same_and_scores_are_those_between_words(trained: Path) -> None:
    translator = package.load(trained / "run", precision="float32")
    for text in (False, True):
        words = translator.align(SOURCES, TARGETS, text=text)
        pieces = translator.align(SOURCES, TARGETS, text=text, level="subword")
        for one, other in zip(words, pieces, strict=True):
            assert one.scored_links() == other.scored_links()
            assert (one.links, one.source_spans, one.target_spans) == (
                other.links,
                other.source_spans,
                other.target_spans,
            )
            assert [score for _, score in one.scored_links()] == [one.weights_TS[t, s] for s, t in sorted(one.links)]
    plain, ordinary = (translator.align(SOURCES, TARGETS, text=text, level="subword") for text in (False, True))
    for one, other in zip(plain, ordinary, strict=True):
        assert one.source_tokens == other.source_tokens
        np.testing.assert_array_equal(one.weights_TS, other.weights_TS)


def test_text_that_is_tokenised_already_is_aligned_as_ever(trained: Path, align: Command) -> None:
    """If each word is one word in both modes, and no piece has two, --text changes nothing."""
    lines = ["Hund und Katze", "eins zwei grün"], ["dog and cat", "one two green"]
    translator = package.load(trained / "run", precision="float32")
    for one, other in zip(translator.align(*lines), translator.align(*lines, text=True), strict=True):
        assert (one.links, one.source_words, one.source_spans) == (other.links, other.source_words, other.source_spans)
        np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-12)


def test_own_translations_and_gold_links_count_these_words(trained: Path, align: Command) -> None:
    assert align(trained / "run", "-s", "s", "--text", "--format", "tsv", *PRECISE, "-o", "own")[0] == 0
    assert len(list(read_links(Path("own")))) == len(SOURCES)
    # The first source has 6 words so, but 3 by white space.
    Path("gold").write_text("6-6\n\n\n1-1\n\n1-1\n")
    arguments = (trained / "run", "-s", "s", "-t", "t", "--gold", "gold", "--gold-base", "1", *PRECISE)
    code, _, err = align(*arguments, "--text")
    assert (code, err.splitlines()[-1][:4]) == (0, "AER ")
    code, _, err = align(*arguments)
    assert (code, err.splitlines()[-1]) == (
        2,
        (
            "error: gold:1: link '6-6' points at source word 6, but that sentence has 3 words: "
            "write the source index first, and count from 1"
        ),
    )
    code, out, err = align(trained / "run", "-s", "s", "-t", "t", "--text", "--compare", *PRECISE)
    assert code == 0, err
    words = sum(len(text_words(target)) for source, target in zip(SOURCES, TARGETS, strict=True) if source.strip())
    correlations = out.partition("rank correlation")[2].partition("\n\n")[0]
    assert int(correlations.splitlines()[-1].split()[-1]) <= words
    code, _, err = align(trained / "run", "-s", "s", "--compare", "--base", "1")
    assert (code, err) == (2, "error: --compare prints a report on all methods, between words; leave out --base\n")


@pytest.mark.parametrize("format_", ["pharaoh", "gold", "tsv"])
def test_indices_from_1(trained: Path, align: Command, format_: str) -> None:
    given = (trained / "run", "-s", "s", "-t", "t", *PRECISE, "--format", format_)
    assert align(*given, "-o", "zero")[0] == 0
    assert align(*given, "--base", "1", "-o", "one")[0] == 0
    zero, one = (list(read_links(Path(name))) for name in ("zero", "one"))
    assert [each.links for each in one] == [tuple((s + 1, t + 1) for s, t in each.links) for each in zero]
    assert [each.links for each in read_links(Path("one"), base=1)] == [each.links for each in zero]
