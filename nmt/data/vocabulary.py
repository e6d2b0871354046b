"""The four token ids that mean the same in every vocabulary."""

from __future__ import annotations

from typing import Final

PAD: Final = 0
"""Fills a row of a batch after its sentence has ended."""

UNK: Final = 1
"""Stands for text that the vocabulary cannot spell."""

BOS: Final = 2
"""Begins a target sentence as the decoder's first input; never stored, never predicted."""

EOS: Final = 3
"""Ends a sentence; added when a batch is made, never stored."""
