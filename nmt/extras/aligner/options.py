"""The options of `nmt align` for aligners that are learnt from text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from nmt.cli.align import OF_MODELS, OF_TWO_DIRECTIONS
from nmt.cli.conflicts import Excludes, Needs

if TYPE_CHECKING:
    from nmt.cli.align import AlignOptions
else:
    AlignOptions = object

_learnt = partial(typer.Option, rich_help_panel="Aligners, without a model")


@dataclass(frozen=True)
class AlignByText(AlignOptions):
    """Has `nmt align` align without a model."""

    aligner: Annotated[Path | None, _learnt(metavar="FILE")] = None
    """Align with this file of nmt aligner --output, without a model."""
    learn: Annotated[bool, _learnt("--learn")] = False
    """Learn an aligner from these pairs and align them, without a model."""
    min_probability: Annotated[float | None, _learnt(metavar="X", min=0, max=1)] = None
    """The least probability of a link; a higher one gives fewer and surer links. Default: 0.25."""
    after: ClassVar[str] = "reverse_to"
    conflicts: ClassVar = (
        Excludes("learn", "aligner",
            "--learn learns from the given pairs, and --aligner has been learnt; leave one out"),
        Excludes("learn aligner", f"{OF_MODELS} {OF_TWO_DIRECTIONS}",
            "{option} aligns both directions together, without a model; leave out {others}"),
        Needs("learn aligner", "target", "{option} aligns given pairs; give --target as well"),
        Needs("min_probability", "learn aligner",
            "--min-probability is of what is learnt from text; give --learn or --aligner as well"),
        Excludes("learn aligner", "suspects",
            "--suspects asks a model how probable each pair is, and {option} has none; leave one out"),
    )  # fmt: skip

    def job(self) -> Callable[[], object]:
        if self.aligner is None and not self.learn:
            return super().job()
        from nmt.extras.aligner.align import align_learned

        return partial(align_learned, self.aligner, self.inputs, self.outputs, min_probability=self.min_probability)
