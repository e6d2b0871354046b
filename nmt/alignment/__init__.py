"""Word alignments from attention weights: words, links, symmetrization, files and error rate.

Soft alignments by attention (`forced`, `permuted`, `effective`) and gradients (`gradient`) use PyTorch. All other
modules are plain functions of numpy arrays and records, and import no torch. Conventions:

- A soft alignment is a matrix `weights_TS`, one row per target token, one column per source token; each row is a
  distribution over the source and sums to 1, unless two directions are joined (see `nmt.alignment.directions`) or
  gradients keep their magnitude.
- A hard alignment is a tuple of links (source index, target index), counted from 0, sorted, without repeats.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Link: TypeAlias = tuple[int, int]
"""A link: (source index, target index), counted from 0, in the order of the Pharaoh format."""

Links: TypeAlias = tuple[Link, ...]
"""The links of one sentence pair, sorted, without repeats."""

Weights: TypeAlias = NDArray[np.floating]
"""A soft alignment: rows are target tokens, columns are source tokens."""

METHODS = ("attention", "shifted-attention", "gradient", "input-x-gradient")
"""The methods of every model."""

Method: TypeAlias = str
"""The source of a soft alignment: the model's attention when it produces a word, or once it has read it, gradients (see
`nmt.alignment.gradient`), or an aligner that was learnt for the model (`nmt aligner`)."""

GradientMethod: TypeAlias = Literal["gradient", "input-x-gradient"]

Magnitude: TypeAlias = Literal["relative", "raw", "signed"]
"""The scale of a matrix of gradients: rows that sum to 1, unscaled absolute values, or unscaled values with their
sign."""
