"""What a checkpoint holds: tensors and numbers, nothing that can be executed. ``folders`` tells where it stands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from nmt.core.errors import InputError
from nmt.training.folders import MODEL, STATE, TRAINING, point, step, sync


def save(run: Path, update: int, model: nn.Module, training: Mapping[str, Tensor], state: Mapping[str, Any]) -> Path:
    """Writes the checkpoint of an update and points ``latest`` at it; see ``write``."""
    final = step(run, update)
    write(final, {MODEL: named_weights(model), TRAINING: training}, state)
    point(run, "latest", final)
    return final


def write(final: Path, files: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    """Writes a folder of files of tensors and a state: beside, synced to disk, then renamed, so that whatever
    interrupts it leaves what was there as it was."""
    beside = final.with_name(f".{final.name}.unfinished")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for name, tensors in files.items():
        safetensors.torch.save_file({key: each.contiguous() for key, each in tensors.items()}, beside / name)
    (beside / STATE).write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    for name in (*files, STATE):
        sync(beside / name)
    sync(beside)
    if final.exists():  # an interrupted run may come by the same update again
        shutil.rmtree(final)
    beside.rename(final)
    sync(final.parent)


def load_weights(checkpoint: Path, model: nn.Module) -> None:
    """Fills a model with a checkpoint's weights, those to use.

    Raises InputError where the file is missing, damaged or of a model of another shape.
    """
    path = checkpoint / MODEL
    fill(model, read_tensors(path), path)


def check_weights(checkpoint: Path, model: nn.Module) -> None: ...


def fill(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Gives a model these weights. Raises InputError, which names ``path``, where they are of another model."""
    wanted = named_weights(model)
    for name in sorted(weights.keys() ^ wanted.keys()):
        what = "misses" if name in wanted else "has"
        raise InputError(f"{path}: {what} {name}: it is of another model than its config.yaml describes")
    for name, parameter in wanted.items():
        if weights[name].shape != parameter.shape:
            raise InputError(
                f"{path}: {name} is {tuple(weights[name].shape)}, but config.yaml and vocabulary make it "
                f"{tuple(parameter.shape)}"
            )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(weights[name])


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU. Raises InputError where it is missing or damaged."""
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is it a checkpoint?") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        one_line = " ".join(str(error).split())
        raise InputError(f"{path}: unreadable checkpoint, delete its folder or restore it: {one_line}") from None


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, however many modules share it."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}
