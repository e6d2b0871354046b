"""Scores the pairs of a corpus, or keeps those that reach a threshold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nmt.core import log
from nmt.core.device import compute
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting, refuse_unwritable
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.extras.corpus.pair_filter.pair_filter import PairFilter, learn_pair_filter, load_pair_filter, save_pair_filter
from nmt.workflows.align import corpus_of
from nmt.workflows.build_corpus import sample_pairs
from nmt.workflows.output_files import text_file

if TYPE_CHECKING:
    from nmt.extras.corpus.pair_filter.command import FilterOptions

MAX_PAIRS = 300_000
"""Maximum number of pairs to learn from, which are drawn at random; it bounds memory."""


def filter_pairs(options: FilterOptions) -> None:
    """Reads a filter from ``model``, or learns one from the corpus and writes it to ``save``. Then it writes scores or
    the pairs that are kept, according to ``format``, to stdout if ``output`` is None. Without a format it writes
    scores, but nothing if there is only a ``save``."""
    corpus, model, save, output = corpus_of(options.source, options.target), options.model, options.save, options.output
    for path, option in ((output, "--output"), (save, "--save")):
        if path is not None:
            refuse_overwriting(path, options.source, options.target, model, option=option)
            refuse_unwritable(path, option=option, renamed=path is save)
    if output is not None and output == save:
        raise InputError(f"--output {output}: is the file of --save, too; name another file")
    compute("cpu", "float32")
    if model is None:
        seed = 1 if options.seed is None else options.seed
        pair_filter = learn_pair_filter(sample_pairs(corpus, MAX_PAIRS, seed=seed), seed=seed)
    else:
        pair_filter = load_pair_filter(model)
    if save is not None:
        save_pair_filter(pair_filter, save)
        log.info(f"wrote {save}; use it with nmt filter --model {save}")
    if options.format is not None or save is None or output is not None:
        _write(pair_filter, corpus, output, options.format or "scores", pair_filter.threshold(options.false_alarms))


def _write(pair_filter: PairFilter, corpus: CorpusConfig, output: Path | None, format: str, threshold: float) -> None:
    kept = total = 0
    with text_file(output) as stream:
        for block in read_blocks(corpus):
            scores_N = pair_filter.scores(block.sources, block.targets)
            for score, *sides in zip(scores_N.tolist(), block.sources, block.targets, strict=True):
                if format == "scores":
                    stream.write(f"{score:.4f}\n")
                elif score >= threshold:
                    stream.write("\t".join(side.replace("\t", " ") for side in sides) + "\n")
            kept += int((scores_N >= threshold).sum())
            total += len(scores_N)
    log.info(f"filter     {kept:,} of {total:,} pairs reach the threshold, {threshold:.4f}")
