"""Corpora of several languages: tokens of target languages, shares of directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from nmt.data.batching import BatchingConfig, collate, epoch_batches
from nmt.data.prepared import PreparedData
from nmt.data.sampling import SubwordSampling
from nmt.data.subword_model import PieceType, read_model
from nmt.data.token_links import collate_linked
from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.data.vocabulary import EOS
from tests.data.conftest import make_pairs, prepared, refusal, write_pairs

Trees: TypeAlias = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Trees:
    """Corpora of 120, 40 and 10 pairs; the same texts in both directions, the first with links."""
    folder = tmp_path_factory.mktemp("languages")
    pairs = make_pairs(130)
    parts = {"de-en": pairs[:120], "en-de": [(target, source) for source, target in pairs[:40]], "valid": pairs[120:]}
    (folder / "links").write_text("0-0 1-1\n" * 120)
    found: Trees = {
        name: {
            "pairs": write_pairs(folder / name, part),
            "languages": ["en", "de"] if name == "en-de" else ["de", "en"],
        }
        for name, part in parts.items()
    }
    found["de-en"]["links"], found["en-de"]["weight"] = str(folder / "links"), 2.0
    return found


@pytest.fixture(scope="module")
def made(trees: Trees, tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    return prepared(tmp_path_factory.mktemp("prepared"), train=both(trees), valid=trees["valid"])


def both(trees: Trees) -> list[dict[str, Any]]:
    return [trees["de-en"], trees["en-de"]]


def test_the_vocabulary_has_a_control_piece_for_each_target_language(made: PreparedData) -> None:
    tokenizer = made.tokenizers.source
    assert tokenizer.languages == {"de": tokenizer.size - 2, "en": tokenizer.size - 1}
    assert [piece.type for piece in read_model(tokenizer.model).pieces[-2:]] == [PieceType.CONTROL] * 2
    for text in ("<2en>", "der Hund <2de>", "<2en>der"):
        assert not {*tokenizer.encode(text), *tokenizer.sample(text, alpha=0.5, seed=1)} & {
            *tokenizer.languages.values()
        }
    ids = tokenizer.encode("der Hund")
    assert tokenizer.detokenize([tokenizer.languages["en"], *ids]) == "der Hund"
    assert tokenizer.with_controls(["<2en>", "<2de>"]) is tokenizer


def test_a_given_vocabulary_gets_the_tokens_that_it_lacks(made: PreparedData, trees: Trees, tmp_path: Path) -> None:
    train = [trees["de-en"], {**trees["en-de"], "languages": ["en", "cs"]}]
    more = prepared(tmp_path, train=train, subwords={"model": str(made.folder)})
    old, new = made.tokenizers.source, more.tokenizers.source
    assert new.model.startswith(old.model)
    assert new.languages == {**old.languages, "cs": old.size}
    # a run goes on with its own copy
    assert prepared(tmp_path, train=train, subwords={"model": str(more.folder)}).reused


def test_a_piece_of_text_that_looks_like_a_token_is_refused(made: PreparedData) -> None:
    model = made.tokenizers.source.model
    tokenizer = Tokenizer(model.replace(b"<2en>", b"<2xx>"))
    assert set(tokenizer.languages) == {"de", "xx"}
    normal = model[:-2] + bytes([model[-2], PieceType.NORMAL])
    assert "has <2en> as a piece of text" in refusal(Tokenizer(normal).with_controls, ["<2en>"])


def test_separate_vocabularies_have_the_tokens_on_the_source_side(trees: Trees, tmp_path: Path) -> None:
    made = prepared(tmp_path, train=both(trees), subwords={"kind": "bpe", "size": 100, "joint": False})
    pair = TokenizerPair.load(made.folder)
    assert (set(pair.source.languages), set(pair.target.languages)) == ({"de", "en"}, set())


@pytest.mark.parametrize("sampled", [False, True])
def test_the_token_stands_once_and_first_in_every_source(
    made: PreparedData, trees: Trees, tmp_path: Path, sampled: bool
) -> None:
    sampling = None
    if sampled:
        made = prepared(tmp_path, train=both(trees), subwords={"kind": "bpe", "size": 100, "sampling": 0.3})
        sampling = SubwordSampling(made.tokenizers, 0.3, seed=1, epoch=0)
    store, languages = made.train, made.tokenizers.source.languages
    tokens = list(languages.values())
    pairs_B = np.arange(len(store))
    for batch in (collate(store, pairs_B, sampling=sampling), collate_linked(store, pairs_B, sampling=sampling)):
        for row, source_S in enumerate(batch.source_BS):
            into = "en" if store.corpora[store.corpus[row]].name.endswith("de-en") else "de"
            assert source_S[0] == languages[into]
            assert not np.isin(source_S[1:], tokens).any()
            length = batch.source_length_B[row]
            assert source_S[length - 1] == EOS
            plain = store.source(row) if sampling is None else sampling.draw(store, row)[0]
            assert source_S[1 : length - 1].tolist() == list(plain)
        assert not np.isin(batch.target_BT, tokens).any()
    assert len(store) == 160, "the same texts in the other direction are no duplicates"


def test_a_temperature_makes_shares_by_the_formula(trees: Trees, tmp_path: Path) -> None:
    """n_d^(1/T) over their sum, of 120 pairs once and 40 pairs twice: an epoch keeps its 200 pairs."""
    made = prepared(tmp_path, train=both(trees), temperature=4.0)
    power = [120**0.25, 80**0.25]
    shares = [each / sum(power) for each in power]
    weights = [200 * shares[0] / 120, 200 * shares[1] / 40]
    assert [corpus.weight for corpus in made.train.corpora] == pytest.approx(weights)
    assert [corpus.weight for corpus in made.report.corpora] == pytest.approx(weights)
    pairs = np.concatenate(list(epoch_batches(made.train, BatchingConfig(), seed=1, epoch=0)))
    assert np.bincount(made.train.corpus[pairs]).tolist() == pytest.approx([200 * each for each in shares], abs=1)


def test_a_held_out_pair_is_held_out_in_the_other_direction_too(trees: Trees, tmp_path: Path) -> None:
    test = {"pairs": trees["de-en"]["pairs"], "languages": ["de", "en"]}
    (tmp_path / "more").write_text("der Hund\tthe dog\nthe cat\tdie Katze\n")
    more = {"pairs": str(tmp_path / "more"), "languages": ["en", "de"]}
    train = [trees["en-de"], more, {**more, "languages": ["de", "en"]}]
    made = prepared(tmp_path / "held", train=train, test=test, subwords={"kind": "char"})
    assert [corpus.kept for corpus in made.report.corpora] == [0, 2, 2]


def test_several_validation_corpora_are_one_store_with_their_lines(trees: Trees, tmp_path: Path) -> None:
    turned = {"pairs": trees["en-de"]["pairs"], "languages": ["en", "de"]}
    valid = [trees["valid"], turned]
    made = prepared(tmp_path, train=both(trees), valid=valid, filters={"held_out": "none"})
    assert made.valid is not None
    assert made.valid.corpus.tolist() == [0] * 10 + [1] * 40
    assert made.valid.line(10) == (trees["en-de"]["pairs"], 1)
    languages = made.tokenizers.source.languages
    assert [made.valid.prefix(row) for row in (0, 9, 10)] == [(languages["en"],)] * 2 + [(languages["de"],)]
    assert made.report.valid is not None
    assert made.report.valid.pairs == 50


def test_without_languages_nothing_is_written_that_was_not(trees: Trees, tmp_path: Path) -> None:
    made = prepared(tmp_path, train={"pairs": trees["de-en"]["pairs"]})
    (corpus,) = json.loads((made.folder / "train" / "store.json").read_bytes())["corpora"]
    assert set(corpus) == {"name", "weight"}
    assert made.tokenizers.source.languages == {}
