"""What `nmt aligner` leaves in a run, and finds there."""

from __future__ import annotations

from pathlib import Path

from nmt.core.errors import InputError
from nmt.core.files import content_hash
from nmt.extras.word_aligner.aligner import WordAligner, load_aligner, save_aligner
from nmt.extras.word_aligner.layer import AlignmentLayer, load_layer, save_layer
from nmt.training import folders
from nmt.translator.find_run import ALIGNER, LAYER, run_of
from nmt.translator.loading import Trained


def save(trained: Trained, aligner: WordAligner, layer: AlignmentLayer) -> tuple[Path, Path]:
    """Writes both into the run of a model; returns the files. Raises OSError."""
    run = run_of(trained.checkpoint)
    save_aligner(aligner, run / ALIGNER)
    save_layer(layer, run / LAYER, model=_weights_name(trained))
    return run / ALIGNER, run / LAYER


def has_aligner(trained: Trained) -> bool:
    """Whether a model's run has both, usable or not."""
    return all((run_of(trained.checkpoint) / name).exists() for name in (ALIGNER, LAYER))


def trained_aligner(trained: Trained) -> tuple[WordAligner, AlignmentLayer]:
    """Both of a model. Raises InputError where one is missing, damaged or another model's."""
    run = run_of(trained.checkpoint)
    remedy = f"make it with: nmt aligner {trained.checkpoint}"
    for name in (ALIGNER, LAYER):
        if not (run / name).exists():
            raise InputError(f"--method trained: {run / name} is not there; {remedy}")
    aligner = load_aligner(run / ALIGNER)
    layer = load_layer(run / LAYER, model=_weights_name(trained), remedy=remedy)
    sizes = (trained.model.encoder.size, trained.model.decoder.readout_size)
    if (layer.source.narrow.in_features, layer.target.narrow.in_features) != sizes:
        raise InputError(f"{run / LAYER}: is no alignment layer of this model; {remedy}")
    return aligner, layer.to(trained.compute.device)


def _weights_name(trained: Trained) -> str:
    """The weights of a checkpoint, by what is in them."""
    return content_hash(trained.checkpoint / folders.MODEL).hex()
