"""The four token ids that have the same meaning in every vocabulary."""

from __future__ import annotations

from typing import Final

PAD: Final = 0
"""Padding, which fills a row of a batch after the end of its sentence."""

UNK: Final = 1
"""Unknown text, which the vocabulary cannot spell."""

BOS: Final = 2
"""Begin-of-sentence, the decoder's first input; it is never stored and never predicted."""

EOS: Final = 3
"""End-of-sentence; it is added when a batch is formed and never stored."""
