"""Noise on a sentence: the words lost, blanked and shuffled.

Lample et al. 2018, "Unsupervised Machine Translation Using Monolingual Corpora Only", section 2.3; with blanks Edunov
et al. 2018, "Understanding Back-Translation at Scale", section 3. Words are what white space separates. A sentence of
one word does not change: in a language without spaces this word is the whole sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DROPPED, BLANKED, DISTANCE = 0.1, 0.1, 3
"""Probabilities that a word is dropped and that it is blanked, and the maximum number of places that a word moves."""

BLANK = "<BLANK>"


def drop_words(words: Sequence[str], random: np.random.Generator) -> list[str]:
    """Drops each word with probability ``DROPPED``, but never all of them."""
    kept = [word for word, draw in zip(words, random.random(len(words)), strict=True) if draw >= DROPPED]
    return kept or [words[int(random.integers(len(words)))]]


def blank_words(words: Sequence[str], random: np.random.Generator) -> list[str]:
    """Replaces each word by ``BLANK`` with probability ``BLANKED``."""
    return [BLANK if draw < BLANKED else word for word, draw in zip(words, random.random(len(words)), strict=True)]


def shuffle_words(words: Sequence[str], random: np.random.Generator) -> list[str]:
    """Sorts the words by i + u_i, u_i uniform in [0, ``DISTANCE`` + 1): none moves by more than ``DISTANCE`` places."""
    keys = np.arange(len(words)) + random.uniform(0, DISTANCE + 1, len(words))
    return [words[place] for place in np.argsort(keys, kind="stable")]


def noised(sentence: str, random: np.random.Generator) -> str:
    """Applies all three kinds of noise to a sentence."""
    words = sentence.split()
    if len(words) < 2:
        return sentence
    return " ".join(shuffle_words(blank_words(drop_words(words, random), random), random))
