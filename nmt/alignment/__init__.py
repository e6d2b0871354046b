"""From attention weights to word alignments: words, links, symmetrization, files, error rate and figures.

What weighs is on PyTorch: attention (`forced`), gradients (`gradient`), what is learnt (`hmm`, `aligner`, `layer`). All
else is plain functions of numpy arrays and records, and imports no torch. The conventions, everywhere:

- A soft alignment is a matrix `weights_TS`, one row per target token, one column per source token; each row is a
  distribution over the source and sums to 1, but where two directions are joined (see `nmt.alignment.directions`).
- A hard alignment is a tuple of links (source index, target index), counted from 0, sorted, without repeats.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Link: TypeAlias = tuple[int, int]
"""(source index, target index), counted from 0: the order of the Pharaoh format."""

Links: TypeAlias = tuple[Link, ...]
"""The links of one sentence pair, sorted, without repeats."""

Weights: TypeAlias = NDArray[np.floating]
"""A soft alignment: rows are target tokens, columns are source tokens."""

Method: TypeAlias = Literal["attention", "shifted-attention", "gradient", "input-x-gradient", "trained"]
"""Where a soft alignment comes from: the model's attention when it produces a word, or once it has read it, gradients
(see `nmt.alignment.gradient`), or what was learnt for it (see `nmt.extras.word_aligner`)."""
