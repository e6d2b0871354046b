"""The options of `nmt align` for aligners that are learnt from text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from nmt.cli.align_options import OF_LINKS, OF_MODELS
from nmt.cli.conflicts import Excludes, Needs

if TYPE_CHECKING:
    from nmt.cli.align_options import AlignOptions
    from nmt.workflows.align import AlignmentInputs, AlignmentOutputs
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
        Excludes("learn aligner", f"{OF_MODELS} {OF_LINKS}",
            "{option} aligns both directions together, without a model; leave out {others}"),
        Needs("learn aligner", "target", "{option} aligns given pairs; give --target as well"),
        Needs("min_probability", "learn aligner",
            "--min-probability is of what is learnt from text; give --learn or --aligner as well"),
        Excludes("learn aligner", "suspects",
            "--suspects asks a model how probable each pair is, and {option} has none; leave one out"),
    )  # fmt: skip

    def run(self, inputs: AlignmentInputs, outputs: AlignmentOutputs) -> None:
        if self.aligner is None and not self.learn:
            super().run(inputs, outputs)
            return
        from nmt.extras.aligner.align import align_learned

        align_learned(self.aligner, inputs, outputs, min_probability=self.min_probability)
