from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.data.config import SubwordsConfig
from nmt.data.tokenizer import Tokenizer, TokenizerPair, load_tokenizers
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import BOS, EOS, PAD, UNK
from tests.data.conftest import Pairs, Tokenizers, refusal

KINDS = ["unigram", "bpe", "char", "word", "bytes"]
# White space of all kinds, the separator mark, half characters, what normalisation deletes, adds, joins and splits.
ODD = "aäe. \t\0\x1c\x1f\x85\u00a0\u3000\u200b\u2028\u2581\ufeff\u00adﷺﬁ①½…éẞİ\u0301\ud83d\udc69👩\u200d"
NASTY = st.text(st.sampled_from(ODD) | st.characters(exclude_categories=()), max_size=20)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(text=NASTY)
@example(text="\u2581")
@example(text=" \u200b ﷺ ")
@example(text="x\u200by \ud800 z")
def test_any_text_can_be_encoded_and_every_piece_has_a_word(tokenizers: Tokenizers, kind: str, text: str) -> None:
    tokenizer = tokenizers[kind].source
    ids = tokenizer.encode(text)
    assert all(0 <= token < tokenizer.size and token not in (PAD, BOS, EOS) for token in ids)
    assert tokenizer.encode_batch([text, "Hund", text], threads=2) == [ids, tokenizer.encode("Hund"), ids]
    assert tokenizer.encode_arrays([text, "Hund", text])[2].tolist() == ids
    encoded = tokenizer.encode_words(text)
    assert list(encoded.ids) == ids
    assert list(encoded.words) == text.split()
    assert len(encoded.word_of_piece) == len(encoded.written) == len(ids)
    assert all(0 <= word < len(encoded.words) for word in encoded.word_of_piece)
    assert list(encoded.word_of_piece) == sorted(encoded.word_of_piece)
    decoded = tokenizer.detokenize(ids)
    assert decoded.splitlines() in ([], [decoded])
    assert " ".join(decoded.split()) == decoded


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_plain_text_are_where_the_separator_marks_say(tokenizers: Tokenizers, pairs: Pairs, kind: str) -> None:
    tokenizer = tokenizers[kind].source
    for text, _ in pairs[:50]:
        encoded = tokenizer.encode_words(text.replace(" ", "  \t"))
        starts = np.array([piece.startswith("\u2581") for piece in tokenizer.pieces(encoded.ids)])
        assert encoded.word_of_piece == tuple(np.cumsum(starts) - 1)
        for word, whole in enumerate(encoded.words):  # plain text is written as its pieces are
            pieces = (each for each, of in zip(encoded.written, encoded.word_of_piece, strict=True) if of == word)
            assert "".join(pieces) == whole


@pytest.mark.parametrize("kind", ["unigram", "char", "word", "bytes"])
def test_known_text_survives_a_round_trip(tokenizers: Tokenizers, pairs: Pairs, kind: str) -> None:
    for source, target in pairs:
        assert tokenizers[kind].source.detokenize(tokenizers[kind].source.encode(source)) == source
        assert tokenizers[kind].target.detokenize(tokenizers[kind].target.encode(target)) == target


def test_byte_fallback_spells_everything_on_one_line(tokenizers: Tokenizers) -> None:
    tokenizer = tokenizers["bytes"].source
    assert tokenizer.detokenize(tokenizer.encode("Ω 한국 👩‍🚀 \0!")) == "Ω 한국 👩‍🚀 !"
    assert UNK not in tokenizer.encode("Ω 한국")
    token_of = [tokenizer.pieces(range(tokenizer.size)).index(f"<0x{byte:02X}>") for byte in range(256)]
    for control in range(0xA0):
        character = chr(control)
        if unicodedata.category(character) == "Cc":
            spelt = [token_of[byte] for byte in f"A{character}A".encode()]
            assert tokenizer.detokenize(spelt) == "A A"
            assert tokenizer.detokenize_batch([spelt]) == ["A A"]
    # what is no UTF-8: an unfinished sequence, a surrogate, a NUL of two bytes
    for odd in (b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\x80"):
        assert set(tokenizer.detokenize([token_of[byte] for byte in odd])) == {"\ufffd"}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_many_are_decoded_as_one_by_one(tokenizers: Tokenizers, kind: str, data: st.DataObject) -> None:
    tokenizer = tokenizers[kind].source
    ids = st.lists(st.integers(0, tokenizer.size - 1), max_size=8)
    sentences = data.draw(st.lists(ids, max_size=5))
    assert tokenizer.detokenize_batch(sentences) == [tokenizer.detokenize(each) for each in sentences]


def test_every_unknown_word_is_a_token_and_a_mark_of_its_own(tokenizers: Tokenizers) -> None:
    tokenizer = tokenizers["word"].source
    encoded = tokenizer.encode_words("der Xy Zw Hund")
    assert [token == UNK for token in encoded.ids] == [False, True, True, False]
    assert encoded.word_of_piece == (0, 1, 2, 3)
    assert tokenizer.detokenize([PAD, BOS, *encoded.ids, EOS]) == "der ⁇ ⁇ Hund"


def test_text_that_looks_like_special_pieces_is_text(tokenizers: Tokenizers) -> None:
    for kind in KINDS:
        assert not {PAD, BOS, EOS} & set(tokenizers[kind].source.encode("<s> </s> <pad> <unk>"))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampling_is_a_function_of_its_arguments(tokenizers: Tokenizers, pairs: Pairs, kind: str) -> None:
    tokenizer = tokenizers[kind].source
    texts = [source for source, _ in pairs[:40]]

    def draw(seed: int) -> list[list[int]]:
        return [tokenizer.sample(text, alpha=0.2, seed=seed + place) for place, text in enumerate(texts)]

    first = draw(5)
    assert draw(2**40) != first
    tokenizer.sample("something between", alpha=0.5, seed=99)
    assert draw(5) == first
    with ThreadPoolExecutor(2) as executor:
        assert list(executor.map(draw, [5, 5])) == [first, first]
    assert first != [tokenizer.encode(text) for text in texts]
    decoded = [tokenizer.detokenize(ids) for ids in first]
    assert decoded == [tokenizer.detokenize(tokenizer.encode(text)) for text in texts]


@pytest.mark.parametrize("joint", [True, False])
def test_save_and_load(tmp_path: Path, pairs: Pairs, joint: bool) -> None:
    (tmp_path / "subwords.model").write_bytes(b"left from before")
    (tmp_path / "subwords.source.model").write_bytes(b"left from before")
    made = train_tokenizers(pairs, SubwordsConfig(size=100, joint=joint))
    made.save(tmp_path)
    joint_files, files = ["subwords.model"], ["subwords.source.model", "subwords.target.model"]
    assert sorted(path.name for path in tmp_path.iterdir()) == (joint_files if joint else files)
    loaded = TokenizerPair.load(tmp_path)
    assert loaded == made
    assert loaded.joint == made.joint == joint
    assert loaded.fingerprint == made.fingerprint
    assert (loaded.source == loaded.target) == joint


def test_unusable_model_files(tmp_path: Path, tokenizers: Tokenizers, pairs: Pairs) -> None:
    model, text = tmp_path / "subwords.model", tmp_path / "text"
    assert refusal(TokenizerPair.load, tmp_path) == f"{model}: no such file"
    for content in (b"", b"garbage", tokenizers["unigram"].source.model[:1000]):
        model.write_bytes(content)
        assert refusal(Tokenizer.load, model) == f"{model}: not a SentencePiece model, or damaged"
    text.write_text("\n".join(source for source, _ in pairs))
    prefix = str(tmp_path / "foreign")
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=prefix, vocab_size=80, minloglevel=2)
    assert "special ids are (-1, 0, 1, 2), not (0, 1, 2, 3)" in refusal(Tokenizer.load, tmp_path / "foreign.model")


def test_a_vocabulary_that_cannot_be_taken_is_named(tmp_path: Path, tokenizers: Tokenizers) -> None:
    def refused(path: Path, **options: Any) -> str:
        return refusal(load_tokenizers, path, SubwordsConfig(model=path, **options))

    two, word = tmp_path / "two", tmp_path / "word.model"
    two.mkdir()
    tokenizers["bpe"].save(two)
    word.write_bytes(tokenizers["word"].source.model)
    (tmp_path / "broken.model").write_bytes(b"broken")
    assert refused(tmp_path / "gone") == f"data.subwords.model: {tmp_path}/gone: no such file"
    assert refused(tmp_path) == f"data.subwords.model: {tmp_path}/subwords.model: no such file"
    assert "broken.model: not a SentencePiece model, or damaged" in refused(tmp_path / "broken.model")
    assert refused(two) == f"data.subwords.model: {two}: has a vocabulary for each side; set data.subwords.joint: false"
    assert refused(word, joint=False) == (
        f"data.subwords.model: {word}: has one vocabulary; set data.subwords.joint: true"
    )
    assert refused(word, sampling=0.1) == (
        f"data.subwords.sampling: {word} has one segmentation of a text only; leave sampling out"
    )
    assert load_tokenizers(two, SubwordsConfig(model=two, joint=False, sampling=0.1)).source.samples
