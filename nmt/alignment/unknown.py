"""Unknown words of a translation, copied from the most attended source words (Luong et al. 2015, "Addressing the Rare
Word Problem in Neural Machine Translation", with attention for their positions)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokenizer import EncodedWords

UNKNOWN_MARK = "⁇"
"""Text that the tokenizer writes for an unknown token (U+2047)."""


def copied(source: EncodedWords, tokens: Sequence[int], weights_TS: NDArray[np.float32], *, unknown: int) -> list[str]:
    """Finds the replacement of each ``unknown`` token: the source piece with most of its attention, if that piece is
    unknown itself, else the whole word of the piece. End-of-sentence, the last column, is left out."""
    texts = []
    for time, token in enumerate(tokens):
        if token == unknown:
            piece = int(weights_TS[time, :-1].argmax())
            is_unknown = source.ids[piece] == unknown
            texts.append(source.written[piece] if is_unknown else source.words[source.word_of_piece[piece]])
    return texts


def with_copies(text: str, copies: Sequence[str]) -> str:
    """Replaces the marks of unknown tokens in ``text`` in their order. The text does not change if the numbers of marks
    and copies differ, because then the vocabulary itself contains the mark."""
    parts = text.split(UNKNOWN_MARK)
    if len(parts) != len(copies) + 1:
        return text
    return "".join(part + copy for part, copy in zip(parts, [*copies, ""], strict=True))
