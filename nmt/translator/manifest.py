"""The manifest of a checkpoint: the settings that, together with its weights and vocabulary, determine what the trained
model computes.

``state.json`` has the values of the configuration that was trained, and ``SHA256SUMS`` has the hash of that file, so
that weights are only used with the files of a run directory that they were trained with. Other keys of the run's
``config.yaml``, such as those of the search, may be edited.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.config.structure import Document, Structure, validate
from nmt.config.yaml_source import dotted, leaves
from nmt.core.errors import InputError
from nmt.data.segments import SourceLengths
from nmt.experiment import FILE, Experiment, decides
from nmt.models.config import ModelConfig
from nmt.training import run_directory


class CheckpointManifest(Structure):
    """The part of a configuration that trained weights need, and the lengths of their training sentences."""

    model: ModelConfig
    data: dict[str, Any]
    lengths: dict[str, Any] | None

    @classmethod
    def of(cls, experiment: Experiment, lengths: SourceLengths | None) -> CheckpointManifest:
        """Creates the manifest of a training; imported models have no lengths."""
        data, limit = experiment.data, experiment.data.filters.max_length
        reads = {"context": data.context, "filters.max_length": limit, "train.languages": [*data.target_languages]}
        return cls(model=experiment.model, data=reads, lengths=asdict(lengths) if lengths else None)

    @property
    def values(self) -> dict[str, Any]:
        """Returns the values by their dotted keys."""
        return {dotted(place): value for place, value in leaves(self.model_dump(mode="json"))}


def checked_state(checkpoint: Path, experiment: Experiment, lengths: SourceLengths | None) -> dict[str, Any]:
    """Reads the state of a checkpoint, whose checksums the caller verifies. Raises InputError if the configuration or
    lengths differ from those of its training. Older checkpoints without a manifest are accepted."""
    state = run_directory.read_state(checkpoint)
    if state.get("manifest") is None:
        return state
    document = Document(state["manifest"], {(): str(checkpoint / run_directory.STATE)})
    now = CheckpointManifest.of(experiment, lengths).values
    for key, value in validate(CheckpointManifest, document).values.items():
        is_length = key.startswith("lengths")
        is_uncounted = is_length and value is None  # by an older version that prepared it
        if now.get(key) != value and decides(key) and not is_uncounted:
            file = checkpoint.resolve().parents[1] / (run_directory.LENGTHS if is_length else FILE)
            found = f"is {json.dumps(now[key])}" if key in now else "is missing"
            raise InputError(
                f"{file}: {key} {found}, but {checkpoint.resolve().name} was trained with {json.dumps(value)}; "
                "restore it, or train another model"
            )
    return state
