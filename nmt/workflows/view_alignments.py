"""Alignments of sentence pairs as one HTML file, by one or several methods and heads side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from nmt.alignment import Method
from nmt.alignment.error_rate import AlignmentScore, score_pair
from nmt.alignment.formats import Alignment
from nmt.alignment.viewer import ViewerWriter
from nmt.alignment.views import Side, View
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.workflows.align import Reverse, Window, gold_of, meet_files, windows

if TYPE_CHECKING:
    from nmt.alignment.directions import Join
    from nmt.workflows.translator import Translator

Models: TypeAlias = Mapping[Side, "Translator"]
"""One or two, of which the backward one translates target to source."""


def view(
    model: str | None,
    overrides: Sequence[str],
    *,
    source: Path,
    target: Path | None,
    reverse: Reverse | None,
    views: Sequence[View],
    output: Path,
    gold: Path | None,
    gold_base: int,
    text: bool,
    device: str,
    precision: str,
) -> dict[str, AlignmentScore]:
    """Writes a page of all pairs of lines, or of source lines and their translations by the model, by each of
    ``views``.

    With ``gold`` prints AER, precision and recall of each on stderr, and returns them. Raises InputError for what
    ``nmt.workflows.align.align`` raises it for, and for heads that a model does not have.
    """
    meet_files(source, target, gold)
    refuse_overwriting(output, source, target, gold)
    from nmt.workflows.both_directions import BothDirections
    from nmt.workflows.translator import load  # only now: torch takes a second to import

    models: dict[Side, Translator] = {"forward": load(model, device=device, precision=precision, overrides=overrides)}
    if reverse is not None:
        models["backward"] = load(reverse.model, device=device, precision=precision, overrides=overrides)
        BothDirections(models["forward"], models["backward"], reverse.join)  # refuses two of one run
    shown = expanded(views, models)
    wanted = gold_of(gold, source, target, base=gold_base, text=text)
    totals = dict.fromkeys((each.name for each in shown), AlignmentScore())
    facts = [" – ".join(path.name for path in (source, target) if path is not None)]
    facts += [str(each.trained.checkpoint) for each in models.values()]
    with (
        ViewerWriter(output, list(totals), facts=facts, gold=wanted) as writer,
        closing(windows(models["forward"], source, target)) as all_pairs,
    ):
        for window in all_pairs:
            found = aligned(window, shown, models, None if reverse is None else reverse.join, text=text)
            for number, alignments in enumerate(zip(*found, strict=True), window.first):
                writer.write(alignments)
                if wanted is not None:
                    for name, alignment in zip(totals, alignments, strict=True):
                        totals[name] += score_pair(alignment.links, wanted[number])
    if wanted is None:
        return {}
    for name, total in totals.items():
        print(total.line() if len(totals) == 1 else f"{name}: {total.line()}", file=sys.stderr)
    return totals


def expanded(views: Sequence[View], models: Models) -> list[View]:
    """The views, each once, with one for each head where that is asked for. Raises InputError for a method or heads
    that a model does not have."""
    found: dict[View, None] = {}
    for each in views:
        asked = [models[side] for side in _sides(each, models)]
        for model in asked:
            model.check_method(each.method)
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


def _sides(asked: View, models: Models) -> tuple[Side, ...]:
    return tuple(models) if asked.side is None else (asked.side,)


def aligned(
    window: Window, views: Sequence[View], models: Models, join: Join | None, *, text: bool
) -> list[list[Alignment]]:
    """For each view one alignment of each pair, source to target."""
    alone: dict[View, list[Alignment]] = {}
    for side in get_args(Side):
        asked = [replace(each, side=side) for each in views if side in _sides(each, models)]
        for heads in dict.fromkeys(each.heads for each in asked):
            methods = list(dict.fromkeys(each.method for each in asked if each.heads == heads))
            for method, found in _by(models[side], side, heads, methods, window, text=text).items():
                alone[View(method, heads, side=side)] = found
    return [_of(each, alone, join) for each in views]


def _by(
    model: Translator, side: Side, heads: str | None, methods: Sequence[Method], window: Window, *, text: bool
) -> dict[Method, list[Alignment]]:
    if heads is not None:
        model = model.extracting(model.extraction.model_copy(update={"heads": heads}))
    texts = (window.sources, window.targets) if side == "forward" else (window.targets, window.sources)
    return model.align_by(methods, *texts, first_line=window.first + 1, text=text)


def _of(asked: View, alone: Mapping[View, Sequence[Alignment]], join: Join | None) -> list[Alignment]:
    forward, backward = (replace(asked, side=side) for side in get_args(Side))
    if asked.side is None and join is not None:
        return [join(one, other) for one, other in zip(alone[forward], alone[backward], strict=True)]
    if asked.side == "backward":
        return [each.turned() for each in alone[backward]]
    return list(alone[forward])
