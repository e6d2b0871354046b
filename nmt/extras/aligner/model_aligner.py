"""A word aligner and an alignment layer for a trained model: what ``nmt aligner`` writes into its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from nmt.alignment import Weights
from nmt.alignment.formats import Alignment
from nmt.alignment.words import NO_WORD, word_indices
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import content_hash
from nmt.data.prepared import opened
from nmt.data.store import Store
from nmt.data.tokenizer import EncodedWords
from nmt.data.words import text_words, words_and_runs
from nmt.extras.aligner.align import learn_word_aligner, lines_of
from nmt.extras.aligner.aligner import WordAligner, between_words, learnt_alignments, load_aligner, save_aligner
from nmt.extras.aligner.layer import AlignmentLayer, LinkedPair, load_layer, save_layer, train_layer, weights
from nmt.training import run_directory
from nmt.translator.find_run import ALIGNER, LAYER
from nmt.translator.loading import TrainedModel, load_trained

UPDATES = 600
BATCH_TOKENS = 2048
"""Number of tokens of the longer side in a batch; with the number of updates, this is about two epochs of 29,000 pairs
of a dozen words. More epochs make the layer better but its mean with the aligner worse, because it then repeats the
aligner's errors."""

MAX_PAIRS = 30_000
"""Maximum number of pairs that the layer learns from, which are every n-th pair of a larger corpus."""

MIN_LINK = 0.3
"""Smallest geometric mean of both directions' probabilities of a link that the layer learns."""


@dataclass(frozen=True)
class ModelAligner:
    """Joins a word aligner with a model; see ``nmt.translator.aligner.LearntAligner``."""

    trained: TrainedModel
    aligner: WordAligner
    layer: AlignmentLayer

    def align(
        self, sources: Sequence[EncodedWords], targets: Sequence[EncodedWords], attention: Mapping[int, Weights], *,
        share: float, first_line: int,
    ) -> list[Alignment]:  # fmt: skip
        """Aligns by a mean of the word aligner's matrices, weighted by ``share``, and the model's. The model's matrices
        are those of its layer or, if it has attention, the mean of these and the attention. A word without subwords of
        its own is unknown to the model, and is aligned by the word aligner only."""
        source_words, target_words = ([encoded.words for encoded in side] for side in (sources, targets))
        runs = ([words_and_runs(each.text, each.word_spans) for each in side] for side in (sources, targets))
        matrices = self.aligner.matrices(*runs, first_line=first_line)
        rows = [row for row in range(len(sources)) if sources[row].ids and targets[row].ids and matrices[row][0].size]
        trained = self.trained
        source_ids = trained.prefixed((sources[row].ids for row in rows), (sources[row].text for row in rows))
        target_ids, batch_tokens = [targets[row].ids for row in rows], trained.experiment.search.batch_tokens
        between_pieces = weights(
            self.layer, trained.model, source_ids, target_ids, trained.compute, batch_tokens=batch_tokens
        )
        for row, both_TS in zip(rows, between_pieces, strict=True):
            forward_TS, backward_TS = (weights_TS[:, -len(sources[row].ids) :] for weights_TS in both_TS)
            word_T, word_S = (np.array(word_indices(side[row]), dtype=np.int64) for side in (targets, sources))
            speaks_TS = np.ix_(word_T != NO_WORD, word_S != NO_WORD)
            count_I, count_J = (
                np.bincount(word_of_piece[word_of_piece != NO_WORD], minlength=len(side[row].words))
                for word_of_piece, side in ((word_T, targets), (word_S, sources))
            )
            forward_TS, backward_TS = forward_TS[speaks_TS], backward_TS[speaks_TS]
            by_model: Weights = between_words(forward_TS[None], backward_TS[None], [count_I], [count_J])[:, 0]
            if row in attention:
                by_model = (by_model + attention[row]) / 2
            has_pieces_IJ = (count_I > 0)[:, None] & (count_J > 0)
            share_IJ = (1 - share) * has_pieces_IJ.astype(np.float32)
            both = zip(matrices[row], by_model, strict=True)
            forward_IJ, backward_IJ = (learnt + share_IJ * (other - learnt) for learnt, other in both)
            matrices[row] = forward_IJ, backward_IJ
        source_spans, target_spans = ([encoded.word_spans for encoded in side] for side in (sources, targets))
        return learnt_alignments(source_words, target_words, matrices, source_spans, target_spans)


def load_model_aligner(trained: TrainedModel) -> ModelAligner:
    """Reads both from the run of a model. Raises InputError if one is missing, damaged or belongs to another model."""
    run = trained.run
    remedy = f"make it with: nmt aligner {trained.checkpoint}"
    for path in (run / ALIGNER, run / LAYER):
        if not path.exists():
            raise InputError(f"--method trained: {path} is not there; {remedy}")
    aligner = load_aligner(run / ALIGNER)
    layer = load_layer(run / LAYER, model=weights_name(trained), remedy=remedy)
    sizes = (trained.model.encoder.size, trained.model.decoder.readout_size)
    if (layer.source.narrow.in_features, layer.target.narrow.in_features) != sizes:
        raise InputError(f"{run / LAYER}: is not an alignment layer of this model; {remedy}")
    return ModelAligner(trained, aligner, layer.to(trained.compute.device))


def weights_name(trained: TrainedModel) -> str:
    """Returns the hash of a checkpoint's weights."""
    return content_hash(trained.checkpoint / run_directory.MODEL).hex()


def learn_for_model(
    model: str | None, overrides: Sequence[str], source: Path | None, target: Path | None, *, seed: int, device: str,
    precision: str,
) -> Path:  # fmt: skip
    """Learns an aligner from the training pairs of a model's run, or from two files, and trains an alignment layer on
    the model with its links. Writes both into the run, and returns the run."""
    trained = load_trained(model, overrides, device=device, precision=precision)
    run = trained.run
    if source is None or target is None:
        sources, targets, prefixes = _training_text(trained)
    else:
        sources, targets = lines_of(source, target)
        prefixes = [trained.source_prefix] * len(sources)
    aligner = learn_word_aligner(sources, targets)
    layer = learn_layer(trained, aligner, sources, targets, prefixes, seed=seed)
    try:
        save_aligner(aligner, run / ALIGNER)
        save_layer(layer, run / LAYER, model=weights_name(trained))
    except OSError as error:
        raise InputError(f"{run}: cannot be written to: {error.strerror or error}") from None
    log.info(f"wrote {run / ALIGNER} and {run / LAYER}; use them with nmt align {run} --method trained")
    return run


def learn_layer(
    trained: TrainedModel, aligner: WordAligner, sources: Sequence[str], targets: Sequence[str],
    prefixes: Sequence[tuple[int, ...]], *, seed: int,
) -> AlignmentLayer:  # fmt: skip
    """Trains a layer with the links that the aligner finds in lines; the model reads the prefix before each source."""
    rows = range(0, len(sources), -(-len(sources) // MAX_PAIRS))
    sources, targets = [sources[row] for row in rows], [targets[row] for row in rows]
    linked = _linked_pairs(trained, aligner, sources, targets, [prefixes[row] for row in rows])
    if not linked:
        raise InputError("there is nothing to learn from: no pair has words on both sides that fit the model")
    torch.manual_seed(seed)
    encoder, decoder = trained.model.encoder, trained.model.decoder
    layer = AlignmentLayer(encoder.size, decoder.readout_size).to(trained.compute.device)
    train = partial(train_layer, updates=UPDATES, batch_tokens=BATCH_TOKENS, seed=seed)
    with log.progress(description="layer", total=UPDATES, unit="update") as bar:
        losses = train(layer, trained.model, linked, trained.compute, after_update=lambda: bar.update(1))
    log.info(f"layer  taught {len(linked):,} pairs: loss {np.mean(losses[:50]):.2f} -> {np.mean(losses[-50:]):.2f}")
    return layer


def _linked_pairs(
    trained: TrainedModel,
    aligner: WordAligner,
    sources: Sequence[str],
    targets: Sequence[str],
    prefixes: Sequence[tuple[int, ...]],
) -> list[LinkedPair]:
    """Encodes each pair, with links between the pieces that follow the links of their words; a prefix has no links."""
    words = [[words_and_runs(line, text_words(line)) for line in side] for side in (sources, targets)]
    rows = [row for row, pair in enumerate(zip(*words, strict=True)) if aligner.fits(*pair)]
    matrices = aligner.matrices(*([side[row] for row in rows] for side in words)) if rows else []
    limit = trained.experiment.search.max_source_tokens
    linked_pairs = []
    for row, (forward_IJ, backward_IJ) in zip(rows, matrices, strict=True):
        source_pieces = trained.tokenizers.source.encode_words(sources[row], text_words(sources[row]))
        target_pieces = trained.tokenizers.target.encode_words(targets[row], text_words(targets[row]))
        if not all(0 < len(pieces.ids) <= limit for pieces in (source_pieces, target_pieces)):
            continue
        link_IJ = (np.sqrt(forward_IJ * backward_IJ) >= MIN_LINK).astype(np.float32)
        link_TS = link_IJ[np.ix_(target_pieces.word_of_piece, source_pieces.word_of_piece)]
        link_TS = np.pad(link_TS, ((0, 0), (len(prefixes[row]), 0)))
        linked_pairs.append(LinkedPair([*prefixes[row], *source_pieces.ids], target_pieces.ids, link_TS))
    return linked_pairs


def training_corpus(trained: TrainedModel) -> Store:
    """Opens the prepared training pairs of a model. Raises InputError if they are missing or of another vocabulary."""
    data = opened(trained.experiment.data, run=trained.run)
    if data.tokenizers.fingerprint != trained.tokenizers.fingerprint:
        raise InputError(f"{data.folder}: was prepared with another vocabulary than the model's; prepare it again")
    return data.train


def _training_text(trained: TrainedModel) -> tuple[list[str], list[str], list[tuple[int, ...]]]:
    train, tokenizers = training_corpus(trained), trained.tokenizers
    sources = [tokenizers.source.detokenize(train.source(row)) for row in range(len(train))]
    targets = [tokenizers.target.detokenize(train.target(row)) for row in range(len(train))]
    return sources, targets, [train.prefix(row) for row in range(len(train))]
