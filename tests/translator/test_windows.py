"""Whatever ends a line elsewhere, in a text or a vocabulary, ends none in a translation."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

import nmt as package
from nmt.core.lines import LineReader, windows
from nmt.data.config import SubwordsConfig
from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.data.train_tokenizers import train_tokenizers
from nmt.search.hypothesis import Hypothesis
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputFormat, OutputOptions, Window
from tests.workflows.runs import call, loaded, searching, sentences, write_lines

BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
PIECES = (
    *BREAKS, "\t", "\x00", " ", "Hund", "Katze", "eins. ", "Ende! ", "grün ", "ж", "\u4f60。", "12,5", "%s", "<b>",
    "</b>", *(f"<b title='a{each}b'>Hund</b>" for each in BREAKS),
    *(f"<!-- {each} -->" for each in BREAKS), *(f"{{{{n{each}n}}}}" for each in BREAKS),
    "&#13;", "&#x2028;", "https://a.b/c ", "eins zwei drei und Katze " * 3,
)  # fmt: skip
LINES = 2000


def nasty_lines() -> list[str]:
    draw = random.Random(20)
    return ["".join(draw.choices(PIECES, k=draw.randrange(7))) for _ in range(LINES)]


def check(out: str, format: OutputFormat, n_best: int = 1) -> None:
    """Checks that there are as many lines as promised, counted by LF and by ``str.splitlines``."""
    rows = out.split("\n")[:-1]
    assert out.splitlines() == [row.removesuffix("\r") for row in rows]
    if format == "tsv":
        cells = [row.split("\t") for row in rows]
        assert {len(row) for row in cells} == {4}
        numbers = [int(row[0]) for row in cells]
        assert set(numbers) == set(range(1, LINES + 1))
        assert numbers == sorted(numbers)
        assert len(rows) <= n_best * LINES
        assert (len(rows) > LINES) == (n_best > 1)
        return
    assert len(rows) == LINES
    if format == "jsonl":
        for number, (row, line) in enumerate(zip(rows, nasty_lines(), strict=True), 1):
            found = json.loads(row)
            assert (found["line"], found["source"]) == (number, line.removesuffix("\r"))
            assert not any(each in one["text"] for one in found["translations"] for each in BREAKS)


def written(translator: Translator, format: OutputFormat) -> str:
    data = "".join(f"{line}\n" for line in nasty_lines()).encode()
    reader = LineReader(io.BytesIO(data), limit_bytes=1 << 16)
    options = OutputOptions(format)
    return "".join(options.translate(translator, Window(window)).text for window in windows(reader, LINES))


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    overrides = ["search.max_length_ratio=0.3", "search.replace_unknown=true", "search.split_longer_than=9"]
    return loaded(trained, *overrides)


@pytest.mark.parametrize("format", ["text", "tsv", "jsonl"])
@pytest.mark.parametrize("document", [False, True])
@pytest.mark.parametrize("markup", [False, True])
def test_a_line_gives_a_line(translator: Translator, format: OutputFormat, document: bool, markup: bool) -> None:
    check(written(searching(translator, beam=1, document=document, markup=markup), format), format)


def test_n_best_and_int8(trained: Path, translator: Translator) -> None:
    check(written(searching(translator, beam=2, n_best=2, document=True), "tsv"), "tsv", 2)
    int8 = searching(package.load(trained / "run", precision="int8"), beam=1, max_length_ratio=0.3, document=True)
    check(written(int8, "text"), "text")


class Draws:
    """An engine that says any subwords of a vocabulary."""

    def __init__(self, size: int) -> None:
        self._draw, self._size = random.Random(5), size

    def translate_ids(self, sources: Sequence[Sequence[int]], *_: Any, **__: Any) -> list[tuple[Hypothesis, ...]]:
        return [(Hypothesis(tuple(self._draw.choices(range(4, self._size), k=5)), -1.0, -1.0),) for _ in sources]


def bytes_as_subwords() -> bytes:
    config = SubwordsConfig(kind="bpe", size=300, joint=True, byte_fallback=True)
    return train_tokenizers(sentences(60, 1), config).target.model


def line_ends_as_subwords() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(source for source, _ in sentences(60, 1)), model_writer=model, model_type="bpe",
        vocab_size=60, pad_id=0, unk_id=1, bos_id=2, eos_id=3, normalization_rule_name="identity",
        user_defined_symbols=["a\u2028", "\x85", "\u2029b", "\x0b"], minloglevel=2,
    )  # fmt: skip
    return model.getvalue()


@pytest.mark.parametrize("format", ["text", "tsv", "jsonl"])
@pytest.mark.parametrize(
    ("vocabulary", "holds"), [(bytes_as_subwords, ["<0x0A>", "<0xE2>"]), (line_ends_as_subwords, ["a\u2028", "\x85"])]
)
def test_a_vocabulary_that_spells_line_ends(
    translator: Translator, vocabulary: Callable[[], bytes], holds: Sequence[str], format: OutputFormat
) -> None:
    tokenizer = Tokenizer(vocabulary())
    assert set(holds) <= set(tokenizer.pieces(range(tokenizer.size)))
    trained = replace(translator.trained, tokenizers=TokenizerPair(tokenizer, tokenizer))
    odd = replace(translator, trained=trained, engine=Draws(tokenizer.size))
    check(written(searching(odd, beam=1, replace_unknown=False), format), format)


@pytest.mark.parametrize("words", [[], ["--text"]])
def test_tables_of_alignments_have_whole_rows(trained: Path, tmp_path: Path, words: list[str]) -> None:
    for name, lines in (("source", nasty_lines()), ("target", nasty_lines()[::-1])):
        write_lines(tmp_path / name, lines[:300])
    options = ("--source", "source", "--target", "target", "--format", "tsv", *words)
    reports = ("--lexicon", "lexicon", "--suspects", "suspects", "--min-score", "0")
    assert call(tmp_path, "align", trained / "run", *options, "--output", "links", *reports).code == 0
    for name, columns in (("links", 11), ("lexicon", 6), ("suspects", 9)):
        text = (tmp_path / name).read_bytes().decode()
        rows = text.split("\n")[:-1]
        assert text.splitlines() == rows
        assert {row.count("\t") for row in rows} == {columns - 1}
        assert len(rows) > 100
