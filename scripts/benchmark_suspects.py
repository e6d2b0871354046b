"""Average precision of ``nmt align --suspects`` for pairs that were spoilt on purpose, and of other scores.

    python scripts/benchmark_suspects.py MODEL SOURCE TARGET [--reverse MODEL] [--pairs 2000] [--seed 1]

Takes the first pairs of a corpus, exchanges the targets of a random 5 % among each other and leaves out, of one side of
another 5 %, two to half of the words, which stand together. Ranks all pairs by each of several scores and prints the
average precision (of the spoilt pairs, the mean precision of the ranking down to each), for both sorts together and for
each alone beside the unspoilt pairs; then precision and recall of each kind of suspicion. With --reverse the scores use
a model of each direction. Prints a JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from measuring import print_table, report

import nmt
from nmt.alignment.directions import join
from nmt.core.errors import InputError
from nmt.data.corpus import read_lines
from nmt.extras.pages.corpus_filter import Kind, length, suspect, unlinked_share, usual_lengths
from nmt.translator.both_directions import BothDirections
from nmt.translator.translator import Translator
from nmt.workflows.align_models import pair_nlls

Fault: TypeAlias = Literal["swapped", "dropped"]

SHARE = 0.05
"""Share of the pairs with each fault."""


@dataclass(frozen=True)
class Pair:
    """A sentence pair, and the fault that was made in it."""

    source: str
    target: str
    fault: Fault | None = None


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--reverse", metavar="MODEL", help="translates the target to the source")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        lines = zip(read_lines(arguments.source), read_lines(arguments.target), strict=False)
        whole = [pair for pair in itertools.islice(lines, arguments.pairs) if all(map(str.strip, pair))]
        forward = nmt.load(arguments.model, precision="float32")
        backward = None if arguments.reverse is None else nmt.load(arguments.reverse, precision="float32")
        pairs = spoilt(whole, random.Random(arguments.seed))
        if not any(pair.fault for pair in pairs):
            raise InputError(f"{len(whole)} pairs are too few to spoil 5 % of them twice; give more lines or --pairs")
        measure(pairs, forward, backward)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print_table()


def spoilt(pairs: Sequence[tuple[str, str]], draw: random.Random) -> list[Pair]:
    """Returns the same pairs in the same order, some of which are no longer translations."""
    found = [Pair(*pair) for pair in pairs]
    count = round(SHARE * len(pairs))
    chosen = draw.sample(range(len(pairs)), 2 * count)
    swapped, dropped = chosen[:count], chosen[count:]
    for place, other in zip(swapped, swapped[1:] + swapped[:1], strict=True):
        found[place] = Pair(pairs[place][0], pairs[other][1], "swapped")
    for place in dropped:
        sides = list(pairs[place])
        side = draw.randrange(2)
        sides[side] = without_some(sides[side].split(), draw)
        found[place] = Pair(sides[0], sides[1], "dropped")
    return found


def without_some(words: Sequence[str], draw: random.Random) -> str:
    """Returns the text without two to half of its words, of which at least one remains."""
    count = min(draw.randint(2, max(2, len(words) // 2)), len(words) - 1)
    first = draw.randint(0, len(words) - count)
    return " ".join([*words[:first], *words[first + count :]])


def measure(pairs: Sequence[Pair], forward: Translator, backward: Translator | None) -> None:
    """Reports every figure."""
    faults = [pair.fault for pair in pairs]
    scores, kinds = judged(pairs, forward, backward)
    machine = forward.trained.compute
    for name, values in scores.items():
        report(
            f"average precision by {name}",
            average_precision(values, [each is not None for each in faults]),
            "",
            machine,
        )
        for fault in get_args(Fault):
            rows = [row for row, each in enumerate(faults) if each in (None, fault)]
            found = average_precision([values[row] for row in rows], [faults[row] is not None for row in rows])
            report(f"average precision by {name}, {fault} alone", found, "", machine)
    for kind in get_args(Kind):
        marked = [faults[row] for row, each in enumerate(kinds) if kind in each]
        right = sum(each is not None for each in marked)
        report(f"{kind}: marked pairs", len(marked), "pairs", machine)
        if marked:
            report(f"{kind}: precision", right / len(marked), "", machine)
            report(f"{kind}: recall", right / sum(each is not None for each in faults), "", machine)


def judged(
    pairs: Sequence[Pair], forward: Translator, backward: Translator | None
) -> tuple[Mapping[str, Sequence[float]], Sequence[Iterable[Kind]]]:
    """Computes each score of each pair, higher for worse pairs, and the kinds of suspicion."""
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    lengths = usual_lengths((length(pair.source), length(pair.target)) for pair in pairs)
    z_N = np.array([lengths.z(pair.source, pair.target) for pair in pairs])
    nlls = pair_nlls(forward, backward, sources, targets)
    own = forward.align(sources, targets)
    found = own if backward is None else BothDirections(forward, backward, join()).align(sources, targets)
    scores = {
        "unlinked words": [unlinked_share(each) for each in found],
        "best weight of each word": [1 - mean_best(each.weights_TS) for each in found],
    }
    if backward is not None:
        product = BothDirections(forward, backward, join("soft-product")).align(sources, targets)
        scores["best product of weights of each word"] = [1 - mean_best(np.sqrt(each.weights_TS)) for each in product]
        scores["nll of one model"] = pair_nlls(forward, None, sources, targets)
    scores |= {"nll": nlls, "length |z|": np.abs(z_N).tolist(), "nll + z² / 2": (np.array(nlls) + z_N**2 / 2).tolist()}
    suspects = [
        suspect(line, source, target, alignment, nll=nll, lengths=lengths)
        for line, (source, target, alignment, nll) in enumerate(zip(sources, targets, found, nlls, strict=True), 1)
    ]
    return scores, [() if each is None else each.kinds for each in suspects]


def mean_best(weights_TS: npt.NDArray[np.floating]) -> float:
    """Computes the mean, over the words of both sides, of the largest weight of each."""
    best = [*weights_TS.max(axis=1), *weights_TS.max(axis=0)]
    return float(np.mean(best))


def average_precision(scores: Sequence[float], is_spoilt: Sequence[bool]) -> float:
    """Computes the mean, over the spoilt pairs, of the precision of the ranking down to each; of equal scores the first
    pair ranks first."""
    order = np.argsort(-np.array(scores), kind="stable")
    hits_N = np.array(is_spoilt)[order]
    precision_N = np.cumsum(hits_N) / np.arange(1, len(hits_N) + 1)
    return float(precision_N[hits_N].mean())


if __name__ == "__main__":
    main()
