"""Text in another language is noticed, once; the figure is that of plain loops over the training corpus."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.data.config import DataConfig
from nmt.data.store import Ragged, Store, StoredCorpus
from nmt.data.store_writer import StoreWriter
from nmt.data.tokenizer import TokenizerPair
from nmt.extras.service.batcher import RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.translator.source_language import COUNTS, SourceLanguageCheck, count_sources
from tests.workflows.runs import call, lines_of

OWN = "eins zwei drei.\nHund und Katze.\n" * 20
OTHER = "one two three.\ndog and cat.\n" * 20
WARNING = "warning: this text is unlike the source side of the training corpus"


def warnings(run: Path, text: str) -> list[str]:
    done = call(run.parent, "translate", run, "--beam", "1", stdin=text.encode())
    assert done.output.count("\n") == text.count("\n")
    return [line for line in done.stderr.splitlines() if "unlike" in line]


def test_another_language_gets_one_warning(trained: Path, tmp_path: Path) -> None:
    assert warnings(trained / "run", OWN) == []
    (warning,) = warnings(trained / "run", OTHER)
    tokenizer = TokenizerPair.load(trained / "run").source
    train = lines_of(trained / "train.de")
    counts = Counter(token for line in train for token in tokenizer.encode(line))
    total = sum(counts.values()) + tokenizer.size / 2

    def bits(lines: list[str]) -> float:
        """Bits per character under the frequencies of single subwords, each counted half a time more."""
        tokens = [token for line in lines for token in tokenizer.encode(line)]
        cost = sum(-math.log2((counts[token] + 0.5) / total) for token in tokens)
        return cost / sum(len(piece) for piece in tokenizer.pieces(tokens))

    relative = bits(OTHER.splitlines()) / bits(train)
    assert relative > 1.5
    check = package.load(trained / "run").trained.language_check
    for line in ("one two three.", "Hund und Katze."):
        assert check.relative_cost_of(line) == pytest.approx(bits([line]) / bits(train))
    assert warning.startswith(f"{WARNING} (its subwords take {relative:.1f} times as many bits per character)")
    assert warnings(trained / "run", "- 1 + 2 = 3\n" * 40) == []
    # a run keeps what is needed; one of an earlier version goes by its prepared corpus
    for number, left_out in enumerate(["prepared", COUNTS]):
        copy = tmp_path / f"{number}" / "run"
        shutil.copytree(trained / "run", copy, symlinks=True, ignore=shutil.ignore_patterns(left_out))
        assert warnings(copy, OTHER) == [warning]
    shutil.rmtree(copy / "prepared")
    assert warnings(copy, OTHER) == []
    for damaged in ("{", "[]", '{"": [1, 2]}', '{"": [1e999]}', '{"": "x"}'):
        (copy / COUNTS).write_text(damaged)
        assert warnings(copy, OTHER) == []


@pytest.mark.parametrize("command", ["evaluate", "align", "score"])
def test_exchanged_pairs_get_one_warning(trained: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "own").write_text(OWN)
    (tmp_path / "other").write_text(OTHER)
    option = "--reference" if command == "evaluate" else "--target"
    for source, target, count in (("own", "other", 0), ("other", "own", 1)):
        done = call(tmp_path, command, trained / "run", "--source", source, option, target)
        assert (done.code, done.stderr.count(WARNING)) == (0, count)


def test_a_server_warns_once(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = TranslatorEngine(package.load(trained / "run", device="cpu"))
    assert [answer.warning for answer in engine.answer(OWN.splitlines()[:2], RequestOptions(), int)] == [None] * 2
    found = [answer.warning for _ in range(2) for answer in engine.answer(OTHER.splitlines(), RequestOptions(), int)]
    assert [warning is None for warning in found] == [False] + [True] * (len(found) - 1)
    assert capsys.readouterr().err.count(WARNING) == 1


def test_each_text_is_judged_by_the_language_that_suits_it(trained: Path) -> None:
    """The language may be that of a small corpus in a store of several, but not the language to translate into."""
    tokenizer = TokenizerPair.load(trained / "run").source
    counts = {}
    for name, text, times in (("de", OWN, 100), ("en", OTHER, 1)):
        found = Counter(token for line in text.splitlines() for token in tokenizer.encode(line))
        counts[name] = [times * found[token] for token in range(tokenizer.size)]
    mixed = [line for pair in zip(OWN.splitlines(), OTHER.splitlines(), strict=True) for line in pair]
    assert SourceLanguageCheck(tokenizer, counts).warning(mixed) is None
    together = [sum(pair) for pair in zip(*counts.values(), strict=True)]
    assert SourceLanguageCheck(tokenizer, {"": together}).warning(OTHER.splitlines()) is not None
    assert SourceLanguageCheck(tokenizer, counts, to="en").warning(OTHER.splitlines()) is not None
    assert SourceLanguageCheck(tokenizer, counts, to="en").warning(OWN.splitlines()) is None


def test_sources_are_counted_by_language(tmp_path: Path) -> None:
    stored = [StoredCorpus(name, 1.0) for name in "abc"]
    rows = [[4, 5], [5], [6, 6], [4]]
    with StoreWriter(tmp_path / "train", corpora=stored, vocabulary_sizes=(8, 8), keep_text=False) as writer:
        for corpus, of in ((0, rows[:2]), (2, rows[2:])):  # nothing of the second is left
            ragged = Ragged.of([np.array(row, np.int32) for row in of])
            writer.append(corpus=corpus, lines=np.arange(len(of)) + 1, sources=ragged, targets=ragged, texts=None)
        writer.finish()
    corpora = [{"pairs": Path(name), "languages": (name, "fr")} for name in ("de", "en", "de")]
    found = count_sources(Store.open(tmp_path / "train"), DataConfig.model_validate({"train": tuple(corpora)}), 8)
    assert found == {"de": [0, 0, 0, 0, 2, 2, 2, 0], "en": [0] * 8}
