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
from nmt.training.folders import MODEL, STATE, TRAINING, point, sync


def save(run: Path, update: int, model: nn.Module, training: Mapping[str, Tensor], state: Mapping[str, Any]) -> Path:
    """Writes a checkpoint and points ``latest`` at it: beside, synced to disk, then renamed, so that whatever
    interrupts it leaves the old ones as they were."""
    final = run / "checkpoints" / f"step-{update:08d}"
    beside = final.with_name(f".{final.name}.unfinished")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    safetensors.torch.save_file(_named_weights(model), beside / MODEL)
    safetensors.torch.save_file({name: each.contiguous() for name, each in training.items()}, beside / TRAINING)
    (beside / STATE).write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    for name in (MODEL, TRAINING, STATE):
        sync(beside / name)
    sync(beside)
    if final.exists():  # an interrupted run may come by the same update again
        shutil.rmtree(final)
    beside.rename(final)
    sync(final.parent)
    point(run, "latest", final)
    return final


def load_weights(checkpoint: Path, model: nn.Module) -> None:
    """Fills a model with a checkpoint's weights.

    Raises InputError where the file is missing, damaged or of a model of another shape.
    """
    saved = read_tensors(checkpoint / MODEL)
    wanted = _named_weights(model)
    for name in sorted(saved.keys() ^ wanted.keys()):
        what = "misses" if name in wanted else "has"
        raise InputError(f"{checkpoint / MODEL}: {what} {name}: it is of another model than its config.yaml describes")
    for name, parameter in wanted.items():
        if saved[name].shape != parameter.shape:
            raise InputError(
                f"{checkpoint / MODEL}: {name} is {tuple(saved[name].shape)}, but config.yaml and vocabulary make it "
                f"{tuple(parameter.shape)}"
            )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(saved[name])


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU. Raises InputError where it is missing or damaged."""
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is it a checkpoint?") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise InputError(
            f"{path}: unreadable checkpoint, delete its folder or restore it: {_one_line(error)}"
        ) from None


def read_state(checkpoint: Path) -> dict[str, Any]:
    """Where training stood. Raises InputError where the file is missing or damaged."""
    path = checkpoint / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: unreadable checkpoint, delete its folder or restore it: {_one_line(error)}"
        ) from None
    if not isinstance(state, dict):
        raise InputError(f"{path}: unreadable checkpoint, delete its folder or restore it: no JSON object")
    return state


def _named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, however many modules share it."""
    return {name: parameter.detach().contiguous() for name, parameter in model.named_parameters()}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
