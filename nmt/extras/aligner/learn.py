"""Learns a word aligner for a model, and trains an alignment layer on the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.prepared import opened
from nmt.data.words import text_words, words_and_runs
from nmt.extras.aligner.aligner import WordAligner
from nmt.extras.aligner.layer import AlignmentLayer, LinkedPair, train_layer
from nmt.extras.aligner.learn_text import learn_word_aligner, lines_of
from nmt.extras.aligner.model_aligner import save_model_aligner
from nmt.translator.find_run import run_of
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


def learn_for_model(
    model: str | None,
    overrides: Sequence[str],
    *,
    source: Path | None,
    target: Path | None,
    seed: int,
    device: str,
    precision: str,
) -> Path:
    """Learns an aligner from the training pairs of a model's run, or from two files, and trains an alignment layer on
    the model with its links. Writes both into the run, and returns the run."""
    trained = load_trained(model, overrides, device=device, precision=precision)
    run = run_of(trained.checkpoint)
    if source is None or target is None:
        sources, targets, prefixes = _training_text(trained, run)
    else:
        sources, targets = lines_of(source, target)
        prefixes = [trained.source_prefix] * len(sources)
    aligner = learn_word_aligner(sources, targets)
    layer = learn_layer(trained, aligner, sources, targets, prefixes, seed=seed)
    try:
        aligner_file, layer_file = save_model_aligner(trained, aligner, layer)
    except OSError as error:
        raise InputError(f"{run}: cannot be written to: {error.strerror or error}") from None
    log.info(f"wrote {aligner_file} and {layer_file}; use them with nmt align {run} --method trained")
    return run


def learn_layer(
    trained: TrainedModel,
    aligner: WordAligner,
    sources: Sequence[str],
    targets: Sequence[str],
    prefixes: Sequence[tuple[int, ...]],
    *,
    seed: int,
) -> AlignmentLayer:
    """Trains a layer with the links that the aligner finds in lines; the model reads the prefix before each source."""
    rows = range(0, len(sources), -(-len(sources) // MAX_PAIRS))
    sources, targets = [sources[row] for row in rows], [targets[row] for row in rows]
    linked = _linked_pairs(trained, aligner, sources, targets, [prefixes[row] for row in rows])
    if not linked:
        raise InputError("there is nothing to learn from: no pair has words on both sides that fit the model")
    torch.manual_seed(seed)
    encoder, decoder = trained.model.encoder, trained.model.decoder
    layer = AlignmentLayer(encoder.size, decoder.readout_size).to(trained.compute.device)
    losses: list[float] = []
    with log.progress(description="layer", total=UPDATES, unit="update") as bar:

        def after_update(loss: float) -> None:
            losses.append(loss)
            bar.update(1)

        train_layer(
            layer,
            trained.model,
            linked,
            trained.compute,
            updates=UPDATES,
            batch_tokens=BATCH_TOKENS,
            seed=seed,
            after_update=after_update,
        )
    log.info(
        f"layer  taught with {len(linked):,} pairs: loss {np.mean(losses[:50]):.2f} -> {np.mean(losses[-50:]):.2f}"
    )
    return layer


def _linked_pairs(
    trained: TrainedModel,
    aligner: WordAligner,
    sources: Sequence[str],
    targets: Sequence[str],
    prefixes: Sequence[tuple[int, ...]],
) -> list[LinkedPair]:
    """Encodes each pair, with links between the pieces that follow the links of their words; a prefix has no links."""
    words = [words_and_runs(line, text_words(line)) for line in (*sources, *targets)]
    pairs_of_words = list(zip(words[: len(sources)], words[len(sources) :], strict=True))
    rows = [row for row, pair in enumerate(pairs_of_words) if aligner.fits(*pair)]
    sides = ([pairs_of_words[row][side] for row in rows] for side in (0, 1))
    matrices = aligner.matrices(*sides) if rows else []
    limit = trained.experiment.search.max_source_tokens
    linked_pairs = []
    for row, (forward_IJ, backward_IJ) in zip(rows, matrices, strict=True):
        source, target = sources[row], targets[row]
        source_pieces = trained.tokenizers.source.encode_words(source, text_words(source))
        target_pieces = trained.tokenizers.target.encode_words(target, text_words(target))
        lengths = (len(source_pieces.ids), len(target_pieces.ids))
        if min(lengths) == 0 or max(lengths) > limit:
            continue
        link_IJ = (np.sqrt(forward_IJ * backward_IJ) >= MIN_LINK).astype(np.float32)
        link_TS = link_IJ[np.ix_(target_pieces.word_of_piece, source_pieces.word_of_piece)]
        prefix = prefixes[row]
        link_TS = np.pad(link_TS, ((0, 0), (len(prefix), 0)))
        linked_pairs.append(LinkedPair([*prefix, *source_pieces.ids], target_pieces.ids, link_TS))
    return linked_pairs


def _training_text(trained: TrainedModel, run: Path) -> tuple[list[str], list[str], list[tuple[int, ...]]]:
    data = opened(trained.experiment.data, run=run)
    if data.tokenizers.fingerprint != trained.tokenizers.fingerprint:
        raise InputError(f"{data.folder}: was prepared with another vocabulary than the model's; prepare it again")
    rows = range(len(data.train))
    return (
        [trained.tokenizers.source.detokenize(data.train.source(row)) for row in rows],
        [trained.tokenizers.target.detokenize(data.train.target(row)) for row in rows],
        [data.train.prefix(row) for row in rows],
    )
