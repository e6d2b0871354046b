from __future__ import annotations

import random
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from nmt.data.config import SubwordsConfig
from nmt.data.train_tokenizers import changed_by_normalization, train_tokenizers
from nmt.data.vocabulary import EOS, UNK
from tests.data.conftest import Pairs, refusal


def learning_fails(pairs: Pairs, config: SubwordsConfig) -> str:
    return refusal(train_tokenizers, pairs, config)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("joint", [True, False])
def test_too_large_a_vocabulary_names_what_fits(pairs: Pairs, kind: str, joint: bool) -> None:
    config = {"kind": kind, "joint": joint}
    message = learning_fails(pairs, SubwordsConfig.model_validate({**config, "size": 50_000}))
    assert message.startswith("data.subwords.size: 50000 is more than the text of")
    most = int(message.split("set it to ")[1].split()[0])
    if joint:
        assert train_tokenizers(pairs, SubwordsConfig.model_validate({**config, "size": most})).source.size == most


def test_too_small_a_vocabulary_names_what_is_needed(pairs: Pairs) -> None:
    message = learning_fails(pairs, SubwordsConfig(size=10))
    assert message.startswith("data.subwords.size: 10 is less than the characters of both sides take")
    least = int(message.split("set it to ")[1].split()[0])
    assert train_tokenizers(pairs, SubwordsConfig(kind="bpe", size=least)).source.size == least


def test_size_is_a_limit_for_words_and_characters(pairs: Pairs) -> None:
    assert train_tokenizers(pairs, SubwordsConfig(kind="word", size=9)).source.size == 9
    assert train_tokenizers(pairs, SubwordsConfig(kind="char", size=9000)).source.size < 100


def test_characters_are_told_from_longer_subwords(pairs: Pairs) -> None:
    for kind, is_one in (("char", True), ("unigram", False), ("word", False)):
        config = SubwordsConfig.model_validate({"kind": kind, "size": 320, "byte_fallback": kind != "word"})
        assert train_tokenizers(pairs, config).target.of_characters is is_one


@pytest.mark.parametrize("pairs_to_learn", [[], [("", " ")], [("\u2581", "\u3000")], [("x" * 5000, "y" * 5000)]])
def test_nothing_to_learn_from(pairs_to_learn: Pairs) -> None:
    assert "to learn from" in learning_fails(pairs_to_learn, SubwordsConfig(kind="char"))


def test_nul_in_the_text_is_learned_around(pairs: Pairs) -> None:
    dirty = [(f"{source} \0 \ud800", target) for source, target in pairs]
    assert train_tokenizers(dirty, SubwordsConfig(size=100)).source.size == 100


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_digits_are_split_on_request(pairs: Pairs, kind: str) -> None:
    """A number that is in every sentence is a subword otherwise."""
    dated = [(f"{source} 1492 12.", f"{target} 1492 12.") for source, target in pairs]
    config = SubwordsConfig.model_validate({"kind": kind, "size": 100})
    digits = [
        [piece for piece in tokenizer.pieces(range(tokenizer.size)) if sum(map(str.isdigit, piece)) > 1]
        for tokenizer in (
            train_tokenizers(dated, config.model_copy(update={"split_digits": is_split})).target
            for is_split in (False, True)
        )
    ]
    assert digits[0]
    assert not digits[1]


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
    assert message == f"data.subwords.min_frequency: no word of {what} is that frequent; lower it"


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("น้ำ", "ำ becomes ํา"),
        ("می\u200cرود", "U+200C becomes a space"),
        ("wait… m²", "… becomes ..."),
        ("caf\u0065\u0301\u00a0\u3000au lait \u2581 \u0915\u093c", ""),  # the same text, in another form
        ("\ud800", ""),  # a lone surrogate, which is read as U+FFFD under any normalization
    ],
)
def test_changes_by_normalization_are_found(line: str, change: str) -> None:
    assert changed_by_normalization([line, "as it is"], "nmt_nfkc") == (0.5 if change else 0.0, change)
    for kept in ("nfc", "identity"):
        assert changed_by_normalization([line], kept) == (0.0, "")


def test_nfc_joins_accents_and_keeps_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "schön，ế… 한국 m² น้ำ ﬁ می\u200cرود à̂"
    learnt = []
    for folder in ("a", "another"):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
        config = SubwordsConfig(kind="char", size=200, normalization="nfc")
        learnt.append(train_tokenizers([(text, text)] * 9, config).source)
    tokenizer, other = learnt
    assert tokenizer.fingerprint == other.fingerprint
    ids = tokenizer.encode(text)
    assert tokenizer.detokenize(ids) == text
    partly = text.replace("ế", "ê\u0301")
    for form in (unicodedata.normalize("NFD", text), partly, f"\ufeff{text}"):
        assert tokenizer.encode(form) == ids
    _, spans = tokenizer.encode_spans("scho\u0308n")
    assert spans[-2:] == [(3, 5), (5, 6)]
