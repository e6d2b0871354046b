"""Lexical shortlist of a trained model: the target subwords that its source subwords need."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import safetensors.numpy

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.data.prepared import opened
from nmt.data.store import Store
from nmt.data.vocabulary import EOS
from nmt.extras.accel.ibm_model_1 import learn
from nmt.extras.accel.shortlist import Shortlist
from nmt.search.engine import OwnEngine
from nmt.translator.find_run import SHORTLIST, run_of
from nmt.translator.loading import TrainedModel, load_trained

MAX_POSITION_PAIRS = 1 << 24
"""Pairs of a source and a target position to learn from, in 0.6 GB of memory; of a larger corpus every n-th sentence
pair is taken."""

COMPARED = 2000
"""Maximum number of sentences of the validation corpus that are translated without the list and with it."""


def shortlist(
    model: str | None, overrides: Sequence[str], *, size: int, frequent: int, device: str, precision: str
) -> Path:
    """Learns a shortlist from the training pairs of a model's run and writes it into the run: ``size`` target subwords
    of each source subword, and the ``frequent`` most frequent ones for every sentence. Translates the validation corpus
    without and with it, and says how many translations are the same. Returns the file."""
    trained = load_trained(model, overrides, device=device, precision=precision)
    run = run_of(trained.checkpoint)
    data = opened(trained.experiment.data, run=run)
    if data.tokenizers.fingerprint != trained.tokenizers.fingerprint:
        raise InputError(f"{data.folder}: was prepared with another vocabulary than the model's; prepare it again")
    learned = learn_shortlist(data.train, trained, size=size, frequent=frequent)
    if data.valid is not None:
        rows = range(min(len(data.valid), COMPARED))
        _compare(trained, learned, [[*data.valid.prefix(row), *data.valid.source(row).tolist()] for row in rows])
    path = run / SHORTLIST
    tensors = {"always": learned.always_A, "offsets": learned.offsets_X1, "targets": learned.targets_T}
    with whole_file(path) as partial:
        safetensors.numpy.save_file(tensors, partial, {"vocabulary": trained.tokenizers.fingerprint})
    log.info(f"wrote {path}; use it with nmt translate --shortlist")
    return path


def learn_shortlist(store: Store, trained: TrainedModel, *, size: int, frequent: int) -> Shortlist:
    """Learns the shortlist from the pairs of a corpus."""
    position_pairs = int(((store.source_lengths.astype(np.int64) + 1) * store.target_lengths).sum())
    rows = range(0, len(store), -(-position_pairs // MAX_POSITION_PAIRS))
    log.info(f"shortlist  learning from {len(rows):,} pairs")
    targets = [store.target(row) for row in rows]
    lexicon = learn([store.source(row) for row in rows], targets).best(size)
    tokens = trained.tokenizers.target.size
    count_V = np.bincount(np.concatenate(targets), minlength=tokens)
    most_V = np.argsort(-count_V, kind="stable")[:frequent]
    of_the_empty_word = lexicon.target_E[lexicon.source_E < 0]
    is_word_E = lexicon.source_E >= 0
    offsets_X1 = np.searchsorted(lexicon.source_E[is_word_E], np.arange(trained.tokenizers.source.size + 1))
    return Shortlist(
        tokens,
        np.unique(np.concatenate([np.arange(EOS + 1), most_V, of_the_empty_word])),
        offsets_X1,
        lexicon.target_E[is_word_E],
    )


def _compare(trained: TrainedModel, learned: Shortlist, sources: Sequence[Sequence[int]]) -> None:
    search = trained.experiment.search
    sources = [source[: search.max_source_tokens] for source in sources]
    without, narrowed = (
        OwnEngine(trained.model, trained.compute, reducer).translate_ids(sources, search) for reducer in (None, learned)
    )
    same = sum(one[0].tokens == other[0].tokens for one, other in zip(without, narrowed, strict=True))
    mean = float(np.mean([learned.size(source) for source in islice(sources, 500)]))
    log.info(
        f"shortlist  {mean:,.0f} of {learned.vocabulary:,} target subwords for a sentence on average; "
        f"{same:,} of {len(sources):,} validation sentences are translated alike ({100 * same / len(sources):.1f} %)"
    )
