"""Devices and the precision of matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy.typing as npt
import torch
from torch import Tensor

from nmt.core import log, memory
from nmt.core.errors import InputError

SYNC_INTERVAL = {"cpu": 1}
"""Steps of a search after which the host reads its results, by type of device; 8 for others: it waits for a GPU."""

Precision: TypeAlias = Literal["float32", "tf32", "bfloat16", "float16", "int8"]

FASTEST: dict[str, Callable[[], tuple[Precision, str]]] = {}
"""Functions that find the precision of the fastest products, and why, by type of device; registered from outside."""

_DTYPES = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Compute:
    """A device and the precision of its matrix products; weights themselves are always float32.

    With ``tf32``, on CUDA, products of float32 have 10 bits of mantissa instead of 23. With ``int8``, for translation
    on a CPU, large products are of integers, the others in its fastest precision.
    """

    device: torch.device
    precision: Precision

    def autocast(self) -> AbstractContextManager[object]:
        """Context in which matrix products run in the precision."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the tensors that are multiplied."""
        if self.precision == "int8":
            return _DTYPES[_fastest_on_cpu()[0]]
        return _DTYPES[self.precision]

    @property
    def label(self) -> str:
        """Description for people: ``cpu (2 threads), bfloat16``."""
        on_gpu = self.device.type == "cuda"
        detail = torch.cuda.get_device_name(self.device) if on_gpu else f"{torch.get_num_threads()} threads"
        return f"{self.device} ({detail}), {self.precision}"


def uploaded(values: Tensor, device: torch.device) -> Tensor:
    """Copies values of the host to a device; a GPU reads them by itself, and the host does not wait for it."""
    return values if device.type == "cpu" else values.pin_memory().to(device, non_blocking=True)


def copy_to_host(tensors: Sequence[Tensor]) -> list[npt.NDArray[Any]]:
    """The values of tensors of one device on the host, which waits once for all of them."""
    if tensors[0].device.type == "cpu":
        return [tensor.numpy() for tensor in tensors]
    flat = torch.cat([tensor.flatten().double() for tensor in tensors]).cpu()
    parts = torch.split(flat, [tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape).to(tensor.dtype).numpy() for part, tensor in zip(parts, tensors, strict=True)]


def compute(device: str, precision: str, *, notice: Callable[[str], None] = log.detail) -> Compute:
    """Parse the values of ``--device`` and ``--precision`` and set up the allocator of the CPU.

    ``device``: auto, cpu, cuda or cuda:N; auto prefers CUDA. ``precision``: auto, float32, tf32, bfloat16, float16 or
    int8; auto takes bfloat16 if a GPU can multiply it (float16 on other GPUs) and, with a ``notice``, the fastest
    precision of a CPU. Raises InputError for unknown values and missing devices.
    """
    chosen = _device(device)
    memory.keep_freed_memory()
    found = Compute(chosen, _precision(precision, chosen, notice))
    if chosen.type == "cuda":
        # by default PyTorch runs cuDNN's recurrent layers in TF32; it is not set by fp32_precision, after which
        # cudnn.flags fails
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = found.precision == "tf32"
    return found


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise InputError(f"--device {name}: is none of auto, cpu, cuda, cuda:N")
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise InputError(f"--device {name}: no CUDA device is there; use --device cpu or auto")
        if number and int(number) >= torch.cuda.device_count():
            raise InputError(f"--device {name}: there are only {torch.cuda.device_count()} CUDA devices, from cuda:0")
    # with its number, which some functions of PyTorch need
    return torch.device("cuda", torch.cuda.current_device()) if name == "cuda" else torch.device(name)


def _precision(name: str, device: torch.device, notice: Callable[[str], None]) -> Precision:
    if name == "auto":
        if device.type == "cuda":
            return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
        fastest, reason = _fastest_on_cpu()
        notice(f"precision: {fastest}, because {reason}")
        return fastest
    if name in ("float16", "tf32") and device.type == "cpu":
        raise InputError(f"--precision {name}: is for CUDA devices; use bfloat16 or float32 on a CPU")
    if name == "bfloat16" and device.type == "cpu" and _fastest_on_cpu()[0] == "float32":
        log.warning("--precision float32 will be faster on this CPU than bfloat16")
    if name == "int8" and device.type == "cuda":
        raise InputError("--precision int8: is for CPUs; use bfloat16 or float16 on CUDA devices")
    precisions: tuple[Precision, ...] = get_args(Precision)
    if name not in precisions:
        raise InputError(f"--precision {name}: is none of auto, {', '.join(precisions)}")
    return name


def _fastest_on_cpu() -> tuple[Precision, str]:
    """Returns the precision of the CPU's fastest products, and the reason."""
    return FASTEST["cpu"]() if "cpu" in FASTEST else ("float32", "the speed of no other is known")
