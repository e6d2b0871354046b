"""Does held-out likelihood choose the text aligner's settings as gold would? A table of both for each setting.

    python scripts/compare_aligner_settings.py train.de train.en --gold dev.de dev.en dev.align [--pairs N]

Each setting learns models of whole words, or of pieces, twice: from nine tenths of the pairs, for the probability of
the others, and from all pairs and the gold text, for AER (joined, as ``nmt align --learn`` does). The probability is
that of `nmt.extras.aligner.hmm`, by the forward algorithm: bits for each target word given the source, and for
each source word given the target; tokens that are spelt alike have no bonus. Prints a JSON line for each figure, and a
table on stderr.

    python scripts/compare_aligner_settings.py train.de train.en --gold dev.de dev.en dev.align \\
        --units w,4,p.25 4,p.16,p.4

compares means over kinds of word units instead, by AER with its interval and the processor seconds of learning: w are
whole words, 4 the first four letters, p.25 pieces with a vocabulary of 0.25 of the distinct words.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmark_alignment import judge, read
from measuring import plainly, print_table, report
from numpy.typing import NDArray

from nmt.alignment.error_rate import Gold, score
from nmt.alignment.formats import read_gold
from nmt.core.device import compute
from nmt.extras.aligner import hmm
from nmt.extras.aligner.align import TextAligner
from nmt.extras.aligner.aligner import IndexedSentences, Member, TokenIndex, WordAligner, pair_hashes
from nmt.extras.aligner.hmm import Hmm, HmmPair, Tokens
from nmt.extras.aligner.word_units import Beginnings, Subwords

PART, MOST_HELD_OUT = 10, 2000
"""One pair of this many is held out, and the maximum number of pairs that are measured."""

SETTINGS: tuple[Mapping[str, float], ...] = (
    {},
    {"EMPTY_PROBABILITY": 0.02}, {"EMPTY_PROBABILITY": 0.05}, {"EMPTY_PROBABILITY": 0.2}, {"EMPTY_PROBABILITY": 0.3},
    {"PRIOR": 1e-4}, {"PRIOR": 1e-2}, {"FARTHEST_JUMP": 10}, {"FARTHEST_JUMP": 20},
    {"iterations": 2}, {"iterations": 10}, {"flat_iterations": 1}, {"flat_iterations": 6},
    {"share": 0.16}, {"share": 0.25}, {"share": 0.4}, {"share": 0.6},
    {"MOST_PAIRS": 1 << 14}, {"MOST_PAIRS": 1 << 13}, {"MOST_PAIRS": 1 << 12},
)  # fmt: skip
"""Changes of the usual settings: constants of the module, arguments of its ``learn``, and pieces in place of whole
words, of a vocabulary of this ``share`` of the distinct words."""


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--gold", type=Path, nargs=3, required=True, metavar=("SOURCE", "TARGET", "LINKS"))
    parser.add_argument("--pairs", type=int, help="only the first pairs")
    parser.add_argument("--units", nargs="+", metavar="KIND,KIND", help="means over kinds of word units")
    arguments = parser.parse_args()
    text = read(arguments.source, arguments.target, arguments.pairs)
    gold_text = read(arguments.gold[0], arguments.gold[1])
    lengths = [(len(one.split()), len(other.split())) for one, other in zip(*gold_text, strict=True)]
    gold = read_gold(arguments.gold[2], lengths)
    everything = [[*one, *other] for one, other in zip(text, gold_text, strict=True)]
    known = [[line for row, line in enumerate(side) if row % PART] for side in text]
    held_out = [side[::PART][:MOST_HELD_OUT] for side in text]
    machine = compute("cpu", "auto")
    if arguments.units:
        compare_units([each.split(",") for each in arguments.units], everything, gold_text, gold)
        print_table()
        return
    for changes in SETTINGS:
        name = ", ".join(f"{key} {value:g}" for key, value in changes.items()) or "usual"
        with changed(changes) as options:
            forward, backward = bits(learnt(*known, **options), *held_out)
            report(f"{name}: bits a target word", forward, "", machine)
            report(f"{name}: bits a source word", backward, "", machine)
            found = text_aligner([learnt(*everything, **options)], everything).align(*gold_text)
        report(f"{name}: AER", 100 * score([each.links for each in found], gold).aer, "%", machine)
    print_table()


def compare_units(
    settings: Sequence[Sequence[str]],
    text: Sequence[Sequence[str]],
    gold_text: Sequence[list[str]],
    gold: Sequence[Gold],
) -> None:
    """Reports the AER of means over kinds of word units, each of which is learnt once."""
    members: dict[str, tuple[Member, float]] = {}
    for kinds in settings:
        for kind in kinds:
            if kind not in members:
                began = time.process_time()
                member = learnt(
                    *text,
                    share=float(kind[1:]) if kind[0] == "p" else None,
                    letters=int(kind) if kind.isdigit() else None,
                )
                members[kind] = member, time.process_time() - began
        name = " ".join(kinds)
        found = text_aligner([members[kind][0] for kind in kinds], text).align(*gold_text)
        judge(name, [each.links for each in found], gold)
        report(f"{name}: learning", sum(members[kind][1] for kind in kinds), "processor seconds", "cpu")


def text_aligner(members: Sequence[Member], learnt_from: Sequence[Sequence[str]]) -> TextAligner:
    """Aligns by the mean over models that have learnt from a text."""
    return TextAligner(WordAligner(list(members), np.unique(pair_hashes(*map(sentences, learnt_from)))))


@contextmanager
def changed(changes: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Changes constants of the module in the body of the context; yields the arguments for its ``learn``."""
    equal, options = hmm._equal, {key: value for key, value in changes.items() if key.islower()}
    with ExitStack() as stack:
        for key, value in changes.items():
            if key.isupper():
                stack.enter_context(patch.object(hmm, key, value))
        empty = hmm.EMPTY_PROBABILITY  # by now a default of `Hmm`, which the change does not reach
        stack.enter_context(patch.object(hmm, "_equal", lambda tokens: replace(equal(tokens), empty_probability=empty)))
        yield options


def learnt(
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    share: float | None = None,
    letters: int | None = None,
    **options: Any,
) -> Member:
    """Learns models of whole words, of their first letters, or of their pieces."""
    text = [sentences(lines) for lines in (sources, targets)]
    units = [Beginnings(letters) if share is None else Subwords.learn(side.counts(), share) for side in text]
    sides = [TokenIndex(unit, {}).numbered(side) for unit, side in zip(units, text, strict=True)]
    counts: dict[str, Any] = {
        f"{side}_tokens": len(each.number) for side, each in zip(("source", "target"), sides, strict=True)
    }
    models = hmm.learn(sides[0].tokens_B, sides[1].tokens_B, **counts, **options)
    source, target = (TokenIndex(unit, each.number) for unit, each in zip(units, sides, strict=True))
    return Member(source, target, models)


def sentences(lines: Sequence[str]) -> IndexedSentences:
    """Splits lines into words."""
    return IndexedSentences(line.split() for line in lines)


def bits(member: Member, sources: Sequence[str], targets: Sequence[str]) -> tuple[float, float]:
    """Computes the bits of a target word given the source, and of a source word given the target; the bits of a word
    are those of all its pieces."""
    source_B, target_B = (
        side.numbered(sentences(lines)).tokens_B for side, lines in ((member.source, sources), (member.target, targets))
    )
    models = member.models
    links = dict(zip(models.pair_E.tolist(), range(len(models.pair_E)), strict=True))
    totals = np.zeros(2)
    for source, target in zip(source_B, target_B, strict=True):
        index_ST = pair_indices(links, models, source, target)
        totals += (
            log_likelihood(models.forward, index_ST, source, target),
            log_likelihood(models.backward, index_ST.T, target, source),
        )
    words = [sum(len(line.split()) for line in side) for side in (targets, sources)]
    forward, backward = -totals / math.log(2) / words
    return forward, backward


def pair_indices(links: Mapping[int, int], models: HmmPair, source: Tokens, target: Tokens) -> NDArray[np.int64]:
    """Returns the index of each pair of tokens; -1 for a pair without a probability."""
    known = models.source_tokens, models.target_tokens
    return np.array(
        [[links.get(s * known[1] + t, -1) if s < known[0] and t < known[1] else -1 for t in target] for s in source]
    ).reshape(len(source), len(target))


def log_likelihood(direction: Hmm, index_ST: NDArray[np.int64], source: Tokens, target: Tokens) -> float:
    """Computes the natural logarithm of p(target | source)."""
    if not len(source) or not len(target):
        return 0.0
    unseen_S, unknown_S = (
        values[source.clip(max=len(values) - 1)] for values in (direction.unseen_U1, direction.unknown_U1)
    )
    is_known_T = target < len(direction.empty_V1) - 1
    rest_ST = np.where(is_known_T, unseen_S[:, None], unknown_S[:, None])
    emitted_ST = np.where(index_ST >= 0, np.append(direction.link_E, 0)[index_ST], rest_ST)
    emptied_T = direction.empty_V1[target.clip(max=len(direction.empty_V1) - 1)]
    position_S, reach = np.arange(len(source)), len(direction.first_W1) - 1
    first_S = direction.first_W1[position_S.clip(max=reach)]
    jump_SS = direction.jump_J[(position_S - position_S[:, None]).clip(-reach, reach) + reach]
    jump_SS, first_S = jump_SS / jump_SS.sum(axis=1, keepdims=True), first_S / first_S.sum()
    start, state_S, total, p0 = 1.0, np.zeros(len(source)), 0.0, direction.empty_probability
    for emitted_S, emptied in zip(emitted_ST.T, emptied_T, strict=True):
        moved_S = start * first_S + state_S @ jump_SS
        state_S = (1 - p0) * moved_S * emitted_S + p0 * emptied * state_S
        start *= p0 * float(emptied)
        scale = start + state_S.sum()
        total += math.log(scale)
        start, state_S = start / scale, state_S / scale
    return total


if __name__ == "__main__":
    plainly(main)
