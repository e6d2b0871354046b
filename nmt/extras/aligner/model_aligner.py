"""A word aligner and an alignment layer for a trained model: what ``nmt aligner`` writes into its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.alignment import Weights
from nmt.alignment.formats import Alignment
from nmt.alignment.words import NO_WORD, word_indices
from nmt.core.errors import InputError
from nmt.core.files import content_hash
from nmt.data.tokenizer import EncodedWords
from nmt.data.words import words_and_runs
from nmt.extras.aligner.aligner import WordAligner, between_words, learnt_alignments, load_aligner, save_aligner
from nmt.extras.aligner.layer import AlignmentLayer, load_layer, save_layer, weights
from nmt.training import run_directory
from nmt.translator.find_run import ALIGNER, LAYER, run_of
from nmt.translator.loading import TrainedModel


@dataclass(frozen=True)
class ModelAligner:
    """Joins a word aligner with a model; see ``nmt.translator.aligner.LearntAligner``."""

    trained: TrainedModel
    aligner: WordAligner
    layer: AlignmentLayer

    def align(
        self,
        sources: Sequence[EncodedWords],
        targets: Sequence[EncodedWords],
        attention: Mapping[int, Weights],
        *,
        share: float,
        first_line: int,
    ) -> list[Alignment]:
        """Aligns by a mean of the word aligner's matrices, weighted by ``share``, and the model's. The model's matrices
        are those of its layer or, if it has attention, the mean of these and the attention. A word without subwords of
        its own is unknown to the model, and is aligned by the word aligner only."""
        source_words, target_words = ([encoded.words for encoded in side] for side in (sources, targets))
        runs = ([words_and_runs(each.text, each.word_spans) for each in side] for side in (sources, targets))
        matrices = self.aligner.matrices(*runs, first_line=first_line)
        rows = [row for row in range(len(sources)) if sources[row].ids and targets[row].ids and matrices[row][0].size]
        between_pieces = weights(
            self.layer,
            self.trained.model,
            self.trained.prefixed((sources[row].ids for row in rows), (sources[row].text for row in rows)),
            [targets[row].ids for row in rows],
            self.trained.compute,
            batch_tokens=self.trained.experiment.search.batch_tokens,
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
            forward_IJ, backward_IJ = (
                learnt + share_IJ * (other - learnt) for learnt, other in zip(matrices[row], by_model, strict=True)
            )
            matrices[row] = forward_IJ, backward_IJ
        source_spans, target_spans = ([encoded.word_spans for encoded in side] for side in (sources, targets))
        return learnt_alignments(source_words, target_words, matrices, source_spans, target_spans)


def save_model_aligner(trained: TrainedModel, aligner: WordAligner, layer: AlignmentLayer) -> tuple[Path, Path]:
    """Writes both into the run of a model; returns the files. Raises OSError."""
    run = run_of(trained.checkpoint)
    save_aligner(aligner, run / ALIGNER)
    save_layer(layer, run / LAYER, model=_weights_name(trained))
    return run / ALIGNER, run / LAYER


def load_model_aligner(trained: TrainedModel) -> ModelAligner:
    """Reads both from the run of a model. Raises InputError if one is missing, damaged or belongs to another model."""
    run = run_of(trained.checkpoint)
    remedy = f"make it with: nmt aligner {trained.checkpoint}"
    for name in (ALIGNER, LAYER):
        if not (run / name).exists():
            raise InputError(f"--method trained: {run / name} is not there; {remedy}")
    aligner = load_aligner(run / ALIGNER)
    layer = load_layer(run / LAYER, model=_weights_name(trained), remedy=remedy)
    sizes = (trained.model.encoder.size, trained.model.decoder.readout_size)
    if (layer.source.narrow.in_features, layer.target.narrow.in_features) != sizes:
        raise InputError(f"{run / LAYER}: is not an alignment layer of this model; {remedy}")
    return ModelAligner(trained, aligner, layer.to(trained.compute.device))


def _weights_name(trained: TrainedModel) -> str:
    """Returns the hash of a checkpoint's weights."""
    return content_hash(trained.checkpoint / run_directory.MODEL).hex()
