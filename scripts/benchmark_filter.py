"""Shares of wrong pairs that `nmt filter` finds, and that `nmt align --suspects` finds among the same pairs.

    python scripts/benchmark_filter.py FILTER SOURCE TARGET [--model MODEL [--reverse MODEL]] [--seed 1]
    python scripts/benchmark_filter.py plant SOURCE TARGET [--pairs 20000] [--clean] [--options "..."] [--seed 1]

The second form measures how well `nmt filter` cleans the corpus that it learns from. It draws different pairs of a
corpus at random and plants wrong ones among them: 5 % wrong partners, 5 % with half of one side (of one word or more),
2 % in which one side is a copy of the other, and 2 % with source and target exchanged; with --clean none. Then it runs
`nmt filter --format kept` with the options given, and prints the share of each sort that is dropped, and of the right
pairs, processor time and wall time. No planted pair is a pair of the corpus. The other form:

FILTER is a file of ``nmt filter --save``. Of each pair of the corpus it makes one of each sort: a wrong partner (the
target of another pair at random), a dropped half (of one side half of the words, rounded down, at its beginning or its
end), the same with the final punctuation kept, the next pair's target behind the target, and a copy of the source.
A wrong pair is found where its score is worse than those of all but 1 % of the corpus's own pairs. Prints a JSON line
for the share that is found of each sort by each score, and a table on stderr; of `nmt filter` also by its own
threshold, and its speed. The scores of --suspects are those of `benchmark_suspects.py`.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from measuring import plainly, print_table, report

import nmt
from nmt.core.device import compute
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.extras.corpus.pair_filter.pair_filter import load_pair_filter
from nmt.extras.pages.corpus_filter import length, usual_lengths
from nmt.workflows.align_models import pair_nlls

Pairs: TypeAlias = Sequence[tuple[str, str]]
Scores: TypeAlias = npt.NDArray[np.floating]

FALSE_ALARMS = 0.01

PLANTED = {"wrong partners": 0.05, "halves": 0.05, "copies": 0.02, "swapped": 0.02}
"""Share of each sort of wrong pairs in the corpus."""


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", type=Path, help="a file of nmt filter --save, or the word plant")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--model", help="translates the source to the target; for the scores of --suspects")
    parser.add_argument("--reverse", metavar="MODEL", help="translates the target to the source")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=20_000, help="to plant wrong ones among")
    parser.add_argument("--clean", action="store_true", help="plant nothing")
    parser.add_argument("--options", default="", help="further options of nmt filter")
    arguments = parser.parse_args()
    machine = compute("cpu", "float32")
    if str(arguments.filter) == "plant":
        blocks = read_blocks(CorpusConfig(source=arguments.source, target=arguments.target))
        whole = [pair for block in blocks for pair in zip(block.sources, block.targets, strict=True) if all(pair)]
        whole = list(dict.fromkeys(whole))
        pairs, sorts = planted(whole, arguments.pairs, random.Random(arguments.seed), clean=arguments.clean)
        clean(pairs, sorts, shlex.split(arguments.options))
        print_table()
        return
    pair_filter = load_pair_filter(arguments.filter)
    blocks = read_blocks(CorpusConfig(source=arguments.source, target=arguments.target))
    whole = [pair for block in blocks for pair in zip(block.sources, block.targets, strict=True) if all(pair)]
    wrong = wrong_pairs(whole, random.Random(arguments.seed))

    def by_filter(pairs: Pairs) -> Mapping[str, Scores]:
        return {"filter": -pair_filter.scores(*zip(*pairs, strict=True))}

    started = time.process_time()
    by_filter(whole)
    report("filter: speed", len(whole) / (time.process_time() - started), "pairs per processor second", machine)
    own = -pair_filter.threshold(FALSE_ALARMS)
    report("filter: false alarms by its own threshold", float(np.mean(by_filter(whole)["filter"] > own)), "", machine)
    for sort, sample in wrong.items():
        report(f"filter: {sort} by its own threshold", float(np.mean(by_filter(sample)["filter"] > own)), "", machine)
    judges: list[Callable[[Pairs], Mapping[str, Scores]]] = [by_filter]
    if arguments.model is not None:
        judges.append(suspects(whole, arguments.model, arguments.reverse))
    for judge in judges:
        right = judge(whole)
        for sort, sample in wrong.items():
            for name, scores in judge(sample).items():
                report(f"{name}: {sort}", found(right[name], scores), "", machine)
    print_table()


def planted(
    whole: Pairs, count: int, draw: random.Random, *, clean: bool = False
) -> tuple[list[tuple[str, str]], list[str]]:
    """Replaces some pairs of a corpus by wrong ones; returns the pairs and the sort of each."""
    known = set(whole)
    pairs = draw.sample(whole, count)
    targets, sorts = [target for _, target in pairs], ["right"] * count
    free = draw.sample(range(count), count)
    for sort, share in {} if clean else PLANTED.items():
        for _ in range(round(share * count)):
            wrong = None
            while wrong is None or wrong in known:  # a pair that cannot be made wrong stays right
                row = free.pop()
                wrong = spoilt(pairs[row], sort, draw.choice(targets), draw)
            pairs[row], sorts[row] = wrong, sort
    return pairs, sorts


def spoilt(pair: tuple[str, str], sort: str, another: str, draw: random.Random) -> tuple[str, str]:
    """Returns the pair as a wrong one; half of a side of one word is the word itself."""
    side = draw.randrange(2)
    if sort == "wrong partners":
        return pair[0], another
    if sort == "halves":
        return replaced(pair, side, half(pair[side], draw))
    return (pair[side], pair[side]) if sort == "copies" else pair[::-1]


def clean(pairs: Pairs, sorts: Sequence[str], options: Sequence[str]) -> None:
    """Runs `nmt filter` on the pairs, and reports the shares that it drops."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("source", "target", "kept")]
        for side, file in enumerate(files[:2]):
            file.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        command = [sys.executable, "-m", "nmt", "filter", "-s", files[0], "-t", files[1], "-o", files[2]]
        started, before = time.perf_counter(), os.times()
        subprocess.run([*map(str, command), "--format", "kept", *options], check=True)
        wall, after = time.perf_counter() - started, os.times()
        kept = {tuple(line.split("\t")) for line in files[2].read_text(encoding="utf-8").split("\n")}
    dropped = [tuple(side.replace("\t", " ") for side in pair) not in kept for pair in pairs]
    for sort in dict.fromkeys(["right", *sorts]):
        shares = [is_dropped for is_dropped, each in zip(dropped, sorts, strict=True) if each == sort]
        report(f"{sort}: dropped", float(np.mean(shares)), f"of {len(shares):,}", "cpu")
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    report("time", wall, "s", "cpu")
    report("processor time", seconds, "s", "cpu")


def found(right: Scores, wrong: Scores) -> float:
    """Computes the share of the wrong pairs whose score is worse (higher) than that of all but 1 % of the right
    pairs."""
    threshold = np.sort(right)[::-1][int(FALSE_ALARMS * len(right))]
    return float(np.mean(wrong > threshold))


def wrong_pairs(pairs: Pairs, draw: random.Random) -> Mapping[str, Pairs]:
    """Builds the wrong pairs of each sort; a side of one word has no half."""
    order = draw.sample(range(len(pairs)), len(pairs))
    partner = dict(zip(order, order[1:] + order[:1], strict=True))
    halves = [
        (pair, side, half(pair[side], draw)) for pair in pairs if len(pair[side := draw.randrange(2)].split()) > 1
    ]
    return {
        "wrong partners": [(source, pairs[partner[row]][1]) for row, (source, _) in enumerate(pairs)],
        "dropped halves": [replaced(pair, side, part) for pair, side, part in halves],
        "dropped halves, final punctuation kept": [
            replaced(pair, side, punctuated(part, pair[side])) for pair, side, part in halves
        ],
        "next target behind": [
            (source, f"{target} {other}")
            for (source, target), (_, other) in zip(pairs, [*pairs[1:], pairs[0]], strict=True)
        ],
        "copied sources": [(source, source) for source, _ in pairs],
    }


def half(text: str, draw: random.Random) -> str:
    """Returns the text without half of its words, rounded down, at the beginning or at the end."""
    words = text.split()
    gone = len(words) // 2
    return " ".join(words[gone:] if draw.randrange(2) else words[: len(words) - gone])


def punctuated(part: str, whole: str) -> str:
    """Returns a part of a text with the final punctuation of the whole."""
    return part if whole[-1].isalnum() or part[-1] == whole[-1] else part.rstrip(",;:") + whole[-1]


def replaced(pair: tuple[str, str], side: int, text: str) -> tuple[str, str]:
    """Returns the pair with another text on one side."""
    return (text, pair[1]) if side == 0 else (pair[0], text)


def suspects(whole: Pairs, model: str, reverse: str | None) -> Callable[[Pairs], Mapping[str, Scores]]:
    """Computes the score of --suspects, and its two parts. The usual lengths are those of the whole pairs."""
    forward = nmt.load(model, precision="float32")
    backward = None if reverse is None else nmt.load(reverse, precision="float32")
    lengths = usual_lengths((length(source), length(target)) for source, target in whole)

    def judge(pairs: Pairs) -> Mapping[str, Scores]:
        sources, targets = zip(*pairs, strict=True)
        nll_N = np.array(pair_nlls(forward, backward, sources, targets), dtype=np.float64)
        z_N = np.array([lengths.z(source, target) for source, target in pairs])
        return {"suspects": nll_N + z_N**2 / 2, "suspects, nll alone": nll_N, "suspects, |z| alone": np.abs(z_N)}

    return judge


if __name__ == "__main__":
    plainly(main)
