"""The exact mapping from the pieces of a line to the user's words, in any script: each word's pieces are those that it
has when it is encoded alone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from operator import itemgetter

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.alignment.words import NO_WORD, parts, to_words, to_words_of_parts
from nmt.data.config import SubwordsConfig
from nmt.data.tokenizer import Tokenizer
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.words import text_words
from tests.data.conftest import Pairs, Tokenizers
from tests.data.scripts import SPACES, WORDS

KINDS = ["unigram", "bpe", "char", "word", "bytes"]


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[str], str]:
    """White-space words, and a line of them."""
    words = draw(st.lists(st.sampled_from(WORDS), max_size=6))
    gaps = [draw(st.sampled_from(SPACES)) for _ in range(len(words) + 1)]
    ends = draw(st.tuples(st.booleans(), st.booleans()))
    line = "".join(gap + word for gap, word in zip(gaps, words, strict=False))
    return words, (line if ends[0] else line[len(gaps[0]) :]) + (gaps[-1] if ends[1] else "")


def any_line(test: Callable[..., None]) -> Callable[..., None]:
    """Decorates a test of a kind of vocabulary and a line."""
    drawn = given(line=lines().map(itemgetter(1)))(example(line=" ".join(WORDS))(test))
    decorated: Callable[..., None] = pytest.mark.parametrize("kind", KINDS)(settings(max_examples=30)(drawn))
    return decorated


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(case=lines())
@example(case=(WORDS, " ".join(WORDS)))
def test_each_words_pieces_are_those_that_it_has_alone(
    tokenizers: Tokenizers, kind: str, case: tuple[list[str], str]
) -> None:
    words, line = case
    tokenizer = tokenizers[kind].source
    if kind in ("char", "bytes"):  # which do not normalise, and spell SentencePiece's own mark
        words, line = [word for word in words if "\u2581" not in word], re.sub(r"\S*\u2581\S*", "", line)
    encoded = tokenizer.encode_words(line)
    assert list(encoded.words) == words == [line[begin:end] for begin, end in encoded.word_spans]
    alone = [tokenizer.encode(word) for word in words]
    assert list(encoded.ids) == [piece for pieces in alone for piece in pieces]
    assert list(encoded.word_of_piece) == [word for word, pieces in enumerate(alone) for _ in pieces]


@any_line
def test_pieces_lie_one_after_the_other_and_cover_what_is_text(tokenizers: Tokenizers, kind: str, line: str) -> None:
    encoded = tokenizers[kind].source.encode_words(line)
    place = 0
    for begin, end in encoded.piece_spans:
        assert place <= begin <= end <= len(line)
        assert not tokenizers[kind].source.encode(line[place:begin])  # nothing but white space
        place = end
    assert not tokenizers[kind].source.encode(line[place:])


@any_line
def test_an_identity_pair_gives_the_diagonal(tokenizers: Tokenizers, kind: str, line: str) -> None:
    tokenizer = tokenizers[kind].source
    for spans in (None, text_words(line)):
        encoded = tokenizer.encode_words(line, spans)
        weights = np.eye(len(encoded.ids) + 1)
        if spans is None:
            of_piece, count = [*encoded.word_of_piece, NO_WORD], len(encoded.words)
            found = to_words(weights, of_piece, of_piece, count, count)
            has_pieces = {*encoded.word_of_piece}
        else:
            of_parts = parts(encoded)
            found = to_words_of_parts(weights, of_parts, of_parts)
            has_pieces = {*of_parts.word_N.tolist()}
        for word, row in enumerate(found):  # a word that normalisation deletes has no piece to be known by
            expected = np.eye(len(row))[word] if word in has_pieces else np.full(len(row), 1 / len(row))
            np.testing.assert_allclose(row, expected, atol=1e-12)


@any_line
def test_text_words_share_a_piece_by_the_characters_that_it_covers(
    tokenizers: Tokenizers, kind: str, line: str
) -> None:
    words = text_words(line)
    encoded = tokenizers[kind].source.encode_words(line, words)
    found = parts(encoded)
    word_of_character = {place: word for word, span in enumerate(words) for place in range(*span)}
    for piece, (begin, end) in enumerate(encoded.piece_spans):
        characters = [word_of_character[place] for place in range(begin, end) if place in word_of_character]
        if not characters:  # added by normalisation: goes with what stands there, or next, or last of all
            following = [word_of_character[place] for place in range(begin, len(line)) if place in word_of_character]
            characters = [following[0] if following else len(words) - 1]
        assert encoded.word_of_piece[piece] == max(sorted(set(characters)), key=characters.count)
        mine = found.piece_N == piece
        assert found.word_N[mine].tolist() == sorted(set(characters))
        for word, start, stop in zip(found.word_N[mine], found.begin_N[mine], found.end_N[mine], strict=True):
            assert start == pytest.approx(sum(each < word for each in characters) / len(characters))
            assert stop == pytest.approx(sum(each <= word for each in characters) / len(characters))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(line=lines().map(itemgetter(1)), seed=st.integers(0, 99))
@example(line=" ".join(WORDS), seed=0)
def test_a_sampled_segmentation_has_its_places(tokenizers: Tokenizers, kind: str, line: str, seed: int) -> None:
    tokenizer = tokenizers[kind].source
    for words in (None, text_words(line)):
        found = tokenizer.sample_words(line, alpha=0.3, seed=seed, word_spans=words)
        best = tokenizer.encode_words(line, words)
        assert list(found.ids) == tokenizer.sample(line, alpha=0.3, seed=seed)
        assert (found.words, found.word_spans) == (best.words, best.word_spans)
        # A word begins with the same character, whatever pieces it is cut into.
        for each in set(found.word_of_piece) | set(best.word_of_piece) if words is None else ():
            begins = [
                next(span[0] for span, word in zip(one.piece_spans, one.word_of_piece, strict=True) if word == each)
                for one in (found, best)
            ]
            assert begins[0] == begins[1]
        covered = [{place for span in one.piece_spans for place in range(*span)} for one in (found, best)]
        assert covered[0] == covered[1]


@any_line
def test_the_likeliest_sample_lies_where_sentencepiece_says(tokenizers: Tokenizers, kind: str, line: str) -> None:
    tokenizer = tokenizers[kind].source
    is_unigram = kind in ("unigram", "bytes")
    found = tokenizer.sample_words(line, alpha=1e7 if is_unigram else 0, seed=1)
    best = tokenizer.encode_words(line)
    if found.ids == best.ids or not is_unigram:  # of two that are equally probable another one may be drawn
        assert found == best


@pytest.mark.parametrize("option", ["add_dummy_prefix=false", "treat_whitespace_as_suffix=true"])
def test_without_the_leading_marker(pairs: Pairs, option: str) -> None:
    """A model of the user's own need not put U+2581 in front of the first word, or of any."""
    model = io.BytesIO()
    name, value = option.split("=")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(source for source, _ in pairs), model_writer=model, vocab_size=120, num_threads=1,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2, **{name: value == "true"},
    )  # fmt: skip
    tokenizer = Tokenizer(model.getvalue())
    for text, _ in pairs[:50]:
        line = text.replace(" ", " \t ")
        encoded = tokenizer.encode_words(line)
        assert not tokenizer.pieces(encoded.ids)[0].startswith("\u2581")
        for word, whole in enumerate(text.split()):
            written = (each for each, of in zip(encoded.written, encoded.word_of_piece, strict=True) if of == word)
            assert "".join(written) == whole


@pytest.mark.parametrize("kind", ["unigram", "bpe", "word"])
def test_tokenised_text_is_read_as_the_ordinary_text_that_the_vocabulary_has_learnt(
    tokenizers: Tokenizers, pairs: Pairs, kind: str
) -> None:
    for ordinary, _ in pairs[1:50]:
        spans = text_words(ordinary)
        words = [ordinary[begin:end] for begin, end in spans]
        encoded = tokenizers[kind].source.encode_tokens("  ".join(words))
        expected = tokenizers[kind].source.encode_words(ordinary, spans)
        assert (encoded.ids, encoded.word_of_piece) == (expected.ids, expected.word_of_piece)
        assert encoded.words == tuple(words)


def test_tokenised_text_stays_as_it_is_where_the_vocabulary_has_learnt_such_text(
    tokenizers: Tokenizers, pairs: Pairs
) -> None:
    tokenised = [tuple(re.sub("([.!?])", r" \1", side) for side in pair) for pair in pairs]
    learnt = train_tokenizers(tokenised, SubwordsConfig(kind="bpe", size=120)).source
    for line, _ in tokenised[:50]:
        for tokenizer in (learnt, tokenizers["char"].source):
            assert tokenizer.encode_tokens(line) == tokenizer.encode_words(line)
