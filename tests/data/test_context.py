"""Previous sentences as context: the contents of a store, compared with plain loops over the lines."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from nmt.data.batching import BatchingConfig, collate, epoch_batches
from nmt.data.context import DocumentContext, Sentence, with_context_of
from nmt.data.prepared import PreparedData
from nmt.data.sampling import SubwordSampling
from nmt.data.store import Store
from nmt.data.token_links import collate_linked
from nmt.data.tokenizer import Tokenizer
from nmt.data.vocabulary import EOS
from tests.data.conftest import Pairs, make_pairs, prepared, refusal, write_pairs

MAX_LENGTH = 40
FILTERS = {"max_length": MAX_LENGTH}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pairs]:
    """Two corpora to train on and one to validate on, by file: with blank lines on one side or both, equal pairs, a
    pair in another's corpus, copies, a pair too long, and one of an odd ratio."""
    folder = tmp_path_factory.mktemp("context")
    pairs = make_pairs(100)
    one, other, valid = list(pairs[:60]), list(pairs[60:80]), list(pairs[80:])
    one[5:5] = [("", "")]
    one[10:10] = [(" \t ".replace("\t", "\u2003"), "the dog .")]
    one[15:15] = [("der Hund !", "")]  # dropped, and yet the sentence before the next
    one[20:20] = [one[3], ("Katze", "Katze"), (" ".join(["Hund"] * 60), "dog"), valid[4]]
    one += [one[1]]
    valid[7:7] = [("", "")]
    corpora = {str(folder / name): lines for name, lines in (("one", one), ("other", other), ("valid", valid))}
    for path, lines in corpora.items():
        write_pairs(Path(path), lines)
    return corpora


@pytest.fixture(scope="module")
def made(corpora: dict[str, Pairs], tmp_path_factory: pytest.TempPathFactory) -> dict[int, PreparedData]:
    """The corpora prepared with 0, 1 and 3 previous sentences."""
    one, other, valid = ({"pairs": path} for path in corpora)
    data = {"train": [one, other], "valid": valid, "filters": FILTERS}
    return {context: prepared(tmp_path_factory.mktemp("made"), context=context, **data) for context in (0, 1, 3)}


def expected_context(tokenizer: Tokenizer, lines: Pairs, row: int, number: int) -> list[int]:
    """The tokens before a line, by a walk back from it."""
    end = tokenizer.pieces(range(tokenizer.size)).index("<break>")
    tokens: list[int] = []
    place = row
    while place > 0 and row - place < number and lines[row][0].strip() and lines[place - 1][0].strip():
        place -= 1
        tokens = [*tokenizer.encode(lines[place][0]), end, *tokens]
    room = max(MAX_LENGTH - len(tokenizer.encode(lines[row][0])), 0)
    return tokens[len(tokens) - room :] if len(tokens) > room else tokens


@pytest.mark.parametrize("number", [1, 3])
def test_the_store_has_the_sentences_before_each_line(
    number: int, made: dict[int, PreparedData], corpora: dict[str, Pairs]
) -> None:
    found, plain = made[number], made[0]
    tokenizer = found.tokenizers.source
    assert tokenizer.size == plain.tokenizers.source.size + 1
    assert found.valid is not None
    assert plain.valid is not None
    assert len(found.valid) == len(corpora[list(corpora)[2]])
    cut = 0
    for store, same in ((found.train, plain.train), (found.valid, plain.valid)):
        assert len(store) == len(same)  # filters look at the pair only
        for index in range(len(store)):
            assert store.line(index) == same.line(index)
            assert store.source(index).tolist() == same.source(index).tolist()
            assert same.prefix(index) == ()
            corpus, line = store.line(index)
            expected = expected_context(tokenizer, corpora[corpus], line - 1, number)
            assert store.prefix(index) == tuple(expected)
            assert store.source_lengths[index] == len(expected) + len(same.source(index))
            cut += expected[:1] != [] and len(expected) + len(same.source(index)) == MAX_LENGTH
    assert cut > 0


def test_no_text_is_split_into_the_break(made: dict[int, PreparedData]) -> None:
    tokenizer = made[1].tokenizers.source
    end = tokenizer.control("<break>")
    assert end == tokenizer.size - 1
    assert end not in tokenizer.encode("der <break> Hund<break>")
    assert tokenizer.control("<2en>") is None
    assert tokenizer.control("der") is None
    assert tokenizer.with_controls(["<break>"]) is tokenizer


def test_batches_have_context_before_sources(made: dict[int, PreparedData]) -> None:
    store = made[3].train
    config = BatchingConfig(batch_tokens=120)
    rows = epoch_batches(store, config, seed=1, epoch=0)[0]
    batch = collate(store, rows)
    for row, index in enumerate(rows.tolist()):
        tokens = [*store.prefix(index), *store.source(index).tolist(), EOS]
        assert batch.source_BS[row, : len(tokens)].tolist() == tokens
        assert batch.source_length_B[row] == len(tokens) == store.source_lengths[index] + 1


def test_links_and_drawn_subwords_go_with_context(corpora: dict[str, Pairs], tmp_path: Path) -> None:
    path = next(iter(corpora))
    lines = corpora[path]
    links = ["0-0" if source.strip() and target else "" for source, target in lines]
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in links))
    for sampling in (0.0, 0.5):
        train = {"pairs": path, "links": str(tmp_path / "links"), "languages": ["de", "en"]}
        subwords = {"kind": "bpe", "size": 100, "sampling": sampling}
        run = tmp_path / f"run-{sampling}"
        linked = prepared(run, train=train, context=1, subwords=subwords, filters=FILTERS)
        store, tokenizers = linked.train, linked.tokenizers
        drawn = SubwordSampling(tokenizers, 0.5, seed=1, epoch=0) if sampling else None
        rows = np.arange(12, 24)
        batch = collate_linked(store, rows, sampling=drawn)
        assert batch.links is not None
        np.testing.assert_array_equal(batch.source_BS, collate(store, rows, sampling=drawn).source_BS)
        for row, index in enumerate(rows.tolist()):
            context = expected_context(tokenizers.source, lines, store.line(index).number - 1, 1)
            prefix = [tokenizers.source.languages["en"], *context]
            assert batch.source_BS[row, : len(prefix)].tolist() == prefix
            first = batch.links.source_E[batch.links.sentence_E == row].min()
            assert first == len(prefix)


def test_a_damaged_context_is_found(made: dict[int, PreparedData], tmp_path: Path) -> None:
    store = made[1].train
    for path in store.folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    sizes = made[1].tokenizers.source.size, made[1].tokenizers.target.size
    Store.open(tmp_path).check(*sizes)
    data = bytearray((tmp_path / "context.bin").read_bytes())
    (tmp_path / "context.bin").write_bytes(b"\xff\xff" + data[2:])
    assert "damaged" in refusal(Store.open(tmp_path).check, *sizes)
    (tmp_path / "context.offsets.bin").unlink()
    refusal(Store.open, tmp_path)


def test_a_document_in_parts_is_that_of_the_whole() -> None:
    lines = ["a", "b", " ", "c", "d", "e", "", "", "f"]
    whole = DocumentContext().sentences(lines)
    assert whole == lines
    assert [each.previous for each in whole if isinstance(each, Sentence)] == [
        (), ("a",), (), (), ("c",), ("c", "d"), (), (), ()
    ]  # fmt: skip
    document = DocumentContext()
    parts = [each for begin in range(0, len(lines), 2) for each in document.sentences(whole[begin : begin + 2])]
    assert [vars(each) for each in parts] == [vars(each) for each in whole]
    assert all(type(line) is str for each in parts if isinstance(each, Sentence) for line in each.previous)
    again = pickle.loads(pickle.dumps(whole))
    assert [vars(each) for each in again] == [vars(each) for each in whole]
    assert vars(with_context_of(whole[4], "x")) == vars(whole[4])
    assert type(with_context_of("plain", "x")) is str
