"""Unknown words of a translation, copied from where the model looked (Luong et al. 2015, "Addressing the Rare Word
Problem in Neural Machine Translation", with attention for their positions)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokenizer import EncodedWords

UNKNOWN_MARK = "⁇"
"""What the tokenizer writes for an unknown token (U+2047)."""


def copied(source: EncodedWords, tokens: Sequence[int], weights_TS: NDArray[np.float32], *, unknown: int) -> list[str]:
    """For each ``unknown`` token what to write instead: the source piece that got most of its attention, if that is
    unknown itself, else the whole word that the piece is part of. End-of-sentence, the last column, is not looked at.
    """
    texts = []
    for time, token in enumerate(tokens):
        if token == unknown:
            piece = int(weights_TS[time, :-1].argmax())
            is_unknown = source.ids[piece] == unknown
            texts.append(source.written[piece] if is_unknown else source.words[source.word_of_piece[piece]])
    return texts


def with_copies(text: str, copies: Sequence[str]) -> str:
    """``text`` with its marks of unknown tokens replaced, in order. Text that has other marks beside them, which stood
    in the vocabulary, is left as it is."""
    parts = text.split(UNKNOWN_MARK)
    if len(parts) != len(copies) + 1:
        return text
    return "".join(part + copy for part, copy in zip(parts, [*copies, ""], strict=True))
