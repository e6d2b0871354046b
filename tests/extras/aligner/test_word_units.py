"""Word units of an aligner."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from nmt.core.errors import InputError
from nmt.extras.aligner.word_units import Beginnings, Subwords, plain_parts
from tests.extras.aligner.compounds import pairs

IDEOGRAPHS = {code: 0x4E00 + code for code in map(ord, "abcdefghijklmnopqrstuvwxyzßäöü")}
WORDS = Counter(word for pair in pairs(200, seed=1) for word in pair.source)


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("Hund", ["hund"]), ("Hund,", ["hund"]), ("(E-Mail)!", ["e-mail"]), ("„Katze“?!", ["katze"]),
        ("20%", ["20", "%"]), ("$5.", ["$", "5"]), ("his/her", ["his", "her"]), ("ﬁn½", ["fin1", "⁄", "2"]),
        ("...", [".", ".", "."]), ("狗猫，ab!", [("狗", "猫"), ",", "ab", "!"]), ("👩\u200d🚒", ["👩\u200d🚒"]),
        ("", []),
    ],
)  # fmt: skip
def test_plain_parts(word: str, parts: list[str | tuple[str, ...]]) -> None:
    assert plain_parts(word) == tuple((part,) if isinstance(part, str) else part for part in parts)


@pytest.mark.parametrize("word", ["", "\n", " \t", "\u2028"])
def test_every_word_has_a_token_and_none_holds_white_space(word: str) -> None:
    for cut in (Beginnings(), Subwords.learn(WORDS, 0.3)):
        tokens, counts = cut.tokens([word, "Hund"])
        assert counts[0] == 1
        assert len(tokens) == sum(counts)
        assert not any(character.isspace() for token in tokens for character in token)


def test_pieces_spell_the_word_and_part_compounds() -> None:
    cut = Subwords.learn(WORDS, 0.5)
    for word in ("Wassertisch", "Schneehund", "Straßenecke", "Xylophon", "Hund▁Haus", "字", "\u200b"):
        tokens, counts = cut.tokens([word])
        assert counts == [len(tokens)] >= [1]
        assert "".join(tokens).replace("▁", "") in (word.lower().replace("▁", ""), word)
    tokens, _ = cut.tokens(["Schneewasser"])
    assert len(tokens) >= 2  # of some words a piece is the stem
    assert "schnee" in " ".join(tokens)


def test_the_same_words_give_the_same_model_in_any_order() -> None:
    one, other = (Subwords.learn(Counter(dict(order)), 0.5) for order in (WORDS.items(), [*WORDS.items()][::-1]))
    assert one.tokenizer.model == other.tokenizer.model
    assert Subwords(one.tokenizer.model).tokens(WORDS) == one.tokens(WORDS)


def test_punctuation_makes_no_other_words() -> None:
    assert Beginnings().tokens(["Hunde,", "Katzen", "?!"]) == (["hunde", "katzen", "?", "!"], [1, 1, 2])
    words = {word: count for word, count in WORDS.items() if word.isalpha()}
    with_commas = Counter({f"{word}{mark}": count for word, count in words.items() for mark in ("", ",")})
    plain = Counter({word: 2 * count for word, count in words.items()})
    assert Subwords.learn(with_commas, 0.5).tokenizer.model == Subwords.learn(plain, 0.5).tokenizer.model


@pytest.mark.parametrize("words", [[], [""], ["\0"], ["▁"], ["\u200b"], ["x" * 5000]])
def test_nothing_to_cut(words: list[str]) -> None:
    with pytest.raises(ValueError, match="no words"):
        Subwords.learn(Counter(words), 0.1)


def test_fewer_pieces_than_characters_are_asked_for() -> None:
    cut = Subwords.learn(Counter(chr(0x4E00 + number) for number in range(300)), 0.03)
    assert cut.tokens([chr(0x4E00 + 299)])[1] == [1] or cut.tokenizer.size >= 300


def test_runs_are_cut_into_pieces_of_whole_words() -> None:
    lines = Counter("".join(pair.source[:-1]).lower().translate(IDEOGRAPHS) + "。" for pair in pairs(200, seed=1))
    cut = Beginnings()
    assert cut.tokens([("狗", "猫"), "狗猫"]) == (["狗", "猫", "狗", "猫"], [1, 1, 2])  # nothing is learnt yet
    cut.runs = Subwords.learn_runs(lines, 5)
    run = "roterhundhund".translate(IDEOGRAPHS)
    tokens, counts = cut.tokens([tuple(run), "x", run])
    pieces = tokens[: tokens.index("x")]
    assert tokens == [*pieces, "x", *pieces]
    assert 1 < len(pieces) < len(run) == len("".join(pieces))
    assert [*counts[len(run) :]] == [1, len(pieces)]
    assert [len(piece) for piece in pieces] == np.diff(np.flatnonzero([*counts[: len(run)], 1])).tolist()
    assert cut.tokens([(run,)]) == cut.tokens([run])  # a word between spaces, and no run of characters
    assert cut.tokens([("เก่", "า")])[1][0] == 1  # characters never seen
    assert Subwords.learn_runs(WORDS, 5) is None


def test_bytes_that_are_no_model() -> None:
    for damaged in (b"", b"no model"):
        with pytest.raises(InputError, match=r"^x\.aligner: not a SentencePiece model, or damaged$"):
            Subwords(damaged, name="x.aligner")
