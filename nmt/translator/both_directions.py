"""Alignment by two models, one for each direction.

>>> import nmt
>>> from nmt.alignment.directions import join
>>> from nmt.translator.both_directions import BothDirections
>>> both = BothDirections(nmt.load("runs/de-en"), nmt.load("runs/en-de"), join("grow-diag-final-and"))
>>> (alignment,) = both.align(["Der Hund bellt oft."], ["The dog often barks."])
>>> alignment.source_words
('Der', 'Hund', 'bellt', 'oft.')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.alignment import Method
from nmt.alignment.directions import Join
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.translator.translation import Results
from nmt.translator.translator import Translator


@dataclass(frozen=True)
class BothDirections:
    """Aligns sentence pairs with a model that translates source to target and one that translates target to source.
    Raises InputError if both are from one run and translate into the same language."""

    forward: Translator
    backward: Translator
    join: Join

    def __post_init__(self) -> None:
        one, other = self.forward.trained, self.backward.trained
        if one.source_prefix == other.source_prefix and one.run == other.run:
            raise InputError(f"{other.checkpoint}: is of the same run as the forward model; name the other direction")

    def align(
        self, sources: Sequence[str], targets: Sequence[str], *, method: Method = "attention", first_line: int = 1,
        text: bool = False,
    ) -> Results[Alignment]:  # fmt: skip
        """Aligns the words of each pair; see `Translator.align`. The subwords of the models may differ."""
        forward = self.forward.align(sources, targets, method=method, first_line=first_line, text=text)
        backward = self.backward.align(targets, sources, method=method, first_line=first_line, text=text)
        return Results(self.join(one, other) for one, other in zip(forward, backward, strict=True))
