"""Alignments by one model: of words and of their subwords, of text and of white-space words."""

from __future__ import annotations

import numpy as np

from nmt.translator.aligner import without_prefix
from nmt.translator.translator import Translator
from tests.workflows.test_align_models import TEXT


def test_subwords_are_the_same_and_scores_are_those_between_words(translator: Translator) -> None:
    for text in (False, True):
        words = translator.align(*TEXT, text=text)
        pieces = translator.align(*TEXT, text=text, level="subword")
        for one, other in zip(words, pieces, strict=True):
            assert one.scored_links() == other.scored_links()
            for name in ("links", "source_spans", "target_spans"):
                assert getattr(one, name) == getattr(other, name)
            assert [score for _, score in one.scored_links()] == [one.weights_TS[t, s] for s, t in sorted(one.links)]
    plain, ordinary = (translator.align(*TEXT, text=text, level="subword") for text in (False, True))
    for one, other in zip(plain, ordinary, strict=True):
        assert one.source_tokens == other.source_tokens
        np.testing.assert_array_equal(one.weights_TS, other.weights_TS)


def test_text_that_is_tokenised_already_is_aligned_as_ever(translator: Translator) -> None:
    """If each word is one word in both modes, and no piece has two, --text changes nothing."""
    lines = ["Hund und Katze", "eins zwei grün"], ["dog and cat", "one two green"]
    for one, other in zip(translator.align(*lines), translator.align(*lines, text=True), strict=True):
        assert (one.links, one.source_words, one.source_spans) == (other.links, other.source_words, other.source_spans)
        np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-12)


def test_a_row_whose_weight_lies_on_the_token_is_uniform() -> None:
    weights_TS = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0.6]], np.float32)
    np.testing.assert_allclose(without_prefix(weights_TS, 1, "relative"), [[0.5, 0.5], [1, 0], [0.25, 0.75]])
    np.testing.assert_array_equal(without_prefix(weights_TS, 1, "raw"), weights_TS[:, 1:])
