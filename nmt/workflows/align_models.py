"""Alignments by models: by attention or gradients, of one or of both directions, by one view or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast

from nmt.alignment import Method
from nmt.alignment.directions import Join
from nmt.alignment.error_rate import AlignmentScore
from nmt.alignment.formats import Alignment, Level
from nmt.alignment.views import Side, View
from nmt.core import log
from nmt.core.errors import InputError
from nmt.extras.inspect.corpus_reports import pair_nlls
from nmt.training import metrics
from nmt.translator.find_run import run_of, typed
from nmt.translator.views import Views
from nmt.workflows.align import Given, Written, check_files, gold_of, windows, write_alignments
from nmt.workflows.choose_heads import Criterion, choose_heads

if TYPE_CHECKING:
    from nmt.translator.aligner import Aligner
    from nmt.translator.translator import Loader, Translator


@dataclass(frozen=True)
class Reverse:
    """A model that translates the target to the source, and how its alignment is joined to the forward one's."""

    model: str
    join: Join


@dataclass(frozen=True)
class Models:
    """One model or two, and how they are run."""

    model: str | None
    """None: the run that trained last."""
    overrides: Sequence[str] = ()
    """Of the configurations of both."""
    reverse: Reverse | None = None
    device: str = "auto"
    precision: str = "auto"
    choose_heads: Criterion | None = None
    """How the heads of each are chosen that views without heads of their own go by; None: they are configured."""


@dataclass(frozen=True)
class ByModel:
    """The direction in which a model translates; heads that are looked at apart cost a passage through the model."""

    aligner: Aligner
    level: Level = "word"
    text: bool = False

    def by_views(
        self, views: Sequence[View], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> Mapping[View, list[Alignment]]:
        found: dict[View, list[Alignment]] = {}
        for heads in dict.fromkeys(each.heads for each in views):
            asked = {each: cast(Method, each.method) for each in views if each.heads == heads}
            aligner = self.aligner if heads is None else self.aligner.with_heads(heads)
            aligned = aligner.align(
                list(asked.values()), sources, targets, level=self.level, first_line=first_line, text=self.text
            )
            found |= {each: aligned[method] for each, method in asked.items()}
        return found


def align(
    models: Models, views: Sequence[View], given: Given, written: Written, load: Loader
) -> Mapping[str, AlignmentScore]:
    """Writes alignments of the given pairs, or of source lines and their translations by the model, by each of
    ``views``; of two models only between words.

    Raises InputError for what ``write_alignments`` raises it for, and for methods and heads that a model does not have.
    """
    check_files(given, written)
    loaded = _loaded(models, load)
    shown = expanded(views, loaded)
    if models.choose_heads is not None:
        loaded = _choosing(loaded, models.choose_heads, given)
    forward, backward = loaded["forward"], loaded.get("backward")

    def nlls(sources: Sequence[str], targets: Sequence[str], first_line: int) -> list[float]:
        return pair_nlls(forward, backward, sources, targets, first_line=first_line)

    totals = write_alignments(
        Views(
            shown,
            {side: ByModel(each.aligner, written.level, given.text) for side, each in loaded.items()},
            None if models.reverse is None else models.reverse.join,
        ),
        given,
        written,
        pairs_in_windows=windows(forward, given.source, given.target),
        facts=[str(each.trained.checkpoint) for each in loaded.values()],
        nlls=nlls,
    )
    if written.output is not None and not totals:  # else the scores are the last word
        checkpoint = forward.trained.checkpoint
        log.info(f"alignments: {written.output}")
        if (run_of(checkpoint) / metrics.FILE).exists():
            log.info(f"next: nmt report {typed(models.model, checkpoint)}")
    return totals


def _loaded(models: Models, load: Loader) -> dict[Side, Translator]:
    from nmt.translator.both_directions import BothDirections  # only now: torch takes a second to import

    def loaded(model: str | None) -> Translator:
        return load(model, device=models.device, precision=models.precision, overrides=models.overrides)

    forward = loaded(models.model)
    if models.reverse is None:
        return {"forward": forward}
    both = BothDirections(forward, loaded(models.reverse.model), models.reverse.join)  # refuses two of one run
    return {"forward": both.forward, "backward": both.backward}


def _choosing(loaded: Mapping[Side, Translator], by: Criterion, given: Given) -> dict[Side, Translator]:
    """The models with the heads that suit the first pairs best."""
    all_gold = gold_of(given) if by == "gold" else None
    with closing(windows(loaded["forward"], given.source, given.target, description="choose heads")) as first:
        window = next(first)
    gold = None if all_gold is None else all_gold[: len(window.sources)]
    pairs = {"forward": (window.sources, window.targets), "backward": (window.targets, window.sources)}
    turned = None if gold is None else [each.turned() for each in gold]
    return {
        side: choose_heads(model, by, *pairs[side], gold if side == "forward" else turned, text=given.text)
        for side, model in loaded.items()
    }


def expanded(views: Sequence[View], models: Mapping[Side, Translator]) -> list[View]:
    """The views, each once, with one for each head where that is asked for. Raises InputError for a method or heads
    that a model does not have."""
    found: dict[View, None] = {}
    for each in views:
        asked = [model for side, model in models.items() if each.side in (None, side)]
        for model in asked:
            model.aligner.check_method(cast(Method, each.method))
        heads = [] if each.heads is None else [_heads(each, model) for model in asked]
        if each.each:
            common = [head for head in heads[0] if all(head in names for names in heads)]
            if not common:
                raise InputError(
                    f"--view {each.name}: the two models have no such head in common; ask for those of one, "
                    f"forward:{each.name} or backward:{each.name}"
                )
            found |= dict.fromkeys(replace(each, heads=head, each=False) for head in common)
        else:
            found[each] = None
    return list(found)


def _heads(asked: View, model: Translator) -> list[str]:
    names = model.trained.model.decoder.head_names
    assert asked.heads is not None
    found = [name for name in names if fnmatchcase(name, asked.heads)]
    if not found:
        known = ", ".join(names) if len(names) <= 8 else f"{names[0]} to {names[-1]}"
        raise InputError(f"--view {asked.name}: fits no head of {model.trained.checkpoint}; it has {known}")
    return found
