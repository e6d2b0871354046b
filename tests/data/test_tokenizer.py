from __future__ import annotations

import os
import random
import subprocess
import sys
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.core.errors import InputError
from nmt.data.config import SubwordsConfig
from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import BOS, EOS, PAD, UNK

KINDS = ["unigram", "bpe", "char", "word", "bytes"]
# White space of all kinds, the separator mark, half characters, what normalisation deletes, adds, joins and splits.
NASTY = st.text(
    st.one_of(
        st.sampled_from(
            "aäe. \t\0\x1c\x1f\x85\u00a0\u3000\u200b\u2028\u2581\ufeff\u00adﷺﬁ①½…éẞİ\u0301\ud83d\udc69👩\u200d"
        ),
        st.characters(exclude_categories=()),
    ),
    max_size=20,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(text=NASTY)
@example(text="\u2581")
@example(text=" \u200b ﷺ ")
@example(text="x\u200by \ud800 z")
def test_any_text_can_be_encoded_and_every_piece_has_a_word(
    tokenizers: dict[str, TokenizerPair], kind: str, text: str
) -> None:
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
def test_words_of_plain_text_are_where_the_separator_marks_say(
    tokenizers: dict[str, TokenizerPair], pairs: list[tuple[str, str]], kind: str
) -> None:
    tokenizer = tokenizers[kind].source
    for text, _ in pairs[:50]:
        encoded = tokenizer.encode_words(text.replace(" ", "  \t"))
        starts = np.array([piece.startswith("\u2581") for piece in tokenizer.pieces(encoded.ids)])
        assert encoded.word_of_piece == tuple(np.cumsum(starts) - 1)
        for word, whole in enumerate(encoded.words):  # plain text is written as its pieces are
            pieces = (each for each, of in zip(encoded.written, encoded.word_of_piece, strict=True) if of == word)
            assert "".join(pieces) == whole


@pytest.mark.parametrize("kind", ["unigram", "char", "word", "bytes"])
def test_known_text_survives_a_round_trip(
    tokenizers: dict[str, TokenizerPair], pairs: list[tuple[str, str]], kind: str
) -> None:
    for source, target in pairs:
        assert tokenizers[kind].source.detokenize(tokenizers[kind].source.encode(source)) == source
        assert tokenizers[kind].target.detokenize(tokenizers[kind].target.encode(target)) == target


def test_byte_fallback_spells_everything_on_one_line(tokenizers: dict[str, TokenizerPair]) -> None:
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
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_many_are_decoded_as_one_by_one(tokenizers: dict[str, TokenizerPair], kind: str, data: st.DataObject) -> None:
    tokenizer = tokenizers[kind].source
    ids = st.lists(st.integers(0, tokenizer.size - 1), max_size=8)
    sentences = data.draw(st.lists(ids, max_size=5))
    assert tokenizer.detokenize_batch(sentences) == [tokenizer.detokenize(each) for each in sentences]


def test_unknown_text_is_a_mark_of_its_own(tokenizers: dict[str, TokenizerPair]) -> None:
    assert tokenizers["word"].source.detokenize(tokenizers["word"].source.encode("der Xy Zw Hund")) == "der ⁇ ⁇ Hund"
    assert (
        tokenizers["unigram"].source.detokenize([PAD, BOS, *tokenizers["unigram"].source.encode("der"), EOS]) == "der"
    )


def test_every_unknown_word_is_a_token_of_its_own(tokenizers: dict[str, TokenizerPair]) -> None:
    encoded = tokenizers["word"].source.encode_words("der Xy Zw Hund")
    assert [token == UNK for token in encoded.ids] == [False, True, True, False]
    assert encoded.word_of_piece == (0, 1, 2, 3)


def test_text_that_looks_like_special_pieces_is_text(tokenizers: dict[str, TokenizerPair]) -> None:
    for kind in KINDS:
        assert not {PAD, BOS, EOS} & set(tokenizers[kind].source.encode("<s> </s> <pad> <unk>"))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampling_is_a_function_of_its_arguments(
    tokenizers: dict[str, TokenizerPair], pairs: list[tuple[str, str]], kind: str
) -> None:
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


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampling_is_the_same_in_every_process(
    tmp_path: Path, tokenizers: dict[str, TokenizerPair], pairs: list[tuple[str, str]], kind: str
) -> None:
    tokenizer = tokenizers[kind].source
    (tmp_path / "subwords.model").write_bytes(tokenizer.model)
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from nmt.data.tokenizer import Tokenizer\n"
        "tokenizer = Tokenizer.load(Path(sys.argv[1]))\n"
        "print([tokenizer.sample(text, alpha=0.2, seed=7) for text in sys.argv[2:]])"
    )
    texts = [source for source, _ in pairs[:20]]
    command = [sys.executable, "-c", code, str(tmp_path / "subwords.model"), *texts]
    printed = [
        subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}
        ).stdout.strip()
        for hash_seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert printed[0] == str([tokenizer.sample(text, alpha=0.2, seed=7) for text in texts])


@pytest.mark.parametrize("kind", ["char", "word"])
def test_characters_and_words_have_one_segmentation(
    tokenizers: dict[str, TokenizerPair], pairs: list[tuple[str, str]], kind: str
) -> None:
    tokenizer = tokenizers[kind].source
    for text in (*(source for source, _ in pairs[:20]), "Ω Xy \0Zw"):
        assert tokenizer.sample(text, alpha=0.2, seed=7) == tokenizer.encode(text)


@pytest.mark.parametrize("joint", [True, False])
def test_save_and_load(tmp_path: Path, pairs: list[tuple[str, str]], joint: bool) -> None:
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


def test_training_is_deterministic_across_processes(tmp_path: Path, tokenizers: dict[str, TokenizerPair]) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from conftest import make_pairs\n"
        "from nmt.data.config import SubwordsConfig\n"
        "from nmt.data.train_tokenizers import train_tokenizers\n"
        "print(train_tokenizers(make_pairs(400), SubwordsConfig(kind='unigram', size=120)).fingerprint)"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.strip() == tokenizers["unigram"].fingerprint


def learning_fails(pairs: list[tuple[str, str]], config: SubwordsConfig) -> str:
    with pytest.raises(InputError) as error:
        train_tokenizers(pairs, config)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("joint", [True, False])
def test_too_large_a_vocabulary_names_what_fits(pairs: list[tuple[str, str]], kind: str, joint: bool) -> None:
    config = {"kind": kind, "joint": joint}
    message = learning_fails(pairs, SubwordsConfig.model_validate({**config, "size": 50_000}))
    assert message.startswith("data.subwords.size: 50000 is more than the text of")
    most = int(message.split("set it to ")[1].split()[0])
    if joint:
        assert train_tokenizers(pairs, SubwordsConfig.model_validate({**config, "size": most})).source.size == most


def test_too_small_a_vocabulary_names_what_is_needed(pairs: list[tuple[str, str]]) -> None:
    message = learning_fails(pairs, SubwordsConfig(size=10))
    assert message.startswith("data.subwords.size: 10 is less than the characters of both sides take")
    least = int(message.split("set it to ")[1].split()[0])
    assert train_tokenizers(pairs, SubwordsConfig(kind="bpe", size=least)).source.size == least


def test_size_is_a_limit_for_words_and_characters(pairs: list[tuple[str, str]]) -> None:
    assert train_tokenizers(pairs, SubwordsConfig(kind="word", size=9)).source.size == 9
    assert train_tokenizers(pairs, SubwordsConfig(kind="char", size=9000)).source.size < 100


@pytest.mark.parametrize("pairs_to_learn", [[], [("", " ")], [("\u2581", "\u3000")], [("x" * 5000, "y" * 5000)]])
def test_nothing_to_learn_from(pairs_to_learn: list[tuple[str, str]]) -> None:
    assert "nothing to learn from" in learning_fails(pairs_to_learn, SubwordsConfig(kind="char"))


def test_nul_in_the_text_is_learned_around(pairs: list[tuple[str, str]]) -> None:
    dirty = [(f"{source} \0 \ud800", target) for source, target in pairs]
    assert train_tokenizers(dirty, SubwordsConfig(size=100)).source.size == 100


def test_unusable_model_files(tmp_path: Path, tokenizers: dict[str, TokenizerPair]) -> None:
    model = tmp_path / "subwords.model"
    with pytest.raises(InputError, match=r"subwords\.model: no such file"):
        TokenizerPair.load(tmp_path)
    for content in (b"", b"garbage", tokenizers["unigram"].source.model[:1000]):
        model.write_bytes(content)
        with pytest.raises(InputError, match=r"subwords\.model: not a SentencePiece model, or damaged"):
            Tokenizer.load(model)


def test_foreign_special_ids_are_refused(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    import sentencepiece

    text = tmp_path / "text"
    text.write_text("\n".join(source for source, _ in pairs))
    prefix = str(tmp_path / "foreign")
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=prefix, vocab_size=80, minloglevel=2)
    with pytest.raises(InputError, match=r"special ids are \(-1, 0, 1, 2\), not \(0, 1, 2, 3\)"):
        Tokenizer.load(tmp_path / "foreign.model")


@pytest.mark.parametrize("joint", [True, False])
def test_rare_words_are_unknown(joint: bool) -> None:
    draw = random.Random(1)
    words = [f"Wort{number}" for number in range(60)]
    weights = [1 / (number + 1) for number in range(60)]
    pairs = [
        (" ".join(draw.choices(words, weights, k=6)), " ".join(draw.choices(words, k=2)) + "。") for _ in range(50)
    ]
    pairs.append(("ｗｏｒｔ５　ｗｏｒｔ５ Wort59", "x\u2581y"))  # normalised to spaces and letters of ASCII
    sides = [[pair[side].replace("\u2581", " ") for pair in pairs] for side in (0, 1)]
    texts = [sides[0] + sides[1]] * 2 if joint else sides
    for least in (2, 3, 4):
        made = train_tokenizers(pairs, SubwordsConfig(kind="word", joint=joint, min_frequency=least))
        for tokenizer, of_side, rare in zip((made.source, made.target), texts, made.rare, strict=True):
            counts = Counter(word for text in of_side for word in unicodedata.normalize("NFKC", text).split())
            frequent = {f"\u2581{word}" for word, count in counts.items() if count >= least}
            assert set(tokenizer.pieces(range(EOS + 1, tokenizer.size))) == frequent
            assert rare == len(counts) - len(frequent) > 0
            (unknown,) = tokenizer.encode(min(counts, key=lambda word: counts[word]))
            assert unknown == UNK
    assert train_tokenizers(pairs, SubwordsConfig(kind="word", joint=joint, min_frequency=2, size=10)).source.size == 10
    message = learning_fails(pairs, SubwordsConfig(kind="word", joint=joint, min_frequency=1000))
    what = "both sides" if joint else "the source side"
    assert message == f"data.subwords.min_frequency: no word of {what} occurs 1000 times; lower it"
