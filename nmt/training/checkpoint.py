"""The contents of checkpoints: tensors and numbers, nothing that can be executed. For paths, see ``run_directory``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_special, umask
from nmt.core.version import VERSION
from nmt.data.atomic_folder import replace_folder
from nmt.training import run_directory
from nmt.training.run_directory import MODEL, STATE, TRAINING, Damaged


def save(run: Path, update: int, model: nn.Module, training: Mapping[str, Tensor], state: Mapping[str, Any]) -> Path:
    """Writes the checkpoint of an update and points ``latest`` at it; see ``write``."""
    final = run_directory.checkpoint_path(run, update)
    write(final, {MODEL: named_weights(model), TRAINING: training}, state)
    run_directory.set_link(run, "latest", final)
    return final


def write(final: Path, files: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    """Writes a folder of files of tensors, a state and checksums. The folder gets its name only when it is complete, so
    that an interruption changes nothing that was there before. The state also says its format and the version of nmt
    that wrote it. Raises InputError if the system cannot write it, as on a full disk."""
    try:
        final.parent.mkdir(exist_ok=True)  # not its parents: a deleted run is not created again
        with replace_folder(final) as folder:
            for name, tensors in files.items():
                _write_tensors(folder / name, tensors)
            marked = {"format": run_directory.FORMAT, "nmt": VERSION, **state}
            (folder / STATE).write_text(json.dumps(marked, indent=1) + "\n", encoding="utf-8")
            run_directory.write_checksums(folder, (*files, STATE))
    except OSError as error:
        raise InputError(
            f"{final}: cannot be written: {error.strerror}; what was saved before is as it was, and the same command "
            "goes on from there"
        ) from None


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    path.chmod(0o666 & ~umask())  # safetensors makes files that nobody else can read


def load_weights(checkpoint: Path, model: nn.Module) -> None:
    """Fills a model with the weights of a checkpoint that are meant for use.

    Raises InputError if the file is missing, damaged or from a model of another shape.
    """
    path = checkpoint / MODEL
    fill(model, read_tensors(path), path)


def check_weights(checkpoint: Path, model: nn.Module) -> None:
    """Raises InputError if the shapes of a checkpoint's weights are not those of a model. The model may be on the
    device "meta", so that a config that describes a larger model than the weights costs no memory."""
    path = checkpoint / MODEL
    try:
        refuse_special(path)
        with safetensors.safe_open(path, framework="pt") as file:
            shapes = {name: torch.Size(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise Damaged(path, error) from None
    _check_shapes(model, shapes, path)


def fill(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Copies the weights into a model. Raises InputError, which names ``path``, if they are from another model."""
    _check_shapes(model, {name: tensor.shape for name, tensor in weights.items()}, path)
    for name, tensor in weights.items():
        if not tensor.is_floating_point() or not tensor.isfinite().all():
            raise InputError(f"{path}: {name} holds what are no finite numbers; use another checkpoint")
    with torch.no_grad():
        for name, parameter in named_weights(model).items():
            parameter.copy_(weights[name])


def _check_shapes(model: nn.Module, shapes: Mapping[str, torch.Size], path: Path) -> None:
    weights = named_weights(model)
    for name in sorted(shapes.keys() ^ weights.keys()):
        verb = "misses" if name in weights else "has"
        raise InputError(f"{path}: {verb} {name}: it is of another model than its config.yaml describes")
    for name, parameter in weights.items():
        if shapes[name] != parameter.shape:
            raise InputError(f"{path}: {name} is {tuple(shapes[name])}, but config.yaml says {tuple(parameter.shape)}")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors file to the CPU. Raises InputError if it is missing or damaged."""
    try:
        refuse_special(path)
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise Damaged(path, error) from None


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Returns the parameters by name, each of them once, even if several modules share it."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def skip_damaged(run: Path) -> None:
    """Renames the checkpoints that are newer than the newest undamaged one. Raises InputError if all are damaged."""
    damaged: list[tuple[Path, Damaged]] = []
    for folder in reversed(run_directory.checkpoint_paths(run)):
        try:
            check_resumable(folder)
        except Damaged as error:
            damaged.append((folder, error))
            continue
        for broken, fault in damaged:
            # so that it is not taken for a checkpoint
            names = (f"damaged-{broken.name}" + f"-{number}" * (number > 1) for number in itertools.count(1))
            aside = broken.rename(next(path for path in map(broken.with_name, names) if not path.exists()))
            log.warning(f"{fault}; set aside as {aside.name}")
        if damaged:
            run_directory.set_link(run, "latest", folder)
        return
    if damaged:
        raise InputError(f"{run}: holds no checkpoint that is whole; {damaged[0][1]}")


def check_resumable(checkpoint: Path) -> None:
    """Raises Damaged if training cannot resume from a checkpoint, judged by its checksums and by reading its files."""
    run_directory.verify(checkpoint, (MODEL, TRAINING, STATE))
    run_directory.read_state(checkpoint)
    for name in (MODEL, TRAINING):
        read_tensors(checkpoint / name)
