"""Scores of the lines of a test set by how often their rarest source word occurs in the training corpus.

    python scripts/rare_words.py runs/one runs/other --source test.de --reference test.en [--dictionary de-en.tsv]

Prints the number of lines, and for each run the mean sentence chrF of their translations, then BLEU and chrF of all
lines. Words are those of ordinary text in lower case, without punctuation; they are counted in the training corpora of
the first run, so that all runs have the same lines in a row.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from pathlib import Path
from statistics import fmean

from measuring import plainly

import nmt
from nmt import experiment
from nmt.data.corpus import read_blocks
from nmt.data.words import is_punctuation
from nmt.evaluation.translation import sacrebleu_metric, scores
from nmt.extras.corpus.augment.dictionary import count_words, words_of
from nmt.translator.find_run import find_checkpoint, run_of
from nmt.workflows.align import pairs

LIMITS = (1, 5, 20, 100)
NAMES = ("never", "1 to 4", "5 to 19", "20 to 99", "100 and more")


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--dictionary", type=Path, help="translate with it, too")
    options = parser.parse_args()
    sources, references = map(list, zip(*pairs(options.source, options.reference), strict=True))
    data = experiment.load(run_of(find_checkpoint(options.runs[0])) / experiment.FILE).data
    blocks = (block for corpus in data.train_corpora for block in read_blocks(corpus))
    counts = count_words(line for block in blocks for line in block.sources)
    words = ([word for word in words_of(line) if not is_punctuation(word)] for line in sources)
    # a line without words has no rare one
    groups = [bisect_right(LIMITS, min((counts[word] for word in line), default=LIMITS[-1])) for line in words]
    print(f"{'lines':<6}" + "".join(f"{name:>14}" for name in (*NAMES, "BLEU", "chrF")))
    print(f"{len(groups):<6,}" + "".join(f"{groups.count(group):>14,}" for group in range(len(NAMES))))
    metric = sacrebleu_metric("chrf")
    dictionaries = dict.fromkeys([None, options.dictionary])
    for run, dictionary in ((run, dictionary) for run in options.runs for dictionary in dictionaries):
        hypotheses = [each.text for each in nmt.load_translator(run, dictionary=dictionary).translate(sources)]
        by_group: list[list[float]] = [[] for _ in NAMES]
        for group, hypothesis, reference in zip(groups, hypotheses, references, strict=True):
            by_group[group].append(metric.sentence_score(hypothesis, [reference]).score)
        overall = [score.value for score in scores(hypotheses, references, metrics=("bleu", "chrf"))]
        figures = [*(fmean(each or [float("nan")]) for each in by_group), *overall]
        print(
            f"{'':<6}" + "".join(f"{figure:>14.1f}" for figure in figures) + f"  {run} {dictionary or ''}", flush=True
        )


if __name__ == "__main__":
    plainly(main)
