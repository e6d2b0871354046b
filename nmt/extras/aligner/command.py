"""`nmt aligner`, and the options of `nmt align` for aligners that are learnt from text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from nmt.cli import options
from nmt.cli.align import OF_MODELS, OF_TWO_DIRECTIONS
from nmt.cli.conflicts import Excludes, Needs
from nmt.core.memory import gc_paused

if TYPE_CHECKING:
    from nmt.cli.align import AlignOptions
else:
    AlignOptions = object


@dataclass(frozen=True)
class AlignerOptions:
    """The options of `nmt aligner`."""

    model: options.Model = None
    source: Annotated[Path | None, typer.Option("--source", "-s", metavar="FILE")] = None
    """Sentences to learn from."""
    target: Annotated[Path | None, typer.Option("--target", "-t", metavar="FILE")] = None
    """Their translations."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """Write an aligner that needs no model to this file; without this option, learn for MODEL and write to its run."""
    earlier: Annotated[Path | None, typer.Option("--continue", metavar="FILE")] = None
    """With --output: go on from the aligner in this file, which learns from further pairs."""
    seed: Annotated[int | None, typer.Option(metavar="N", min=0)] = None
    """Seed of the alignment layer. Default: 1."""
    to: options.To = None
    device: options.Device = "auto"
    precision: options.UsePrecision = "auto"
    overrides: options.Overrides = None


CONFLICTS = (
    Needs("source", "target", "--source and --target go together; give both"),
    Needs("target", "source", "--source and --target go together; give both"),
    Needs("output", "source", "--output needs text to learn from; give --source and --target as well"),
    Excludes("output", "model to seed overrides device precision",
        "--output: writes an aligner that needs no model; leave out {others}, or --output"),
    Needs("earlier", "output", "--continue goes on from an aligner that needs no model; give --output as well"),
)  # fmt: skip


@options.with_options(AlignerOptions, CONFLICTS)
def aligner(given: AlignerOptions) -> Callable[[], object]:
    """Learn to align words from sentence pairs.

    With --output, learns from --source and --target, without a translation model; with --continue as well, learns on
    from an aligner that was learnt before. Otherwise learns for a trained model, from its training pairs or the given
    ones, and also trains an alignment layer on top of the model, for nmt align --method trained."""
    if given.output is not None:
        from nmt.extras.aligner.align import learn_from_text

        assert given.source is not None
        assert given.target is not None
        return partial(learn_from_text, given.source, given.target, given.output, given.earlier)
    changes = options.with_search(given.overrides, {"to": given.to})
    options.check_model(given.model, changes, needs_language=given.source is not None)
    with gc_paused():
        import nmt
        from nmt.extras.aligner.model_aligner import learn_for_model

        nmt.accelerate()
    return partial(
        learn_for_model, given.model, changes, given.source, given.target,
        seed=1 if given.seed is None else given.seed, device=given.device, precision=given.precision,
    )  # fmt: skip


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
